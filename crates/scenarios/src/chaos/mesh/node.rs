//! A node: a server, a Mycelium daemon, supervisors and a worker, each a process of its own.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::context::{
    ContextHandle, Identity, MessageJob, MessageView, NewMessage, Node as Handle, read_key,
};
use meshwork::mesh::Daemon;
use meshwork_broker::Broker;
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_model::access::Role;
use meshwork_model::context::{MessageType, NodeId};
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::eventually;
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, Tool, free_port};
use rustix::process::Signal;
use tokio::process::Command;

use super::{FROM, Plan, TO};
use crate::chaos::ChaosError;
use crate::chaos::fleet::troop::{Member, Quarters};
use crate::chaos::hostile::failed;
use crate::chaos::hostile::starts::LOG;
use crate::chaos::process::Process;

/// Lease that outlives each pause of a worker or server, so that no lease expires unless its worker was killed.
const LEASE: Duration = Duration::from_secs(8);
/// Longest time of a start of a daemon.
const START: Duration = Duration::from_secs(60);
/// Tries of a read from a server that was just started again.
const READ: Duration = Duration::from_secs(60);

/// All that the processes of a node are started with.
pub(super) struct House {
    binary: PathBuf,
    daemon: (PathBuf, Vec<String>),
    pub(super) dir: PathBuf,
    url: String,
    /// Port for links of other daemons.
    port: u16,
    rpc: SocketAddr,
    /// Addresses of other daemons.
    peers: Vec<SocketAddr>,
}

impl House {
    pub(super) fn quarters(&self) -> Quarters<'_> {
        let environment: Vec<(&'static str, OsString)> = vec![
            ("REDIS_URL", self.url.clone().into()),
            ("XDG_CONFIG_HOME", self.dir.join("config").into()),
            ("MESHWORK_MYCELIUM", self.daemon_url().into()),
            ("RUST_LOG", LOG.into()),
            ("MESHWORK_LOG_FORMAT", "json".into()),
        ];
        Quarters {
            binary: &self.binary,
            dir: &self.dir,
            types: "osis",
            more: &["--context", "8"],
            environment,
            lease: LEASE,
            faketime: None,
        }
    }

    fn daemon_url(&self) -> String {
        format!("http://{}", self.rpc)
    }

    /// Runs a command of the CLI, and returns its output.
    async fn call(&self, words: &[&str]) -> Result<String, ChaosError> {
        let output = self.quarters().command().args(words).output().await;
        let output = output.map_err(ChaosError::io(words.join(" ")))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(ChaosError::Ended {
                program: words.join(" "),
                status: output.status.to_string(),
                said: String::from_utf8_lossy(&output.stderr).into_owned(),
            }),
        }
    }

    /// Starts the daemon. Returns when it answers.
    async fn start_daemon(&self) -> Result<Process, ChaosError> {
        let (program, first) = &self.daemon;
        let mut command = Command::new(program);
        command
            .args(first)
            .arg("-k")
            .arg(self.dir.join("daemon.key"));
        command.args(["--no-tun", "--disable-peer-discovery", "--disable-quic"]);
        command.args(["-t", &self.port.to_string()]);
        command.args(["--api-addr", &format!("127.0.0.1:{}", free_port())]);
        command.args(["--jsonrpc-addr", &self.rpc.to_string()]);
        if !self.peers.is_empty() {
            let peers = self.peers.iter().map(|peer| format!("tcp://{peer}"));
            command.arg("--peers").args(peers);
        }
        let mut process = Process::start(command, &self.dir, "daemon")?;
        let daemon = Daemon::new(&self.daemon_url()).map_err(|it| failed(&it))?;
        eventually("the daemon answers", START, async || {
            daemon.info().await.ok()
        })
        .await;
        process.is_there()?;
        Ok(process)
    }

    /// Starts a supervisor. Returns when it is ready.
    async fn start_supervisor(&self, number: usize) -> Result<Process, ChaosError> {
        let mut command = self.quarters().command();
        command.args(["supervisor", "--json"]);
        let name = format!("supervisor-{number}");
        let mut process = Process::start(command, &self.dir, &name)?;
        process.says("ready").await?;
        Ok(process)
    }
}

/// A node.
pub(super) struct Node {
    pub(super) house: House,
    pub(super) server: RealServer,
    pub(super) daemon: Process,
    pub(super) supervisors: Vec<Process>,
    pub(super) worker: Option<Member>,
    pub(super) id: NodeId,
    handle: Handle,
    me: Identity,
    /// Its contexts [`FROM`] and [`TO`].
    contexts: [ContextHandle; 2],
}

