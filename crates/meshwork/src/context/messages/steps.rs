//! Steps of a coordinator in all of its contexts at once. A context whose server does not answer, such as one node of a
//! Cluster, delays no other context.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, timeout_at};

use crate::context::ContextError;
use crate::context::messages::done::Done;
use crate::context::messages::served::{Roll, Served};

/// Time after which a round does not wait for the steps that are still running. They go on during the next rounds.
const PATIENCE: Duration = Duration::from_secs(1);

/// A step in a context, with its outcome.
pub(crate) type Step<'a> = BoxFuture<'a, (Served, Result<Done, ContextError>)>;

/// The running steps of one coordinator: at most one per context.
pub(crate) struct Steps<'a> {
    running: FuturesUnordered<Step<'a>>,
    /// True if it is logged that some contexts cannot be reached.
    warned: bool,
}

impl<'a> Steps<'a> {
    pub(crate) fn new() -> Self {
        Self {
            running: FuturesUnordered::new(),
            warned: false,
        }
    }

    /// Runs `step` in each context that does not pause.
    ///
    /// # Errors
    /// No context can be reached.
    pub(crate) async fn round(
        &mut self,
        roll: &mut Roll,
        step: impl Fn(Served) -> Step<'a>,
    ) -> Result<Done, ContextError> {
        self.running.extend(roll.lend().into_iter().map(step));
        let until = Instant::now() + PATIENCE;
        let (mut all, mut served, mut failed) = (Done::default(), 0, Vec::new());
        while let Ok(Some((mut one, done))) = timeout_at(until, self.running.next()).await {
            match done {
                Ok(done) => {
                    all.add(done);
                    served += 1;
                    one.reached();
                    roll.take_back(one);
                }
                Err(error) => failed.push((one, error)),
            }
        }
        // All of them wait for one server: the next round tries it again.
        let none = served == 0 && self.running.is_empty();
        let mut first = None;
        for (mut one, error) in failed {
            if !none {
                one.pause();
            }
            roll.take_back(one);
            first.get_or_insert(error);
        }
        match first {
            Some(error) if none => return Err(error),
            Some(error) if !self.warned => {
                tracing::warn!(%error, "messages of some contexts not delivered: trying again");
                self.warned = true;
            }
            Some(_) => {}
            None => self.warned &= roll.has_pauses() || !self.running.is_empty(),
        }
        Ok(all)
    }

    /// Completes the begun steps.
    pub(crate) async fn finish(mut self) {
        while self.running.next().await.is_some() {}
    }
}
