//! Job messages between three nodes, each with a redis-server, a Mycelium daemon, supervisors and a worker, all of them
//! processes. They are killed and paused, and links between them are cut.
//!
//! In the end each message has become one job, and its sender has one result, which is correct. A job has started again
//! only if the worker of its earlier start was killed. Nothing is left in an outbox, no lease is held. The last messages
//! have a short timeout, and the way is cut for longer: they alone end without a result.

mod node;
mod report;
mod troubles;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use meshwork_model::context::MessageStatus;
use meshwork_model::keys::context::MessageKey;
use meshwork_test_servers::cuttable::Cuttable;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::time::interval;

use super::ChaosError;
use node::Node;
pub use report::Report;
use troubles::{Links, Troubles, cut};

/// Context of the senders.
const FROM: u32 = 7;
/// Context of the receivers.
const TO: u32 = 8;
/// Supervisors of each node: one exchanges frames, and another one takes over.
const SUPERVISORS: [usize; 3] = [2, 1, 1];
/// Greatest number of messages without a result, beside those between two troubles.
const OPEN: usize = 200;
/// Longest pause before a trouble.
const SOON: Duration = Duration::from_millis(300);
/// Longest time without a further result: a node that was cut off is pinged once a minute.
const END: Duration = Duration::from_secs(150);
/// Interval of polling.
const LOOK: Duration = Duration::from_millis(100);
/// Messages of each kind whose way is cut.
const CUT_OFF: usize = 4;
/// Timeout of these messages, in seconds.
const BRIEF: u32 = 8;

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// Program of a Mycelium daemon, real or fake, and its first arguments.
    pub daemon: (PathBuf, Vec<String>),
    /// Number of messages.
    pub messages: usize,
    /// Number of troubles.
    pub kills: u32,
    /// Seed for the choice of moments and victims. The timing differs from run to run.
    pub seed: u64,
    /// Function that gets each line of progress.
    pub progress: fn(&str),
}

/// Processes of killed workers.
type Killed = BTreeSet<u32>;

/// A message that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    from: usize,
    to: usize,
    key: MessageKey,
    /// The reason for which it ends, if its way is cut.
    reason: Option<&'static str>,
}

/// Runs a fake daemon in this process, with the arguments of a real one.
///
/// # Errors
/// An option is not valid, or a port is taken.
pub async fn be_daemon(arguments: Vec<String>) -> Result<(), String> {
    let ready = |line: &str| meshwork_test_servers::say(line.to_owned());
    let served =
        meshwork_test_servers::fakes::mycelium::program::serve(arguments.into_iter(), ready);
    served.await
}

/// Plays until each message has its outcome, and everything is quiet.
///
/// # Errors
/// There is no redis-server, a process ends by itself, a program gets stuck, or files cannot be written.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let began = Instant::now();
    let dir = tempfile::Builder::new().prefix("mw-n-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let mut world = World::start(plan, dir).await?;
    let is_quiet = world.run(plan).await? && world.cut_off().await?;
    for node in &mut world.nodes {
        node.stop().await?;
    }
    let mut report = Report::new(plan, &world);
    report.judge(&world, is_quiet).await?;
    report.seconds = began.elapsed().as_secs();
    if !report.holds() {
        // Keeps the logs for a search for the reason.
        report.files = Some(world.dir.keep());
    }
    Ok(report)
}

/// All nodes, and what happened to them.
struct World {
    nodes: Vec<Node>,
    links: Links,
    troubles: Troubles,
    random: StdRng,
    killed: Killed,
    sent: Vec<Sent>,
    /// Number of the next message.
    next: usize,
    /// Results at each node, when it was read last.
    results: Vec<usize>,
    dir: TempDir,
}

impl World {
    async fn start(plan: &Plan, dir: TempDir) -> Result<Self, ChaosError> {
        let (mut nodes, mut links): (Vec<Node>, Links) = (Vec::new(), Vec::new());
        for at in 0..SUPERVISORS.len() {
            let mut peers = Vec::new();
            for (peer, node) in nodes.iter().enumerate() {
                let link = Cuttable::to(node.link()).await;
                let link = link.map_err(ChaosError::io("a link between daemons"))?;
                peers.push(link.at());
                links.push(([peer, at], link));
            }
            nodes.push(Node::start(plan, dir.path().join(at.to_string()), peers).await?);
        }
        let mut cards = Vec::new();
        for node in &nodes {
            cards.push(node.card().await?);
        }
        for (at, node) in nodes.iter().enumerate() {
            for (peer, card) in cards.iter().enumerate().filter(|(peer, _)| *peer != at) {
                let name = format!("node-{peer}");
                node.trust(&nodes[peer], card, &name).await?;
            }
        }
        for (node, supervisors) in nodes.iter_mut().zip(SUPERVISORS) {
            node.serve(supervisors).await?;
        }
        let mut random = StdRng::seed_from_u64(plan.seed);
        Ok(Self {
            results: vec![0; nodes.len()],
            nodes,
            links,
            troubles: Troubles::new(StdRng::seed_from_u64(random.random())),
            random,
            killed: Killed::new(),
            sent: Vec::new(),
            next: 0,
            dir,
        })
    }