impl Node {
    /// Starts a node without supervisors and workers. Its daemon has links to `peers`.
    pub(super) async fn start(
        plan: &Plan,
        dir: PathBuf,
        peers: Vec<SocketAddr>,
    ) -> Result<Self, ChaosError> {
        std::fs::create_dir_all(&dir).map_err(ChaosError::io("the directory of a node"))?;
        let server = RealServer::redis().append_only().start_for("chaos");
        let server = server.ok_or(ChaosError::Missing(Tool::Redis.program()))?;
        let house = House {
            binary: plan.binary.clone(),
            daemon: plan.daemon.clone(),
            dir,
            url: server.url(),
            port: free_port(),
            rpc: SocketAddr::from(([127, 0, 0, 1], free_port())),
            peers,
        };
        let daemon = house.start_daemon().await?;
        for id in [FROM, TO] {
            let id = id.to_string();
            house.call(&["context", "create", "--id", &id]).await?;
        }
        let target = Target::parse(&server.url(), TlsFiles::default());
        let target = target.map_err(|it| failed(&it))?;
        let keys = JobKeys::default();
        let conn = Conn::open(&target, keys.namespace()).await;
        let handle = Handle::of(&Broker::new(conn.map_err(|it| failed(&it))?, keys));
        let key = read_key(&house.dir.join("config/meshwork/actor.key"));
        let me = handle.identify(key.map_err(|it| failed(&it))?).await;
        let me = me.map_err(|it| failed(&it))?;
        let context = async |id| {
            let id = ContextId::new(id).ok_or_else(|| ChaosError::Line(id.to_string()))?;
            handle.context(id).await.map_err(|it| failed(&it))
        };
        let contexts = [context(FROM).await?, context(TO).await?];
        Ok(Self {
            id: handle.identity().await.map_err(|it| failed(&it))?,
            house,
            server,
            daemon,
            supervisors: Vec::new(),
            worker: None,
            handle,
            me,
            contexts,
        })
    }

