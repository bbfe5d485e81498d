//! `meshwork queue stats`: reads the figures of all queues, again and again with --watch. How they are drawn
//! is in [`crate::board`].

use std::io::IsTerminal;
use std::time::Duration;

use meshwork_broker::KnownQueues;
use tokio::time::{Instant, MissedTickBehavior};

use crate::board::{Board, Screen};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;
use crate::value;

/// Show how much waits in each queue, since when, and how fast it comes and goes
///
/// What is said per second is that of the last --interval. Queues by what follows `hero:q:work:type:` in
/// their names; lists of priorities that were never used are left out. Errors are counted since the
/// beginning, by kind.
#[derive(Debug, clap::Args)]
pub(crate) struct Stats {
    /// Go on until Ctrl-C; with --json, a line each time
    #[arg(short, long)]
    watch: bool,
    /// Between two looks, in seconds, from 0.5 to 3600 [default: 1; with --watch 2]
    #[arg(long, value_name = "S", value_parser = value::interval, allow_hyphen_values = true)]
    interval: Option<Duration>,
}

impl Stats {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let default = if self.watch { 2 } else { 1 };
        let every = self.interval.unwrap_or(Duration::from_secs(default));
        let mut known = KnownQueues::default();
        let mut board = Board::new(context.keys());
        board.take(client.broker().stats(&mut known, true).await?);
        let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if !self.watch {
            ticks.tick().await;
            board.take(client.broker().stats(&mut known, false).await?);
            if context.out.is_json() {
                context.out.json(&board.json())?;
            } else {
                context.out.raw(board.drawn(None).as_bytes())?;
            }
            return Ok(Exit::DONE);
        }
        let terminal = !context.out.is_json() && std::io::stdout().is_terminal();
        let mut screen = terminal.then(Screen::enter);
        // Ctrl-C is how one ends it, and no fault.
        let interrupt = Interrupt::listen_quietly()?;
        if let Some(screen) = &mut screen {
            screen.draw(&board)?;
        }
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = interrupt.heard() => return Ok(Exit::DONE),
            }
            match client.broker().stats(&mut known, false).await {
                Ok(stats) => board.take(stats),
                // It may be back at the next look.
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
