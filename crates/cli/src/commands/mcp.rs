//! `meshwork mcp`: a server for AI agents on stdin and stdout.

use std::fs::File;
use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork::Client;
use meshwork::context::ActorId;
use meshwork_server::mcp::{Host, Mcp};
use tokio::io::BufReader;
use tokio::sync::{mpsc, oneshot};

use crate::app::App;
use crate::args::parsers;
use crate::environment;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::IdentityArgs;
use crate::interrupt::Interrupt;
use crate::scope::ActorArgs;

/// Serve AI agents over the Model Context Protocol, on stdin and stdout
///
/// An agent starts this command itself (docs/mcp.md). It can search and read jobs, logs, queues, workers, dead letters and
/// flows, and change nothing unless --allow-changes is given. Texts of jobs are marked as data. It connects to the store at
/// the first call. It ends within 5 s after its stdin; at SIGINT or SIGTERM within --shutdown-timeout, once the calls under
/// way are answered. Waits for jobs end at once.
///
/// In contexts it acts as the actor of the key file. With MESHWORK_API_KEY, a key of the API, the agent has the rights of
/// that key alone.
#[derive(Debug, clap::Args)]
pub(crate) struct McpCommand {
    /// Let agents also create, cancel and retry jobs
    #[arg(long)]
    allow_changes: bool,
    /// Longest wait for calls under way at shutdown
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    shutdown_timeout: Duration,
    #[command(flatten)]
    actor: ActorArgs,
}

impl McpCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let failed = |error: std::io::Error| CommandError::new(Exit::SYSTEM, error);
        let interrupt = Interrupt::listen_quietly()?;
        let key = environment::var("MESHWORK_API_KEY");
        let (ask, mut requests) = mpsc::channel::<oneshot::Sender<_>>(1);
        let host = Command {
            ask,
            identity: self.actor.identity(),
        };
        let server = Mcp::new(host, self.allow_changes, key.filter(|key| !key.is_empty()));
        let input = stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        let output = stdout().as_fd().try_clone_to_owned().map_err(failed)?;
        let input = BufReader::new(tokio::fs::File::from_std(File::from(input)));
        let output = tokio::fs::File::from_std(File::from(output));
        let stop = async { _ = interrupt.heard().await };
        let connects = async {
            while let Some(answer) = requests.recv().await {
                let client = context.client().await;
                // A call that was cancelled takes no answer.
                let _ = answer.send(client.map_err(|error| words(&error)));
            }
            std::future::pending::<()>().await;
        };
        let served = server.serve((input, output), stop, self.shutdown_timeout);
        tokio::select! {
            served = served => served.map_err(failed)?,
            () = connects => {}
        }
        Ok(Exit::DONE)
    }
}

/// The command around the server.
struct Command {
    /// Asks the command to connect.
    ask: mpsc::Sender<oneshot::Sender<Result<Client, String>>>,
    identity: IdentityArgs,
}

impl Host for Command {
    fn connect(&self) -> BoxFuture<'_, Result<Client, String>> {
        async {
            let (answer, answered) = oneshot::channel();
            let _ = self.ask.send(answer).await;
            let ends = |_| Err("the command ends".to_owned());
            answered.await.unwrap_or_else(ends)
        }
        .boxed()
    }

    fn actor<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<ActorId, String>> {
        async {
            let path = self.identity.path().map_err(|error| words(&error))?;
            match self.identity.find(client).await {
                Ok(Some(me)) => Ok(me.id()),
                Ok(None) => Err(format!(
                    "there is no key of an actor in {}: `meshwork context create` makes the first context, with an actor and \
                     its key; call the tool again then. MESHWORK_ACTOR_KEY names another file",
                    path.display()
                )),
                Err(error) => Err(format!(
                    "{}; start `meshwork mcp` with --actor-key FILE, or with MESHWORK_ACTOR_KEY, to name another key file than {}",
                    words(&error),
                    path.display()
                )),
            }
        }
        .boxed()
    }
}

/// Returns an error with its remedy.
fn words(error: &CommandError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}
