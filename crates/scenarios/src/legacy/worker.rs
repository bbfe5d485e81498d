//! An old worker with exactly the commands of Hero's worker protocol. It records a script instead of running it.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::rngs::StdRng;
use redis::Commands;

use super::LegacyError;
use super::orders::{Account, Orders, Point};

/// Takes and runs jobs until the closing time, which it checks once a second.
///
/// # Errors
/// The server or the files fail.
pub fn work(orders: &Orders) -> Result<(), LegacyError> {
    let mut random = StdRng::seed_from_u64(orders.seed);
    let mut redis = redis::Client::open(&*orders.url)?.get_connection()?;
    let stops = format!("hero:stop_queue:{}", orders.worker_id);
    let closing_time = Orders::closing_time(&orders.dir);
    while !closing_time.exists() {
        let popped: Option<(String, String)> = redis.blpop(&orders.list, 1.0)?;
        let Some((_, id)) = popped else { continue };
        let doom = orders.doom(&mut random, &Point::OF_WORKERS);
        orders.die(doom, Point::Taken, &id)?;
        let job = format!("hero:job:{id}");
        let _data: HashMap<String, Vec<u8>> = redis.hgetall(&job)?;
        let () = redis.hset(&job, "status", "started")?;
        Account::Begun.stamp(&orders.dir, &id)?;
        orders.die(doom, Point::Begun, &id)?;
        if redis.llen::<_, usize>(&stops)? > 0 {
            let stop: Option<String> = redis.lpop(&stops, None)?;
            if stop.as_deref() == Some(&*id) {
                let () = redis.hset_multiple(&job, &[("status", "error"), ("error", "stopped")])?;
                continue;
            }
        }
        Account::Starts.add(&orders.dir, &format!("{id} {}", orders.name))?;
        orders.die(doom, Point::Run, &id)?;
        let () = redis.hset_multiple(&job, &[("status", "finished"), ("output", &*id)])?;
        let reply = format!("hero:reply:{id}");
        if redis.exists(&reply)? {
            let () = redis.lpush(&reply, &id)?;
        }
    }
    Ok(())
}
