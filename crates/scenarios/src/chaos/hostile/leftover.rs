//! Finds keys that are left in the store without a reason when all jobs have ended.

use std::collections::HashSet;

use meshwork_broker::Broker;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;

use super::failed;
use crate::chaos::ChaosError;
use meshwork_conformance::snapshot;

/// Keys that stay, by their names in the scripts. They have ended jobs, which the workers keep for a configured time;
/// events; settings; counters; the position of the search for jobs of foreign workers; and the latest time.
const STAY: [&str; 10] = [
    "ENDED",
    "DEAD",
    "EVENTS",
    "CONFIG",
    "SEQ",
    "LEADER",
    "LISTS",
    "WALK",
    "CLOCK",
    "HISTORIES",
];
/// Registrations of listeners: sorted sets with the expiry of each entry in milliseconds.
const LISTEN: [&str; 2] = ["PREFETCH_LISTS", "ACTORS"];
/// Time that an entry of a killed worker may stay beyond its expiry, in milliseconds. Its wait may last for another
/// half a minute, and then another worker has to remove it.
const LATE_MS: u64 = 45_000;

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: String,
    /// True if it has a time to live.
    pub(super) ends: bool,
}

/// The content of the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) keys: Vec<Key>,
    /// Ended jobs, whose records expire some day.
    pub(super) ended: HashSet<String>,
    /// Registered listeners, and the expiry of their registrations in milliseconds.
    pub(super) listeners: Vec<(String, u64)>,
    /// The store's time, in milliseconds.
    pub(super) now: u64,
}

impl Held {
    pub(super) async fn read(broker: &Broker) -> Result<Self, ChaosError> {
        let error_of = |error: redis::RedisError| failed(&error);
        let (keys, conn) = (broker.keys(), broker.conn());
        let names = snapshot::keys(conn, keys.namespace().as_str())
            .await
            .map_err(error_of)?;
        let mut held = Self::default();
        let mut pipe = redis::pipe();
        for name in &names {
            pipe.cmd("PTTL").arg(name);
        }
        for of in [keys.ended(), keys.dead()] {
            pipe.cmd("ZRANGE").arg(of).arg(0).arg(-1);
        }
        let mut named = keys.script_names();
        named.retain(|(name, _)| LISTEN.contains(name));
        for (_, of) in named {
            pipe.cmd("ZRANGE").arg(of).arg(0).arg(-1).arg("WITHSCORES");
        }
        let mut told_of: Vec<redis::Value> = pipe
            .query_async(&mut conn.clone())
            .await
            .map_err(error_of)?;
        let mut of = told_of.split_off(names.len());
        for listeners in of.split_off(2) {
            let entries: Vec<(String, f64)> =
                redis::from_redis_value(listeners).map_err(|it| failed(&it))?;
            let entry = |(name, until): (String, f64)| (name, until as u64);
            held.listeners.extend(entries.into_iter().map(entry));
        }
        for ended in of {
            let ids: Vec<String> = redis::from_redis_value(ended).map_err(|it| failed(&it))?;
            held.ended.extend(ids);
        }
        for (name, ttl) in names.iter().zip(told_of) {
            let ttl: i64 = redis::from_redis_value(ttl).map_err(|it| failed(&it))?;
            // A key that has expired since is not reported.
            if ttl != -2 {
                let name = String::from_utf8_lossy(name).into_owned();
                held.keys.push(Key {
                    name,
                    ends: ttl >= 0,
                });
            }
        }
        held.now = broker.now().await.map_err(|error| failed(&error))?;
        Ok(held)
    }

