//! A scheduler of Bananas, in the two variants in Go: it has no lock and polls once a second.

use std::time::Duration;

use meshwork_model::bananas::ClientVariant;
use redis::Commands;

use super::BananasError;
use super::orders::{Orders, closing_time, now, pause};
use super::record::Record;

const SCHEDULED: &str = "bananas:queue:scheduled";
const EVERY: Duration = Duration::from_secs(1);

/// Moves due jobs until the closing time. Ids without a record stay, and are read again at each poll.
///
/// # Errors
/// The server fails, or a record cannot be read.
pub fn schedule(orders: &Orders) -> Result<(), BananasError> {
    let mut redis = redis::Client::open(&*orders.url)?.get_connection()?;
    while !closing_time(&orders.dir).exists() {
        let due: Vec<String> = redis.zrangebyscore(SCHEDULED, "-inf", now().as_secs())?;
        let keys: Vec<String> = due.iter().map(|id| format!("bananas:job:{id}")).collect();
        let records: Vec<Option<String>> = match keys.is_empty() {
            true => Vec::new(),
            false => redis.mget(&keys)?,
        };
        for ((id, key), text) in due.iter().zip(&keys).zip(records) {
            let Some(text) = text else { continue };
            let read = Record::read(&text);
            let mut job = read.map_err(|why| BananasError::Odd(format!("{key}: {why}: {text}")))?;
            job.scheduled_for = String::new();
            let priority = &job.priority;
            let list = match (orders.make, job.routing_key.as_str()) {
                (ClientVariant::GoRouted, _) => format!("bananas:route:default:queue:{priority}"),
                (_, "" | "default") => format!("bananas:queue:{priority}"),
                (_, route) => format!("bananas:route:{route}:queue:{priority}"),
            };
            let mut pipe = redis::pipe();
            pipe.set(key, job.write(orders.make))
                .lpush(list, id)
                .zrem(SCHEDULED, id);
            pipe.query::<()>(&mut redis)?;
        }
        pause(EVERY);
    }
    Ok(())
}
