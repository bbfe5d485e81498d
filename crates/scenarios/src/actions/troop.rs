//! The workers: processes that are killed and replaced, and their output.

use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use meshwork_model::keys::nooble::Dialect;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;

use super::call::SERVICES;
use super::work::{HELD, READY};
use super::{ActionsError, Plan};

/// Number of worker processes of each service.
const EACH: usize = 2;
/// Timeout of one step, on a machine that builds at the same time.
const STEP: Duration = Duration::from_secs(120);

/// The name of a worker and a line of its output.
type Said = (String, String);

struct Member {
    name: String,
    service: &'static str,
    child: Child,
}

/// All workers.
pub(super) struct Troop {
    plan: Plan,
    url: String,
    dir: std::path::PathBuf,
    members: Vec<Member>,
    hired: usize,
    tell: mpsc::UnboundedSender<Said>,
    said: mpsc::UnboundedReceiver<Said>,
    /// Names of the killed workers.
    pub(super) killed: HashSet<String>,
}

impl Troop {
    /// Starts the workers. They take actions when this returns.
    pub(super) async fn start(plan: &Plan, url: String, dir: &Path) -> Result<Self, ActionsError> {
        let (tell, said) = mpsc::unbounded_channel();
        let mut troop = Self {
            plan: plan.clone(),
            url,
            dir: dir.to_owned(),
            members: Vec::new(),
            hired: 0,
            tell,
            said,
            killed: HashSet::new(),
        };
        for service in SERVICES {
            for _ in 0..EACH {
                troop.hire(service)?;
            }
        }
        for _ in 0..troop.members.len() {
            troop.hear(READY).await?;
        }
        Ok(troop)
    }

    fn hire(&mut self, service: &'static str) -> Result<(), ActionsError> {
        self.hired += 1;
        let name = format!("{service}-{}", self.hired);
        let dialect: Dialect = self.plan.dialect;
        let mut child = Command::new(&self.plan.actions)
            .arg("worker")
            .args(["--url", &self.url, "--service", service, "--name", &name])
            .args(["--dialect", dialect.as_str()])
            .arg("--dir")
            .arg(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(ActionsError::io("a worker"))?;
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(listen(stdout, name.clone(), self.tell.clone()));
        }
        self.members.push(Member {
            name,
            service,
            child,
        });
        Ok(())
    }

    /// Waits for a worker that prints this line, and returns its name.
    async fn hear(&mut self, word: &str) -> Result<String, ActionsError> {
        let heard = tokio::time::timeout(STEP, async {
            while let Some((who, line)) = self.said.recv().await {
                if line == word {
                    return Some(who);
                }
            }
            None
        });
        let heard = heard.await.ok().flatten();
        heard.ok_or_else(|| ActionsError::Odd(format!("no worker says {word:?} in {STEP:?}")))
    }

    /// Waits until a handler of this call blocks, kills its worker, and starts another one.
    pub(super) async fn kill_holder(&mut self, call: usize) -> Result<(), ActionsError> {
        let who = self.hear(&format!("{HELD} {call}")).await?;
        let at = self.members.iter().position(|member| member.name == who);
        let at = at.ok_or_else(|| ActionsError::Odd(format!("{who} is gone already")))?;
        let mut member = self.members.swap_remove(at);
        self.hire(member.service)?;
        if let Ok(Some(status)) = member.child.try_wait() {
            return Err(ActionsError::Odd(format!(
                "{who} ended by itself: {status}"
            )));
        }
        let killed = member.child.kill().await;
        killed.map_err(ActionsError::io("to kill a worker"))?;
        self.killed.insert(who);
        Ok(())
    }

    /// Returns the number of running workers.
    pub(super) fn serving(&self) -> usize {
        self.members.len()
    }

    /// Asks all workers to shut down, and waits for them.
    pub(super) async fn stop(&mut self) -> Result<(), ActionsError> {
        for mut member in std::mem::take(&mut self.members) {
            let pid = member
                .child
                .id()
                .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
            let pid = pid.ok_or_else(|| ActionsError::Odd(format!("{} ended", member.name)))?;
            kill_process(pid, Signal::TERM)
                .map_err(|error| ActionsError::io("SIGTERM")(error.into()))?;
            let ended = tokio::time::timeout(STEP, member.child.wait()).await;
            let ended = ended.map_err(|_| ActionsError::Odd(format!("{} goes on", member.name)))?;
            let status = ended.map_err(ActionsError::io("a worker"))?;
            if !status.success() {
                let why = format!("{} ended with {status}", member.name);
                return Err(ActionsError::Odd(why));
            }
        }
        Ok(())
    }
}

/// Forwards each line of a worker's output until the worker ends.
async fn listen(stdout: ChildStdout, name: String, tell: mpsc::UnboundedSender<Said>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // The receiver is gone when the play is over.
        let _ = tell.send((name.clone(), line));
    }
}
