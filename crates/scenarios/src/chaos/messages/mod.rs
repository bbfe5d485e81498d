//! Job messages from one context to another, on a redis-server. The coordinators of the sender and of the receiver, and
//! the workers of the receiver, are processes of the real command that are killed meanwhile.
//!
//! In the end each message has become one job, and its sender has one result, which is correct. A job has started again
//! only if the worker of its earlier start was killed. Beside them, damaged messages are sent, and a third context takes
//! nothing: they must delay and change nothing else.

mod daemon;
mod damage;
mod report;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use meshwork::context::{ContextHandle, Identity, MessageJob, NewMessage, Node, read_key};
use meshwork_broker::Broker;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_model::context::MessageType;
use meshwork_model::keys::context::ContextId;
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, Tool};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ChaosError;
use super::callers::{Callers, Files};
use super::fleet::troop::{LEASE, Member, Quarters, peace};
use super::hostile::failed;
use super::hostile::starts::{LOG, Written};
use daemon::Daemon;
use damage::Damage;
pub use report::Report;

/// Context of the sender.
const FROM: u32 = 7;
/// Context of the receiver.
const TO: u32 = 8;
/// Workers of the receiver.
const WORKERS: usize = 2;
/// Messages that are sent between two looks at the results.
const GROUP: usize = 20;
/// Longest pause before a kill.
const SOON: Duration = Duration::from_millis(300);
/// Longest time without a further result.
const END: Duration = Duration::from_secs(60);
/// Interval of polling.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time of a command that makes a context.
const FIRST: Duration = Duration::from_secs(60);

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// Number of messages.
    pub messages: usize,
    /// Number of kills.
    pub kills: u32,
    /// Seed for the choice of moments and victims. The timing differs from run to run.
    pub seed: u64,
    /// Function that gets each line of progress.
    pub progress: fn(&str),
}

/// Plays until each message has its result, and everything is quiet.
///
/// # Errors
/// There is no redis-server, a process ends by itself, a program gets stuck, or files cannot be written.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let began = Instant::now();
    let dir = tempfile::Builder::new().prefix("mw-m-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let server = RealServer::redis().start_for("chaos");
    let server = server.ok_or(ChaosError::Missing(Tool::Redis.program()))?;
    let quarters = quarters(plan, dir.path(), &server);
    make_contexts(&quarters).await?;
    let mut cast = Cast::start(&quarters).await?;
    let mut ends = Ends::connect(&server, dir.path()).await?;
    let mut damage = Damage::begin(&server)?;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut killed = Killed::default();
    let (mut sent, mut due) = (0, 0);
    let (mut until, mut most) = (Instant::now() + END, 0);
    loop {
        if sent < plan.messages {
            let group = GROUP.min(plan.messages - sent);
            for number in sent..sent + group {
                ends.send(number).await?;
            }
            sent += group;
            damage.go_on()?;
        }
        let results = ends.results()?;
        if results > most {
            (until, most) = (Instant::now() + END, results);
        }
        let reached = plan.messages * due as usize / (plan.kills.max(1) as usize);
        if due < plan.kills && results >= reached {
            due += 1;
            peace(&mut cast.workers, SOON.mul_f64(random.random())).await?;
            cast.kill(&quarters, &mut random, &mut killed).await?;
            if due.is_multiple_of(20) {
                (plan.progress)(&format!("messages: {due} kills, {results} results"));
            }
        }
        let quiet = sent == plan.messages && due == plan.kills && ends.open()?.is_empty();
        let quiet = quiet && damage.ends()?.1.is_empty();
        if (quiet && results >= plan.messages) || Instant::now() > until {
            break;
        }
        if sent == plan.messages {
            peace(&mut cast.workers, LOOK).await?;
        }
    }
    cast.stop().await?;
    let starts = Written::read(dir.path(), &dir.path().join("none"))?.starts;
    let mut report = Report::new(plan, &killed);
    let mut open = ends.open()?;
    let (damaged, left) = damage.ends()?;
    report.damaged = damaged;
    open.extend(left);
    report.judge(&ends.read().await?, open, &starts, &killed);
    report.seconds = began.elapsed().as_secs();
    if !report.holds() {
        // Keeps the logs for a search for the reason.
        report.files = Some(dir.keep());
    }
    Ok(report)
}

/// Killed processes.
#[derive(Debug, Default)]
struct Killed {
    /// Coordinators of the sender, coordinators of the receiver, and workers.
    counts: [u32; 3],
    /// Process ids of the workers.
    workers: BTreeSet<u32>,
}

fn quarters<'a>(plan: &'a Plan, dir: &'a Path, server: &RealServer) -> Quarters<'a> {
    Quarters {
        binary: &plan.binary,
        dir,
        types: "osis",
        more: &["--context", "8"],
        lease: LEASE,
        environment: vec![
            ("REDIS_URL", server.url().into()),
            ("XDG_CONFIG_HOME", dir.join("config").into()),
            ("RUST_LOG", LOG.into()),
            ("MESHWORK_LOG_FORMAT", "json".into()),
        ],
        faketime: None,
    }
}

