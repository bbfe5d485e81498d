//! `meshwork queue stats`: samples the metrics of all queues, repeatedly with --watch. [`crate::out::dashboard`] draws them.

use std::future::pending;
use std::time::Duration;

use meshwork_broker::KnownQueues;
use tokio::time::{Instant, sleep, sleep_until};

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::dashboard::{Board, Screen};
use crate::out::{can_draw, note};

/// Show the backlog, latency and throughput of each queue
///
/// Rates are those of the last --interval. Priority lists that were never used are omitted. Errors are counted by kind, since the first job.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Stats {
    /// Repeat until Ctrl-C or q; with --json, print a line each time
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
        let terminal = !context.out.is_json() && can_draw(&std::io::stdout());
        let screen = terminal.then(Screen::enter).transpose();
        let mut screen = screen.map_err(|error| CommandError::system("screen", &error))?;
        // Ctrl-C is the regular end.
        let interrupt = Interrupt::listen_quietly()?;
        if let Some(screen) = &mut screen {
            screen.draw(&board)?;
        }
        // Counts from the last answer: a late one and the next sample would have one time.
        let mut next = Instant::now() + every;
        loop {
            let outdated = async {
                match &mut screen {
                    Some(screen) => screen.outdated().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = sleep_until(next) => {}
                _ = interrupt.heard() => return Ok(Exit::DONE),
                drawn = outdated => {
                    drawn.map_err(|error| CommandError::system("screen", &error))?;
                    if let Some(screen) = &mut screen {
                        screen.draw(&board)?;
                    }
                    continue;
                }
            }
            let sample = client.broker().stats(&mut known, false).await;
            next = Instant::now() + every;
            match sample {
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
