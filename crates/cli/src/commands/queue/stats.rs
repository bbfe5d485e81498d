//! `meshwork queue stats`: samples the metrics of all queues, repeatedly with --watch. [`crate::out::dashboard`] draws them.

use std::io::IsTerminal;
use std::time::Duration;

use meshwork_broker::KnownQueues;
use tokio::time::sleep;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::dashboard::{Board, Screen};
use crate::out::note;

/// Show the backlog, latency and throughput of each queue
///
/// Rates are those of the last --interval. Priority lists that were never used are omitted. Errors are counted by kind, since the first job.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Stats {
    /// Repeat until Ctrl-C; with --json, print a line each time
    #[arg(short, long)]
    watch: bool,
    /// Time between two samples, in seconds, 0.5 to 3600 [default: 1; with --watch 2]
    #[arg(long, value_name = "DURATION", value_parser = parsers::interval, allow_hyphen_values = true)]
    interval: Option<Duration>,
}

impl Stats {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let default = if self.watch { 2 } else { 1 };
        let every = self.interval.unwrap_or(Duration::from_secs(default));
        let mut known = KnownQueues::default();
        let mut board = Board::new(context.keys());
        board.take(client.broker().stats(&mut known, true).await?);
        if !self.watch {
            sleep(every).await;
            board.take(client.broker().stats(&mut known, false).await?);
            if context.out.is_json() {
                context.out.json(&board.json())?;
            } else {
                let width = context.out.width();
                let size = width.map(|width| (usize::MAX, width.into()));
                let drawn = board.drawn(size);
                context.out.coloured(&drawn)?;
            }
            return Ok(Exit::DONE);
        }
        let terminal = !context.out.is_json() && std::io::stdout().is_terminal();
        let mut screen = terminal.then(Screen::enter);
        // Ctrl-C is the regular end.
        let interrupt = Interrupt::listen_quietly()?;
        if let Some(screen) = &mut screen {
            screen.draw(&board)?;
        }
        loop {
            tokio::select! {
                // Counts from the last answer: a late one and the next sample would have one time.
                () = sleep(every) => {}
                _ = interrupt.heard() => return Ok(Exit::DONE),
            }
            match client.broker().stats(&mut known, false).await {
                Ok(stats) => board.take(stats),
                // The next sample may succeed.
                Err(error) if error.is_temporary() => {
                    board.miss(&error.to_string());
                    if screen.is_none() {
                        note(&error);
                        continue;
                    }
                }
                Err(error) => return Err(error.into()),
            }
            match &mut screen {
                Some(screen) => screen.draw(&board)?,
                None if context.out.is_json() => context.out.json(&board.json())?,
                None => context.out.raw(board.drawn(None).as_bytes())?,
            }
            context.out.flush()?;
        }
    }
}
