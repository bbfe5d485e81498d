//! The thread that starts the processes of an app. They ask the kernel to end them with their parent, which is this thread,
//! not the worker's process: it has to live as long as they do.

use std::io;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::super::sandbox;

/// Stack of the thread, in bytes.
const STACK: usize = 128 * 1024;

type Started = io::Result<(Child, Option<sandbox::Own>)>;

/// Starts processes on a thread of its own, which ends when this is dropped.
#[derive(Debug, Clone)]
pub(super) struct Spawner(mpsc::Sender<(Command, oneshot::Sender<Started>)>);

impl Spawner {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (orders, received) = mpsc::channel::<(Command, oneshot::Sender<Started>)>();
        let runtime = Handle::current();
        let thread = thread::Builder::new().name("app".to_owned());
        thread.stack_size(STACK).spawn(move || {
            let _runtime = runtime.enter();
            for (command, answer) in received {
                // Nobody waits any more: the dropped child is killed.
                let _ = answer.send(spawn(command));
            }
        })?;
        Ok(Self(orders))
    }

    /// Starts a process.
    pub(super) async fn spawn(&self, command: Command) -> Started {
        let gone = || io::Error::other("the thread that starts processes has ended");
        let (answer, started) = oneshot::channel();
        self.0.send((command, answer)).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}

fn spawn(command: Command) -> Started {
    let mut command = tokio::process::Command::from(command);
    command.process_group(0).kill_on_drop(true);
    let start = || sandbox::shielded(|| command.spawn());
    sandbox::Own::start(start, Child::id)
}