    /// Returns the keys without a time to live and without a reason to stay.
    pub(super) fn left(&self, keys: &JobKeys) -> Vec<String> {
        let names = keys.script_names();
        let stays = |key: &str| {
            let mut names = names.iter();
            names.any(|(name, is)| key == is && (STAY.contains(name) || LISTEN.contains(name)))
        };
        let has_reason = |key: &&Key| {
            let name = &*key.name;
            let job = name.strip_prefix(&keys.job_prefix());
            match job {
                Some(id) => self.ended.contains(id),
                None => {
                    let of_queues = [keys.queue_stats_prefix(), keys.history_key("")];
                    let is_of_queue = of_queues.iter().any(|prefix| name.starts_with(prefix));
                    key.ends || stays(name) || is_of_queue
                }
            }
        };
        let left = self.keys.iter().filter(|key| !has_reason(key));
        left.map(|key| format!("{} is left", key.name)).collect()
    }

    /// Returns the registrations of listeners whose processes neither run nor were killed lately.
    pub(super) fn strangers(&self, there: &[u32], killed: &[u32]) -> Vec<String> {
        let is_of = |name: &str, processes: &[u32]| {
            // As in the name of a worker, and as in the default instance name.
            let words = |it: &u32| [format!(".{it}."), format!(":{it}-")];
            let named = |it: &u32| words(it).iter().any(|word| name.contains(word));
            processes.iter().any(named)
        };
        let strange = |(name, until): &&(String, u64)| {
            let lately = until + LATE_MS > self.now;
            !(is_of(name, there) || lately && is_of(name, killed))
        };
        let strange = self.listeners.iter().filter(strange);
        strange
            .map(|(name, _)| format!("the listener {name} is left"))
            .collect()
    }

    /// Returns the ids that are noted as ended and have no record.
    pub(super) fn without_record(&self, keys: &JobKeys) -> Vec<String> {
        let there: HashSet<&str> = self.keys.iter().map(|key| &*key.name).collect();
        let key = |id: &String| keys.job_hash_key(&JobId::foreign(id.clone()));
        let gone = self.ended.iter().filter(|id| !there.contains(&*key(id)));
        gone.map(|id| format!("{id} has ended, and has no record"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(keys: &[(String, bool)]) -> Held {
        let key = |(name, ends): &(String, bool)| Key {
            name: name.clone(),
            ends: *ends,
        };
        Held {
            keys: keys.iter().map(key).collect(),
            ended: HashSet::from(["a".to_owned()]),
            ..Held::default()
        }
    }

    #[test]
    fn leases_slots_prefetched_ids_and_open_jobs_are_left() {
        let keys = JobKeys::default();
        let job = |id: &str| keys.job_hash_key(&JobId::foreign(id.to_owned()));
        let fine = [
            (job("a"), false),
            (keys.ended(), false),
            (keys.log(&JobId::foreign("a".to_owned())), true),
        ];
        assert_eq!(held(&fine).left(&keys), Vec::<String>::new());
        for name in [
            keys.lease(),
            keys.slots("python"),
            keys.feed("w", "q"),
            keys.delayed(),
            keys.watch(),
            job("b"),
            format!("{}python", keys.work_prefix()),
        ] {
            let left = held(&[(name.clone(), false)]);
            assert_eq!(left.left(&keys), [format!("{name} is left")]);
        }
    }

    #[test]
    fn who_listens_is_there_or_was_killed_lately() {
        let held = Held {
            listeners: vec![("worker.11.ab q".to_owned(), 1000)],
            now: 1000 + LATE_MS - 1,
            ..Held::default()
        };
        assert_eq!(held.strangers(&[11], &[]), Vec::<String>::new());
        assert_eq!(held.strangers(&[], &[11]), Vec::<String>::new());
        assert_eq!(
            held.strangers(&[1], &[12]),
            ["the listener worker.11.ab q is left"]
        );
        let later = Held {
            now: 1000 + LATE_MS,
            ..held
        };
        assert_eq!(later.strangers(&[], &[11]).len(), 1);
    }

    #[test]
    fn an_end_without_a_record_is_half_a_job() {
        let keys = JobKeys::default();
        let half = held(&[(keys.ended(), false)]).without_record(&keys);
        assert_eq!(half, ["a has ended, and has no record"]);
    }
}
