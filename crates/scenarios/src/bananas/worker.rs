//! A worker of Bananas, in the two variants in Go, with one thread for each goroutine.

use std::collections::HashMap;
use std::thread;

use meshwork_model::bananas::ClientVariant;
use redis::{Commands, Connection};

use super::BananasError;
use super::orders::{Account, BOOM, Orders, Shift, closing_time, is_flaky, now};
use super::record::{Record, second, stamp};

/// Timeouts of BLPOP in seconds: at each list, and at the last one. The real ones are 1 and 3, and a goroutine waits
/// at each empty list before a job of a later list. A thousandth of that lets thousands of jobs take seconds.
const BLOCK: (f64, f64) = (0.001, 0.003);
const PROCESSING: &str = "bananas:queue:processing";

/// Takes and runs jobs until the closing time.
///
/// # Errors
/// The server or the files fail, or a record cannot be read.
pub fn work(orders: &Orders, shift: &Shift) -> Result<(), BananasError> {
    let lists = lists(orders.make, shift);
    thread::scope(|scope| {
        let slots: Vec<_> = (0..shift.slots)
            .map(|_| scope.spawn(|| goroutine(orders, &lists)))
            .collect();
        for slot in slots {
            slot.join()
                .map_err(|_| BananasError::Odd("a goroutine panicked".to_owned()))??;
        }
        Ok(())
    })
}

/// Returns the lists of the worker. The newest variant reads no lists of routes, whatever its routes are.
fn lists(make: ClientVariant, shift: &Shift) -> Vec<String> {
    let of = |prefix: String| {
        ["high", "normal", "low"].map(|priority| format!("{prefix}:queue:{priority}"))
    };
    match make {
        ClientVariant::GoRouted => {
            let routes = shift.routes.iter();
            routes
                .flat_map(|route| of(format!("bananas:route:{route}")))
                .collect()
        }
        _ => of("bananas".to_owned()).into(),
    }
}

fn goroutine(orders: &Orders, lists: &[String]) -> Result<(), BananasError> {
    let mut redis = redis::Client::open(&*orders.url)?.get_connection()?;
    while !closing_time(&orders.dir).exists() {
        for (at, list) in lists.iter().enumerate() {
            let last = at + 1 == lists.len();
            let id: Option<String> = redis::cmd("BRPOPLPUSH")
                .arg(list)
                .arg(PROCESSING)
                .arg(if last { BLOCK.1 } else { BLOCK.0 })
                .query(&mut redis)?;
            if let Some(id) = id {
                run(&mut redis, orders, &id)?;
                break;
            }
        }
    }
    Ok(())
}

/// Runs a job with the commands in the order of Bananas: first the result, then the record.
fn run(redis: &mut Connection, orders: &Orders, id: &str) -> Result<(), BananasError> {
    let key = format!("bananas:job:{id}");
    let job = read(redis, &key)?;
    Account::Starts.add(&orders.dir, &format!("{id} {}", orders.name))?;
    let failed = is_flaky(&job.name) && job.attempts == 0;
    let (result, at) = (format!("bananas:result:{id}"), now());
    let mut ended = HashMap::from([
        (
            "status",
            if failed { "failed" } else { "completed" }.to_owned(),
        ),
        ("completed_at", second(at)),
        ("duration_ms", "0".to_owned()),
    ]);
    if failed {
        ended.insert("error", BOOM.to_owned());
    }
    let ended: Vec<_> = ended.into_iter().collect();
    let mut pipe = redis::pipe();
    pipe.hset_multiple(&result, &ended)
        .expire(&result, if failed { 86_400 } else { 3_600 })
        .publish(format!("bananas:result:notify:{id}"), "ready");
    pipe.query::<()>(redis)?;
    let mut job = if failed { job } else { read(redis, &key)? };
    job.updated_at = stamp(orders.make, at);
    let mut pipe = redis::pipe();
    if failed {
        job.attempts += 1;
        BOOM.clone_into(&mut job.error);
        "pending".clone_into(&mut job.status);
        let due = at + std::time::Duration::from_secs(1 << job.attempts);
        job.scheduled_for = stamp(orders.make, due);
        pipe.set(&key, job.write(orders.make))
            .zadd("bananas:queue:scheduled", id, due.as_secs())
            .lrem(PROCESSING, 1, id);
    } else {
        "completed".clone_into(&mut job.status);
        pipe.lrem(PROCESSING, 1, id)
            .set_ex(&key, job.write(orders.make), 86_400);
    }
    Ok(pipe.query::<()>(redis)?)
}

/// Reads the record of a job. No scenario corrupts records, so an unreadable one is an error.
pub(super) fn read(redis: &mut Connection, key: &str) -> Result<Record, BananasError> {
    let text: Option<String> = redis.get(key)?;
    let read = Record::read(text.as_deref().unwrap_or_default());
    read.map_err(|why| BananasError::Odd(format!("{key}: {why}: {text:?}")))
}
