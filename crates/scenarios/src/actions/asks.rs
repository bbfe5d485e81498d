//! The client, with two hundred calls in flight, and the outcome of each call.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meshwork::protocol::nooble::{Client, Request};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ActionsError;
use super::call::{Call, PATIENCE, SERVICES, correlation};

/// Calls in flight.
const IN_FLIGHT: usize = 200;
/// One call in this many goes to a service that calls the other service.
const RELAYED: usize = 10;

/// Outcomes of calls by number. An error says why there was no right answer.
pub(super) type Outcomes = HashMap<usize, Result<(), String>>;

/// Calls, and the number of answered ones, which times the kills.
pub(super) struct Asks {
    client: Client,
    answered: watch::Sender<usize>,
}

impl Asks {
    pub(super) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self {
            client,
            answered: watch::Sender::new(0),
        })
    }

    /// Returns when this many calls have an answer.
    pub(super) async fn answered(&self, many: usize) {
        let mut received = self.answered.subscribe();
        // The sender lives as long as `self`.
        let _ = received.wait_for(|answered| *answered >= many).await;
    }

    /// Makes one call and checks its answer.
    pub(super) async fn one(&self, action_type: &str, number: usize) -> Result<(), String> {
        let call = Call {
            call: number.to_string(),
        };
        let request = Request::new(action_type, &call).map_err(|error| error.to_string())?;
        let request = request.correlation_id(&correlation(number));
        let answer = self.client.ask::<Call>(request, PATIENCE).await;
        self.answered.send_modify(|answered| *answered += 1);
        match answer {
            Ok(answer) if answer == call => Ok(()),
            Ok(answer) => Err(format!("it was answered {answer:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Makes the calls with these numbers, [`IN_FLIGHT`] at a time.
    pub(super) async fn all(self: Arc<Self>, calls: usize) -> Result<Outcomes, ActionsError> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..IN_FLIGHT {
            let (asks, next) = (Arc::clone(&self), Arc::clone(&next));
            tasks.spawn(async move {
                let mut outcomes = Outcomes::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= calls {
                        return outcomes;
                    }
                    let service = SERVICES[number % SERVICES.len()];
                    // Both services get the same number of these calls.
                    let relayed = (number / SERVICES.len()).is_multiple_of(RELAYED);
                    let verb = if relayed { "relay" } else { "run" };
                    let outcome = asks.one(&format!("{service}.{verb}"), number).await;
                    outcomes.insert(number, outcome);
                }
            });
        }
        let mut outcomes = Outcomes::new();
        while let Some(ended) = tasks.join_next().await {
            outcomes.extend(ended.map_err(|why| ActionsError::Odd(why.to_string()))?);
        }
        Ok(outcomes)
    }
}
