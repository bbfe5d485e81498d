//! `meshwork outbox relay`.

use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_outbox::Relay;
use serde::Serialize;

use super::database::{OutboxArgs, with_pool};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;

/// Move the rows of an outbox to the store, until SIGINT or SIGTERM
///
/// A row is deleted when the store has its job. Rows that the store refuses stay, with the error, and do not hold up
/// others: `meshwork outbox list`. Several relays can run at once. While the database is away, also at the start, or the
/// store, the relay tries again.
#[derive(Debug, clap::Args)]
pub(crate) struct RelayCommand {
    #[command(flatten)]
    outbox: OutboxArgs,
    /// Look for rows this often; notifications of the database wake the relay in between
    #[arg(long, value_name = "DURATION", default_value = "5", value_parser = parsers::interval,
          allow_hyphen_values = true)]
    poll: Duration,
    /// Retention of the ids of processed jobs; a job that runs again after it has its effect again
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = parsers::span,
          allow_hyphen_values = true)]
    keep_processed: Duration,
    /// Longest wait for the batch under way at shutdown
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    shutdown_timeout: Duration,
}

/// First line of output.
#[derive(Serialize)]
struct Ready {
    event: &'static str,
}

/// Repeats a call while the database is away, with one line about it: a relay starts with the host, in any order.
async fn patiently<T>(call: impl AsyncFn() -> Result<T, CommandError>) -> Result<T, CommandError> {
    let (mut backoff, mut is_said) = (Backoff::new(), false);
    loop {
        match call().await {
            Err(error) if error.is_temporary() => {
                if !std::mem::replace(&mut is_said, true) {
                    note(format_args!(
                        "the database is away, trying again until it is there: {error}"
                    ));
                }
            }
            ended => return ended,
        }
        backoff.wait().await;
    }
}

impl RelayCommand {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen()?;
        let (outbox, options) = self.outbox.named()?;
        interrupt
            .or(patiently(async || options.check().await))
            .await?;
        let pool = options.pool();
        let client = interrupt.or(context.client()).await?;
        // Names missing tables before the relay reports that it is ready.
        let backlog = patiently(async || Ok(with_pool!(&pool, |pool| outbox.backlog(pool).await)?));
        interrupt.or(backlog).await?;
        if context.out.is_json() {
            context.out.json(&Ready { event: "ready" })?;
            context.out.flush()?;
        } else {
            note("moving rows of the outbox");
        }
        let shutdown = async { _ = interrupt.heard().await };
        with_pool!(&pool, |pool| {
            let relay = Relay::new(pool, &client).outbox(&outbox);
            let relay = relay.poll(self.poll).keep_processed(self.keep_processed);
            let relay = relay.shutdown_timeout(self.shutdown_timeout);
            relay.run_until(shutdown).await
        })?;
        note(
            "rows that are left wait in the outbox: `meshwork outbox relay` moves them, `meshwork outbox list` shows those with errors",
        );
        Ok(Exit::DONE)
    }
}
