//! Calls of actions with Meshwork's client and service in their default settings, except for a slot for each call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use meshwork::protocol::nooble::{ActionContext, Client, Request, Service, ServiceHandle};
use meshwork_model::keys::nooble::Dialect;
use meshwork_model::nooble::Data;
use serde_json::json;
use tokio::task::JoinSet;

use super::figure::{Pace, payload};
use super::ground::Ground;
use super::latency::{WARM_UP, timed};
use super::{BenchError, PAYLOAD};

/// Name of the action.
const ECHO: &str = "echo.run";
/// Slots of a service by default.
const SLOTS: usize = 10;
/// Timeout of a call, far longer than the slowest machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client and a service, each with its own connections, which already know each other.
pub(super) struct Pair {
    client: Client,
    service: ServiceHandle,
    data: Data,
}

impl Pair {
    pub(super) async fn start(
        ground: &Ground,
        dialect: Dialect,
        in_flight: usize,
    ) -> Result<Self, BenchError> {
        let of_service = Client::new(ground.actions(dialect).await?, "echo");
        let echo = async |data: Data, _: ActionContext| Ok::<_, String>(data);
        let service = Service::new(&of_service).handle(ECHO, echo);
        let service = service.concurrency(in_flight.max(SLOTS)).start().await?;
        service.registered().await;
        let data = Data::of(&json!({ "payload": payload(PAYLOAD) }));
        let pair = Self {
            client: Client::new(ground.actions(dialect).await?, "caller"),
            service,
            data: data.map_err(meshwork::protocol::nooble::Error::from)?,
        };
        for _ in 0..WARM_UP {
            call(&pair.client, &pair.data).await?;
        }
        Ok(pair)
    }

    /// Makes this many calls, `in_flight` at the same time.
    pub(super) async fn calls(
        self,
        calls: usize,
        in_flight: usize,
    ) -> Result<Duration, BenchError> {
        let next = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..in_flight {
            let (client, data) = (self.client.clone(), self.data.clone());
            let next = Arc::clone(&next);
            tasks.spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < calls {
                    call(&client, &data).await?;
                }
                Ok::<_, BenchError>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|why| BenchError::Odd(why.to_string()))??;
        }
        let took = began.elapsed();
        self.service.stop().await;
        Ok(took)
    }

    /// Makes one call at a time to an idle service.
    pub(super) async fn latency(self, samples: usize, pace: Pace) -> Result<Vec<f64>, BenchError> {
        let (client, data) = (self.client.clone(), self.data.clone());
        let one = move || {
            let (client, data) = (client.clone(), data.clone());
            async move { call(&client, &data).await }
        };
        let times = timed(samples, pace, one).await;
        self.service.stop().await;
        times
    }
}

async fn call(client: &Client, data: &Data) -> Result<(), BenchError> {
    let request = Request::with_data(ECHO, data.clone());
    let answer: Data = client.ask(request, PATIENCE).await?;
    match answer == *data {
        true => Ok(()),
        false => Err(BenchError::Odd(format!(
            "{data} was answered with {answer}"
        ))),
    }
}
