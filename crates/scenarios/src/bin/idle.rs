//! Cost of idle workers, and their latency for a job. Measures only; asserts nothing.
//!
//! `cargo run --release -p meshwork-scenarios --bin idle -- redis://127.0.0.1:6379/0`, on a server without other
//! clients: it counts every call of every client.

use std::time::{Duration, Instant};

use meshwork::{Client, Worker};
use meshwork_model::name::JobId;
use meshwork_test_servers::calls::Calls;
use tokio::sync::mpsc;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SAMPLES: usize = 300;
const WORKERS: usize = 50;
const WATCHED: Duration = Duration::from_secs(20);
/// Time longer than a job takes from submission until the worker is idle again.
const SETTLE: Duration = Duration::from_millis(10);

#[meshwork::job]
struct Note(String);

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).ok_or("usage: idle REDIS_URL")?;
    let client = Client::open(&url).await?;
    let (ran, mut runs) = mpsc::unbounded_channel();
    let note = move |_: Note| {
        // The receiver lives as long as the program.
        let _ = ran.send(Instant::now());
        async { Ok::<_, String>(()) }
    };
    let worker = Worker::new(&client).job(note.clone());
    let first = worker.clone().start().await?;
    first.registered().await;
    pickup("submit", &client, &mut runs, false).await?;
    pickup("plain LPUSH", &client, &mut runs, true).await?;
    let calls = Calls::of(&url).await?;
    calls_while_idle(&calls, 1).await;
    let mut others = Vec::new();
    for _ in 1..WORKERS {
        // Each worker has its own connections, as if it were a process.
        others.push(
            Worker::new(&Client::open(&url).await?)
                .job(note.clone())
                .start()
                .await?,
        );
    }
    for other in &others {
        other.registered().await;
    }
    calls_per_job(&client, &calls).await?;
    while runs.try_recv().is_ok() {}
    calls_while_idle(&calls, WORKERS).await;
    for other in others {
        other.stop().await;
    }
    first.stop().await;
    Ok(())
}

/// Times a job from just before the call that pushes it to the first line of the handler.
async fn pickup(
    how: &str,
    client: &Client,
    runs: &mut mpsc::UnboundedReceiver<Instant>,
    plain: bool,
) -> Result<()> {
    let conn = &mut client.broker().conn().clone();
    let keys = client.broker().keys();
    let mut pace = tokio::time::interval(SETTLE);
    let mut took = Vec::with_capacity(SAMPLES);
    for sample in 0..SAMPLES {
        pace.tick().await;
        let id: JobId = format!("plain-{sample}").parse()?;
        if plain {
            let mut store = redis::cmd("HSET");
            store.arg(keys.job_hash_key(&id));
            store.arg(&["status", "dispatched", "script", "\"x\""]);
            store.exec_async(conn).await?;
        }
        let began = Instant::now();
        if plain {
            let queue = keys.work_queue_type(&"note".parse()?);
            redis::cmd("LPUSH")
                .arg(queue)
                .arg(id.as_str())
                .exec_async(conn)
                .await?;
        } else {
            client.enqueue(Note("x".to_owned())).await?;
        }
        took.push(
            runs.recv()
                .await
                .ok_or("the worker ended")?
                .duration_since(began),
        );
    }
    took.sort();
    meshwork_test_servers::say(format_args!(
        "pickup by {how}: p50 {:?}, p99 {:?}",
        took[SAMPLES / 2],
        took[SAMPLES * 99 / 100]
    ));
    Ok(())
}

async fn calls_while_idle(calls: &Calls, workers: usize) {
    let each = calls.per_second(WATCHED).await / workers as f64;
    meshwork_test_servers::say(format_args!(
        "{workers} idle: {each:.2} calls a second each"
    ));
}

/// Counts the calls from the submission of a job until its record says `finished` and the workers are idle again.
async fn calls_per_job(client: &Client, calls: &Calls) -> Result<()> {
    let mut made = Vec::with_capacity(SAMPLES);
    let mut pace = tokio::time::interval(SETTLE);
    for _ in 0..SAMPLES {
        pace.tick().await;
        let before = calls.so_far();
        client.enqueue(Note("x".to_owned())).await?;
        pace.tick().await;
        made.push(calls.so_far() - before);
    }
    made.sort_unstable();
    meshwork_test_servers::say(format_args!(
        "a job among {WORKERS} idle workers: p50 {} calls, p90 {} (renewals that fall between included)",
        made[SAMPLES / 2],
        made[SAMPLES * 9 / 10]
    ));
    Ok(())
}
