//! `meshwork job logs`.

use meshwork_model::name::JobId;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::follow;
use crate::out::log_file::LogDirs;
use crate::out::logs;
pub(super) use crate::out::logs::{Streams, Which};
use crate::whole_id::whole_id;

/// Print the output of a job's last attempt: the last 64 KiB of stdout and of stderr
///
/// With --follow, prints all stored lines and then new ones until the job has ended: stdout on stdout, the rest on
/// stderr. The exit code is the outcome of the job.
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// The job's id, or its beginning, of at least 4 characters
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
    /// Print new lines until the job has ended
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Only stdout
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only stderr
    #[arg(long)]
    stderr: bool,
    #[command(flatten)]
    dirs: LogDirs,
}

impl Logs {
    /// Returns the streams that are chosen.
    pub(super) fn which(&self) -> Which {
        match (self.stdout, self.stderr) {
            (true, _) => Which::Stdout,
            (_, true) => Which::Stderr,
            _ => Which::All,
        }
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let which = self.which();
        let client = context.client().await?;
        let id = whole_id(&client, &self.id).await?;
        if self.follow {
            return Box::pin(follow::follow(
                &client,
                &id,
                which,
                &self.dirs,
                &mut context.out,
            ))
            .await;
        }
        let mut job = client.status(&id).await?;
        if job.stdout.is_empty() && job.stderr.is_empty() {
            logs::add(&mut job, &client.log_lines(&id).await?);
        }
        logs::print(&job, which, &self.dirs, &mut context.out)?;
        Ok(Exit::DONE)
    }
}
