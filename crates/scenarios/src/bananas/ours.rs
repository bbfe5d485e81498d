//! Meshwork's worker and client, each as a process. The worker's handlers only record their start, so that thousands
//! of jobs take seconds.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::protocol::bananas::{Client, Request, Worker};
use meshwork::runtime::JobContext;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::BananasError;
use super::orders::{Account, BOOM, Batch, LATE, Orders, Shift, now, submitted};

/// Timeout of the client's wait for a job.
const PATIENCE: Duration = Duration::from_secs(300);

async fn client(orders: &Orders) -> Result<Client, BananasError> {
    Ok(Client::open(&orders.url).await?.with_variant(orders.make))
}

/// Works until SIGTERM.
///
/// # Errors
/// The server cannot be reached, or the system provides no signals.
pub async fn work(orders: &Orders, shift: &Shift) -> Result<(), BananasError> {
    let mut term = signal(SignalKind::terminate()).map_err(BananasError::io("signals"))?;
    let client = client(orders).await?;
    let worker = Worker::new(&client)
        .handle("work", handler(orders, false))
        .handle("flaky", handler(orders, true))
        .routes(shift.routes.join(",").parse()?)
        .concurrency(shift.slots)
        .client_variant(orders.make)
        .start()
        .await?;
    term.recv().await;
    worker.stop().await;
    Ok(())
}

/// Does the same for imported jobs, which are jobs of Meshwork.
///
/// # Errors
/// The server cannot be reached, or the system provides no signals.
pub async fn work_over(orders: &Orders, shift: &Shift) -> Result<(), BananasError> {
    let mut term = signal(SignalKind::terminate()).map_err(BananasError::io("signals"))?;
    let client = meshwork::Client::open(&orders.url).await?;
    let worker = meshwork::Worker::new(&client)
        .handle("work", handler(orders, false))
        .handle("flaky", handler(orders, true))
        .routes(shift.routes.join(",").parse()?)
        .concurrency(shift.slots)
        .start()
        .await?;
    term.recv().await;
    worker.stop().await;
    Ok(())
}

/// Records the start. The first run of a flaky job fails.
fn handler(
    orders: &Orders,
    flaky: bool,
) -> impl Fn(Value, JobContext) -> std::future::Ready<Result<Value, String>> + Send + Sync + 'static
{
    let (dir, name): (PathBuf, String) = (orders.dir.clone(), orders.name.clone());
    move |payload, context| {
        let line = format!("{} {name}", context.job_id);
        let noted = Account::Starts.add(&dir, &line);
        std::future::ready(match noted {
            Err(error) => Err(error.to_string()),
            Ok(()) if flaky && context.attempt == 1 => Err(BOOM.to_owned()),
            Ok(()) => Ok(payload),
        })
    }
}

/// Submits a batch.
///
/// # Errors
/// The server or the files fail.
pub async fn submit(orders: &Orders, batch: &Batch) -> Result<(), BananasError> {
    let client = client(orders).await?;
    for submission in batch.submissions(true) {
        let mut request = Request::new(&submission.name, &json!({"n": submission.number}))?
            .id(submission.id.parse()?)
            .priority(submission.priority.parse().unwrap_or_default());
        if submission.route != "default" {
            request = request.route(submission.route.parse()?);
        }
        if submission.later {
            request = request.at_ms(u64::try_from((now() + LATE).as_millis()).unwrap_or(u64::MAX));
        }
        let id = client.enqueue(request).await?;
        let list = if submission.later { "later" } else { "at-once" };
        submitted(
            orders,
            &submission,
            &format!("{list}:{}:{}", submission.route, submission.priority),
        )?;
        if submission.waited_for {
            let outcome = client.wait(&id, PATIENCE).await?;
            let saw = if outcome.succeeded {
                "completed"
            } else {
                "failed"
            };
            Account::Answers.add(&orders.dir, &format!("{id} {saw}"))?;
        }
    }
    Ok(())
}