/// Makes an actor and both contexts.
async fn make_contexts(quarters: &Quarters<'_>) -> Result<(), ChaosError> {
    let callers = Callers::new(quarters);
    let (stdout, stderr) = (quarters.dir.join("first"), quarters.dir.join("first.err"));
    for words in [
        &["context", "create", "--id", "7"][..],
        &["context", "create", "--id", "8"],
        &["context", "create", "--id", "9"],
    ] {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let files = Files {
            stdout: &stdout,
            stderr: &stderr,
        };
        let status = callers.call(&words, "", files, FIRST).await?;
        if !status.success() {
            return Err(ChaosError::Ended {
                program: words.join(" "),
                status: status.to_string(),
                said: fs::read_to_string(&stderr).unwrap_or_default(),
            });
        }
    }
    Ok(())
}

/// All processes that may be killed.
struct Cast {
    /// The coordinators of the sender and of the receiver.
    coordinators: [Daemon; 2],
    workers: Vec<Member>,
}

impl Cast {
    async fn start(quarters: &Quarters<'_>) -> Result<Self, ChaosError> {
        let coordinators = [
            Daemon::start(quarters, FROM).await?,
            Daemon::start(quarters, TO).await?,
        ];
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            workers.push(Member::start(quarters, number)?);
        }
        for worker in &mut workers {
            worker.listens().await?;
        }
        Ok(Self {
            coordinators,
            workers,
        })
    }

    /// Kills a process with `kill -9`, and starts it again.
    async fn kill(
        &mut self,
        quarters: &Quarters<'_>,
        random: &mut StdRng,
        killed: &mut Killed,
    ) -> Result<(), ChaosError> {
        let victim = random.random_range(0..3);
        killed.counts[victim] += 1;
        match self.coordinators.get_mut(victim) {
            Some(coordinator) => coordinator.replace(quarters).await,
            None => {
                let worker = &mut self.workers[random.random_range(0..WORKERS)];
                killed.workers.insert(worker.pid()?);
                worker.replace(quarters).await
            }
        }
    }

    async fn stop(self) -> Result<(), ChaosError> {
        for worker in self.workers {
            worker.stop().await?;
        }
        for mut coordinator in self.coordinators {
            coordinator.kill().await?;
        }
        Ok(())
    }
}

/// Both ends of the messages.
struct Ends {
    me: Identity,
    from: ContextHandle,
    to: ContextHandle,
    /// Database of the sender, and of the receiver.
    plain: [Plain; 2],
}

/// A message at its sender, or at its receiver.
type Views = Vec<meshwork::context::MessageView>;

impl Ends {
    async fn connect(server: &RealServer, dir: &Path) -> Result<Self, ChaosError> {
        let target = Target::parse(&server.url(), TlsFiles::default());
        let target = target.map_err(|it| failed(&it))?;
        let keys = JobKeys::default();
        let conn = Conn::open(&target, keys.namespace()).await;
        let node = Node::of(&Broker::new(conn.map_err(|it| failed(&it))?, keys));
        let key = read_key(&dir.join("config/meshwork/actor.key")).map_err(|it| failed(&it))?;
        let me = node.identify(key).await.map_err(|it| failed(&it))?;
        let context = async |id| node.context(id_of(id)?).await.map_err(|it| failed(&it));
        let plain = |id| Plain::connect(&server.url_of(id)).map_err(|it| failed(&it));
        Ok(Self {
            from: context(FROM).await?,
            to: context(TO).await?,
            plain: [plain(FROM)?, plain(TO)?],
            me,
        })
    }

    /// Sends a signed message with one job, whose result is twice this number.
    async fn send(&self, number: usize) -> Result<(), ChaosError> {
        let script_type = "osis".parse().map_err(|it| failed(&it))?;
        let mut new = NewMessage::new(self.to.id(), MessageType::Job);
        new.text = number.to_string();
        new.jobs.push(MessageJob {
            script_type,
            script: format!("{number} * 2"),
            timeout: None,
            retries: 0,
            env_vars: Default::default(),
            after: Vec::new(),
        });
        let sent = self.from.send(&self.me, &new).await;
        sent.map(drop).map_err(|it| failed(&it))
    }

    fn count(&mut self, end: usize, words: &[&str]) -> Result<usize, ChaosError> {
        self.plain[end].ask(words).map_err(|it| failed(&it))
    }

    /// Returns the number of results at the sender.
    fn results(&mut self) -> Result<usize, ChaosError> {
        self.count(0, &["LLEN", "msg_in"])
    }

    /// Returns the lists and sorted sets that still have elements.
    fn open(&mut self) -> Result<Vec<String>, ChaosError> {
        let mut open = Vec::new();
        for end in [0, 1] {
            let inbox = ["msg_in:7", "msg_in:8"][end];
            for (command, key) in [
                ("LLEN", "msg_out"),
                ("LLEN", "msg_out_coordinator"),
                ("LLEN", inbox),
                ("LLEN", "queue:osis"),
                ("ZCARD", "mw:open"),
                ("ZCARD", "mw:outbound"),
                ("ZCARD", "mw:lease"),
            ] {
                let left = self.count(end, &[command, key])?;
                if left > 0 {
                    open.push(format!("context {}: {left} in {key}", [FROM, TO][end]));
                }
            }
        }
        Ok(open)
    }

    /// Reads all messages of both contexts.
    async fn read(&self) -> Result<[Views; 2], ChaosError> {
        let views = async |context: &ContextHandle| context.messages(&self.me).await;
        let (from, to) = (views(&self.from).await, views(&self.to).await);
        Ok([
            from.map_err(|it| failed(&it))?,
            to.map_err(|it| failed(&it))?,
        ])
    }
}

fn id_of(id: u32) -> Result<ContextId, ChaosError> {
    ContextId::new(id).ok_or_else(|| ChaosError::Line(format!("{id} is no context")))
}
