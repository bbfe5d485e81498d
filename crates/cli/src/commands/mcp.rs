//! `meshwork mcp`: a server for AI agents on stdin and stdout.

use std::fs::File;
use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use meshwork_server::mcp::Mcp;
use tokio::io::BufReader;

use crate::app::App;
use crate::args::parsers;
use crate::environment;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;

/// Serve AI agents over the Model Context Protocol, on stdin and stdout
///
/// An agent starts this command itself (docs/mcp.md). It can search and read jobs, logs, queues, workers, dead letters and
/// flows, and change nothing unless --allow-changes is given. Texts of jobs are marked as data. It ends when stdin ends, or at
/// SIGINT or SIGTERM, once the calls under way are answered: within --shutdown-timeout, and waits for jobs end at once.
///
/// With MESHWORK_API_KEY, a key of the API, the agent has the rights of that key alone.
///
///   meshwork mcp
///   meshwork mcp --allow-changes
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct McpCommand {
    /// Let agents also create, cancel and retry jobs
    #[arg(long)]
    allow_changes: bool,
    /// Longest wait for calls under way at shutdown
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    shutdown_timeout: Duration,
}

impl McpCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let failed = |error: std::io::Error| CommandError::new(Exit::SYSTEM, error);
        let interrupt = Interrupt::listen_quietly()?;
        let client = interrupt.or(context.client()).await?;
        let key = environment::var("MESHWORK_API_KEY");
        let server = Mcp::new(
            &client,
            self.allow_changes,
            key.filter(|key| !key.is_empty()),
        );
        let input = stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        let output = stdout().as_fd().try_clone_to_owned().map_err(failed)?;
        let input = BufReader::new(tokio::fs::File::from_std(File::from(input)));
        let output = tokio::fs::File::from_std(File::from(output));
        let stop = async { _ = interrupt.heard().await };
        let served = server.serve((input, output), stop, self.shutdown_timeout);
        served.await.map_err(failed)?;
        Ok(Exit::DONE)
    }
}
