//! A web program: `cargo run -p meshwork --example web` prints its URL. `curl -d sales URL/reports` enqueues a report and
//! prints its id, `curl URL/reports/ID` shows its state or result, and `curl URL/reports/ID/progress` follows it.
#![allow(clippy::print_stdout, reason = "that is its purpose")]
use std::{convert::Infallible, time::Duration};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::{Router, routing::get, routing::post};
use futures_util::{Stream, stream};
use meshwork::{Client, Job, JobHandle, JobStatus, Progress, Worker, shutdown_signal};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(output = String, unique = "report-{topic}")]
struct Report {
    topic: String,
}

async fn write(job: Report, progress: Progress) -> Result<String, String> {
    for page in 1..=3 {
        progress.set(f64::from(page) / 3.0, &format!("page {page}"));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Ok(format!("all about {}", job.topic))
}

type Answer<T> = Result<T, (StatusCode, String)>;

fn refused(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, format!("{error}\n"))
}

fn report(client: &Client, id: &str) -> Answer<JobHandle<Report>> {
    Ok(client.job(id.parse().map_err(refused)?))
}

async fn create(State(client): State<Client>, topic: String) -> Answer<String> {
    let job = client.enqueue(Report { topic }).await.map_err(refused)?;
    Ok(job.id().to_string())
}

async fn show(State(client): State<Client>, Path(id): Path<String>) -> Answer<String> {
    let job = report(&client, &id)?;
    match job.status().await.map_err(refused)? {
        Some(JobStatus::Finished) => job.result().await.map_err(refused),
        status => Ok(status.map_or_else(String::new, |status| status.to_string())),
    }
}

async fn follow(
    State(client): State<Client>,
    Path(id): Path<String>,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let job = report(&client, &id)?;
    let steps = stream::unfold(Some(job), async |job| {
        let job = job?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let record = job.record().await.ok()?;
        let has_ended = record.status().is_none_or(|status| status.is_final());
        let event = Event::default().data(record.progress.unwrap_or_default());
        Some((Ok(event), (!has_ended).then_some(job)))
    });
    Ok(Sse::new(steps))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::builder().directory("target/web").connect().await?;
    let worker = Worker::new(&client).job(write).start().await?;
    let paths = Router::new().route("/reports", post(create));
    let paths = paths.route("/reports/{id}", get(show));
    let paths = paths.route("/reports/{id}/progress", get(follow));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let server = axum::serve(listener, paths.with_state(client));
    server.with_graceful_shutdown(shutdown_signal()).await?;
    worker.stop().await;
    Ok(())
}