    /// Returns the address for links to its daemon.
    pub(super) fn link(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.house.port))
    }

    /// Returns its card. Creates its key.
    pub(super) async fn card(&self) -> Result<String, ChaosError> {
        self.house.call(&["mesh", "card"]).await
    }

    /// Trusts another node, and accepts jobs of its actor.
    pub(super) async fn trust(
        &self,
        other: &Self,
        card: &str,
        name: &str,
    ) -> Result<(), ChaosError> {
        let name = name.parse().map_err(|it| failed(&it))?;
        let trusted = self.handle.trust_node(card.as_bytes(), &name).await;
        trusted.map_err(|it| failed(&it))?;
        let actor = self.handle.trust(other.me.key().public(), None).await;
        let actor = actor.map_err(|it| failed(&it))?.id;
        let granted = self.contexts[1].grant(&self.me, Role::Admin, actor).await;
        granted.map(drop).map_err(|it| failed(&it))
    }

    /// Starts its supervisors and its worker.
    pub(super) async fn serve(&mut self, supervisors: usize) -> Result<(), ChaosError> {
        for number in 0..supervisors {
            self.supervisors
                .push(self.house.start_supervisor(number).await?);
        }
        let mut worker = Member::start(&self.house.quarters(), 0)?;
        worker.listens().await?;
        self.worker = Some(worker);
        Ok(())
    }

    pub(super) async fn kill_supervisor(&mut self, number: usize) -> Result<(), ChaosError> {
        self.supervisors[number].kill().await?;
        self.supervisors[number] = self.house.start_supervisor(number).await?;
        Ok(())
    }

    /// Stops all supervisors in order, and starts them again.
    pub(super) async fn restart_supervisors(&mut self) -> Result<(), ChaosError> {
        for (number, supervisor) in self.supervisors.iter_mut().enumerate() {
            supervisor.stop().await?;
            *supervisor = self.house.start_supervisor(number).await?;
        }
        Ok(())
    }

    /// Kills the worker, and starts another one. Returns the process of the killed one.
    pub(super) async fn kill_worker(&mut self) -> Result<u32, ChaosError> {
        let gone = || ChaosError::Line("the node has no worker".to_owned());
        let worker = self.worker.as_mut().ok_or_else(gone)?;
        let process = worker.pid()?;
        worker.replace(&self.house.quarters()).await?;
        worker.listens().await?;
        Ok(process)
    }

    pub(super) fn signal_worker(&self, signal: Signal) -> Result<(), ChaosError> {
        self.worker
            .iter()
            .try_for_each(|worker| worker.signal(signal))
    }

    pub(super) async fn start_daemon_again(&mut self) -> Result<(), ChaosError> {
        self.daemon = self.house.start_daemon().await?;
        Ok(())
    }

    /// Fails if a process has ended by itself.
    pub(super) fn is_there(&mut self) -> Result<(), ChaosError> {
        for supervisor in &mut self.supervisors {
            supervisor.is_there()?;
        }
        self.worker.iter_mut().try_for_each(Member::is_there)
    }

    /// Sends a signed message with one job, whose result is twice this number. `None`: the server did not answer, and the
    /// message may be stored.
    pub(super) async fn send(
        &self,
        to: &Self,
        number: usize,
        timeout: Option<u32>,
    ) -> Result<Option<MessageKey>, ChaosError> {
        let mut new = NewMessage::new(self.contexts[1].id(), MessageType::Job);
        new.node = Some(to.id);
        new.text = number.to_string();
        if let Some(timeout) = timeout {
            (new.timeout, new.timeout_ack, new.timeout_result) = (timeout, timeout, timeout);
        }
        new.jobs.push(MessageJob {
            script_type: "osis".parse().map_err(|it| failed(&it))?,
            script: format!("{number} * 2"),
            timeout: None,
            retries: 0,
            env_vars: Default::default(),
            after: Vec::new(),
        });
        match self.contexts[0].send(&self.me, &new).await {
            Ok(message) => Ok(Some(message.key())),
            Err(error) if error.is_outage() => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Calls the server, which may have been started again just now.
    async fn answer<T>(
        &self,
        what: &str,
        mut call: impl AsyncFnMut() -> Result<T, meshwork::context::ContextError>,
    ) -> T {
        eventually(what, READ, async || call().await.ok()).await
    }

    /// Returns the message at its sender.
    pub(super) async fn message(&self, key: MessageKey) -> Result<MessageView, ChaosError> {
        let view = self.contexts[0].message(&self.me, key).await;
        view.map_err(|it| failed(&it))
    }

    /// Reads all messages of both contexts.
    pub(super) async fn read(&self) -> [Vec<MessageView>; 2] {
        let views = async |at: usize| {
            let context = &self.contexts[at];
            self.answer("messages are read", async || {
                context.messages(&self.me).await
            })
            .await
        };
        [views(0).await, views(1).await]
    }

    /// Asks a database of the server over a connection of its own.
    fn ask<T: redis::FromRedisValue>(&self, database: u32, words: &[&str]) -> Option<T> {
        let plain = Plain::connect(&self.server.url_of(database));
        plain.and_then(|mut plain| plain.ask(words)).ok()
    }

    /// Returns the number of results at this node; `None`: the server did not answer.
    pub(super) fn results(&self) -> Option<usize> {
        self.ask(FROM, &["LLEN", "msg_in"])
    }

    /// Ends all connections of clients.
    pub(super) fn cut_clients(&self) {
        let _: Option<i64> = self.ask(0, &["CLIENT", "KILL", "TYPE", "normal"]);
    }

    /// Returns the number of jobs that messages became.
    pub(super) fn jobs(&self) -> usize {
        let jobs: Option<Vec<String>> = self.ask(TO, &["KEYS", "job:*"]);
        jobs.map_or(0, |jobs| jobs.len())
    }

    /// Returns the lists and sorted sets that still have elements, and keys of the last process that exchanged frames.
    pub(super) fn open(&self, has_ended: bool) -> Vec<String> {
        let mut open = Vec::new();
        let mut note = |database: u32, command: &str, key: &str| {
            let left: Option<usize> = self.ask(database, &[command, key]);
            if left != Some(0) {
                let left = left.map_or("an unknown number".to_owned(), |left| left.to_string());
                open.push(format!("database {database}: {left} in {key}"));
            }
        };
        for database in [FROM, TO] {
            for (command, key) in [
                ("LLEN", "msg_out"),
                ("LLEN", "msg_out_coordinator"),
                ("LLEN", &*format!("msg_in:{database}")),
                ("LLEN", "queue:osis"),
                ("ZCARD", "mw:open"),
                ("ZCARD", "mw:outbound"),
                ("ZCARD", "mw:sent"),
                ("ZCARD", "mw:lease"),
            ] {
                note(database, command, key);
            }
        }
        let outboxes: Option<Vec<String>> = self.ask(0, &["KEYS", "mw:peer-out:*"]);
        for outbox in outboxes.unwrap_or_else(|| vec!["mw:peer-out".to_owned()]) {
            note(0, "ZCARD", &outbox);
        }
        if has_ended {
            note(0, "HLEN", "mw:mesh");
        }
        open
    }

    /// Stops the worker and the supervisors in order.
    pub(super) async fn stop(&mut self) -> Result<(), ChaosError> {
        if let Some(worker) = self.worker.take() {
            worker.stop().await?;
        }
        for supervisor in &mut self.supervisors {
            supervisor.stop().await?;
        }
        self.supervisors.clear();
        Ok(())
    }

    pub(super) fn dir(&self) -> &Path {
        &self.house.dir
    }
}
