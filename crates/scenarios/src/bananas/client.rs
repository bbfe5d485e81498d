//! A client of Bananas, in each variant: its commands for a new job, and its wait for the result.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use meshwork_model::bananas::ClientVariant;
use redis::{Commands, Connection};

use super::BananasError;
use super::orders::{Account, Batch, LATE, Orders, Submission, now, pause, submitted};
use super::record::{Record, stamp};
use meshwork_conformance::accept;

/// Timeout of the wait for a job.
const PATIENCE: Duration = Duration::from_secs(300);
/// Polling interval of the clients in Python and TypeScript.
const LOOK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));

type Fields = HashMap<String, String>;

/// Submits a batch.
///
/// # Errors
/// The server or the files fail.
pub fn submit(orders: &Orders, batch: &Batch) -> Result<(), BananasError> {
    let client = redis::Client::open(&*orders.url)?;
    let mut redis = client.get_connection()?;
    let can_wait = matches!(
        orders.make,
        ClientVariant::Python | ClientVariant::TypeScript
    );
    for submission in batch.submissions(can_wait) {
        let list = push(&mut redis, orders.make, &submission)?;
        submitted(orders, &submission, &list)?;
        if submission.waited_for {
            let saw = match wait(&client, &mut redis, orders.make, &submission.id)? {
                Ok(status) => status,
                Err(why) => why,
            };
            Account::Answers.add(&orders.dir, &format!("{} {saw}", submission.id))?;
        }
    }
    Ok(())
}

fn record(make: ClientVariant, submission: &Submission) -> Record {
    let now = now();
    let blank = if make == ClientVariant::Python {
        " "
    } else {
        ""
    };
    let written = stamp(make, now);
    let sdk = matches!(make, ClientVariant::Python | ClientVariant::TypeScript);
    let unrouted = sdk && submission.route == "default";
    Record {
        id: submission.id.clone(),
        name: submission.name.clone(),
        payload: format!("{{\"n\":{blank}{}}}", submission.number),
        status: if submission.later {
            "scheduled"
        } else {
            "pending"
        }
        .to_owned(),
        priority: submission.priority.to_owned(),
        created_at: written.clone(),
        updated_at: written,
        scheduled_for: match submission.later {
            true => stamp(make, now + LATE),
            false => String::new(),
        },
        max_retries: 3,
        routing_key: if unrouted { "" } else { submission.route }.to_owned(),
        ..Record::default()
    }
}

/// Sends the commands of this variant. Returns the key to which the id was pushed.
fn push(
    redis: &mut Connection,
    make: ClientVariant,
    submission: &Submission,
) -> Result<String, BananasError> {
    let (key, text) = (
        format!("bananas:job:{}", submission.id),
        record(make, submission).write(make),
    );
    let (route, priority) = (submission.route, submission.priority);
    let list = match make {
        ClientVariant::Go if route != "default" => {
            format!("bananas:route:{route}:queue:{priority}")
        }
        ClientVariant::GoRouted => format!("bananas:route:{route}:queue:{priority}"),
        _ => format!("bananas:queue:{priority}"),
    };
    match make {
        ClientVariant::Go | ClientVariant::GoRouted => {
            let mut pipe = redis::pipe();
            pipe.set(key, text).lpush(&list, &submission.id);
            pipe.query::<()>(redis)?;
            let prefix = match make {
                ClientVariant::Go => "bananas",
                _ => "bananas:route:default",
            };
            let mut depths = redis::pipe();
            for priority in ["high", "normal", "low"] {
                depths.llen(format!("{prefix}:queue:{priority}"));
            }
            depths.query::<()>(redis)?;
        }
        ClientVariant::Python | ClientVariant::TypeScript => {
            let () = redis.set(key, text)?;
            if submission.later {
                let due = (now() + LATE).as_secs_f64();
                let score = match make {
                    ClientVariant::Python => format!("{due:.6}"),
                    _ => format!("{due:.3}"),
                };
                let () = redis.zadd("bananas:queue:scheduled", &submission.id, score)?;
                return Ok("bananas:queue:scheduled".to_owned());
            }
            let () = redis.lpush(&list, &submission.id)?;
        }
    }
    Ok(list)
}

/// Waits for a job as this variant does. Returns the result that the caller gets, or the reason why the client gives
/// up.
fn wait(
    client: &redis::Client,
    redis: &mut Connection,
    make: ClientVariant,
    id: &str,
) -> Result<Result<String, String>, BananasError> {
    let key = format!("bananas:result:{id}");
    let given = |fields: Fields| {
        accept::result(make, &fields)?;
        Ok(fields.get("status").cloned().unwrap_or_default())
    };
    let until = Instant::now() + PATIENCE;
    if matches!(make, ClientVariant::Go | ClientVariant::GoRouted) {
        let fields: Fields = redis.hgetall(&key)?;
        if !fields.is_empty() {
            return Ok(given(fields));
        }
        if let Err(why) = listen(client, id, make)? {
            return Ok(Err(why));
        }
        return Ok(given(redis.hgetall(&key)?));
    }
    let look = if make == ClientVariant::Python {
        LOOK.0
    } else {
        LOOK.1
    };
    loop {
        let fields: Fields = redis.hgetall(&key)?;
        if !fields.is_empty() {
            return Ok(given(fields));
        }
        if Instant::now() > until {
            return Ok(Err("nothing came".to_owned()));
        }
        pause(look);
    }
}

/// Waits as the client in Go does: it checks the job, then subscribes. It misses messages in between, and checks
/// again at its timeout, which is short here.
fn listen(
    client: &redis::Client,
    id: &str,
    make: ClientVariant,
) -> Result<Result<(), String>, BananasError> {
    let mut redis = client.get_connection()?;
    let mut look = client.get_connection()?;
    redis.set_read_timeout(Some(LOOK.1))?;
    let until = Instant::now() + PATIENCE;
    let mut heard = redis.as_pubsub();
    heard.subscribe(format!("bananas:result:notify:{id}"))?;
    loop {
        match heard.get_message() {
            Ok(message) => return Ok(accept::word(make, &message.get_payload::<String>()?)),
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error.into()),
        }
        if look.exists(format!("bananas:result:{id}"))? {
            return Ok(Ok(()));
        }
        if Instant::now() > until {
            return Ok(Err("job did not complete within timeout".to_owned()));
        }
    }
}