    /// Sends messages in as many parts as there are troubles, each part just before a trouble. Returns true if all ended.
    async fn run(&mut self, plan: &Plan) -> Result<bool, ChaosError> {
        let (mut due, mut most, mut until) = (0, 0, Instant::now() + END);
        let mut looks = interval(LOOK);
        loop {
            self.troubles.end_due(&mut self.nodes, &self.links).await?;
            let results = self.look()?;
            if results > most {
                (until, most) = (Instant::now() + END, results);
            }
            let part = plan.messages.div_ceil(plan.kills.max(1) as usize);
            let may_begin = self.troubles.may_begin() && self.sent.len() < results + part + OPEN;
            if due < plan.kills && may_begin {
                due += 1;
                let all = plan.messages * due as usize / plan.kills as usize;
                while self.next < all {
                    self.send_one().await?;
                }
                looks.reset_after(SOON.mul_f64(self.random.random()));
                looks.tick().await;
                let nodes = &mut self.nodes;
                let begun = self.troubles.begin(nodes, &self.links, &mut self.killed);
                begun.await?;
                if due.is_multiple_of(20) {
                    (plan.progress)(&format!("mesh: {due} troubles, {results} results"));
                }
                continue;
            }
            let over = due == plan.kills && self.troubles.is_over();
            if over && results >= self.sent.len() && self.open(false).is_empty() {
                return Ok(true);
            }
            if Instant::now() > until {
                return Ok(false);
            }
            looks.tick().await;
        }
    }

    /// Looks at all processes, and returns the number of results.
    fn look(&mut self) -> Result<usize, ChaosError> {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            node.is_there()?;
            if self.troubles.answers(at)
                && let Some(results) = node.results()
            {
                self.results[at] = results;
            }
        }
        Ok(self.results.iter().sum())
    }

    /// Sends one message between two random nodes. One whose sender does not answer is not sent.
    async fn send_one(&mut self) -> Result<(), ChaosError> {
        let count = self.nodes.len();
        let from = self.random.random_range(0..count);
        let to = (from + self.random.random_range(1..count)) % count;
        if !self.troubles.answers(from) {
            tokio::task::yield_now().await;
            return self.troubles.end_due(&mut self.nodes, &self.links).await;
        }
        self.send(from, to, None).await
    }

    async fn send(
        &mut self,
        from: usize,
        to: usize,
        reason: Option<&'static str>,
    ) -> Result<(), ChaosError> {
        let timeout = reason.map(|_| BRIEF);
        let sent = self.nodes[from].send(&self.nodes[to], self.next, timeout);
        if let Some(key) = sent.await? {
            self.next += 1;
            self.sent.push(Sent {
                from,
                to,
                key,
                reason,
            });
        }
        Ok(())
    }

    /// Sends messages whose way is cut for longer than their timeout: some after they were acknowledged, and some before.
    /// Returns true if everything is quiet again.
    async fn cut_off(&mut self) -> Result<bool, ChaosError> {
        let (from, to) = (0, 2);
        let first = self.sent.len();
        self.nodes[to].signal_worker(Signal::STOP)?;
        for _ in 0..CUT_OFF {
            self.send(from, to, Some("result_unknown")).await?;
        }
        let half = self.sent.len();
        let taken = self.until(first..half, |status| status != MessageStatus::Dispatched);
        if !taken.await? {
            return Ok(false);
        }
        cut(&self.links, to, true);
        self.nodes[to].signal_worker(Signal::CONT)?;
        for _ in 0..CUT_OFF {
            self.send(from, to, Some("not_delivered")).await?;
        }
        let ended = self.until(first..self.sent.len(), MessageStatus::is_final);
        if !ended.await? {
            return Ok(false);
        }
        cut(&self.links, to, false);
        // Nodes that were cut off find each other within a minute, and at once after a start.
        for at in [from, to] {
            self.nodes[at].restart_supervisors().await?;
        }
        let (until, mut looks) = (Instant::now() + END, interval(LOOK));
        while !self.open(false).is_empty() {
            if Instant::now() > until {
                return Ok(false);
            }
            looks.tick().await;
        }
        Ok(true)
    }

    /// Waits until the status of these messages is as wanted.
    async fn until(
        &self,
        range: std::ops::Range<usize>,
        wanted: impl Fn(MessageStatus) -> bool,
    ) -> Result<bool, ChaosError> {
        let (until, mut looks) = (Instant::now() + END, interval(LOOK));
        for sent in &self.sent[range] {
            loop {
                let view = self.nodes[sent.from].message(sent.key).await?;
                if wanted(view.message.status) {
                    break;
                }
                if Instant::now() > until {
                    return Ok(false);
                }
                looks.tick().await;
            }
        }
        Ok(true)
    }

    /// Returns what is left at all nodes.
    fn open(&self, has_ended: bool) -> Vec<String> {
        let nodes = self.nodes.iter().enumerate();
        let open = nodes.flat_map(|(at, node)| {
            let open = node.open(has_ended).into_iter();
            open.map(move |line| format!("node {at}: {line}"))
        });
        open.collect()
    }
}
