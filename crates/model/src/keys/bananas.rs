//! The keys of Bananas (`bananas:…`), and Meshwork's own keys beside them, all under `bananas:mw:`.
//!
//! Ids of Bananas are arbitrary text. Clients choose them freely, and Bananas' cron writes jobs with an empty id.

use crate::name::{Namespace, RoutingKey, ScheduleName};
use crate::route::Priority;
use crate::worker_request::WorkerRequest;

use super::hero::ScriptName;

/// Builds the keys of one deployment of Bananas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BananasKeys {
    prefix: Namespace,
}

impl Default for BananasKeys {
    /// Returns the keys under Bananas' built-in prefix.
    fn default() -> Self {
        Self {
            prefix: Namespace::bananas(),
        }
    }
}

impl BananasKeys {
    /// Returns the keys under `prefix`. Bananas' clients in Python and TypeScript can be configured with another
    /// prefix, too.
    #[must_use]
    pub fn new(prefix: Namespace) -> Self {
        Self { prefix }
    }

    /// Returns the first part of every key.
    #[must_use]
    pub fn prefix(&self) -> &Namespace {
        &self.prefix
    }

    /// Returns the prefix of all records: `bananas:job:`.
    #[must_use]
    pub fn job_prefix(&self) -> String {
        format!("{}:job:", self.prefix)
    }

    /// A job's record, a string of JSON: `bananas:job:{id}`.
    #[must_use]
    pub fn job(&self, id: &str) -> String {
        format!("{}:job:{id}", self.prefix)
    }

    /// The list of a priority without a route: `bananas:queue:{priority}`.
    #[must_use]
    pub fn plain(&self, priority: Priority) -> String {
        format!("{}:queue:{priority}", self.prefix)
    }

    /// The list of a route and a priority: `bananas:route:{key}:queue:{priority}`.
    #[must_use]
    pub fn routed(&self, route: &RoutingKey, priority: Priority) -> String {
        format!("{}:route:{route}:queue:{priority}", self.prefix)
    }

    /// Returns the lists that a worker of these routes claims from, in this order: route by route, the highest
    /// priority first. Jobs of the route `default` are in either kind of list; in each priority the routed one comes
    /// first.
    #[must_use]
    pub fn lists(&self, routes: &[RoutingKey]) -> Vec<String> {
        let mut lists = Vec::new();
        for route in routes {
            for priority in Priority::ALL {
                lists.push(self.routed(route, priority));
                if route.is_default() {
                    lists.push(self.plain(priority));
                }
            }
        }
        lists
    }

    /// Returns whether a list has no route. Such lists may contain jobs of all routes, because two of three client
    /// implementations write the route only to the record.
    #[must_use]
    pub fn is_plain(&self, list: &str) -> bool {
        Priority::ALL.into_iter().any(|p| self.plain(p) == list)
    }

    /// Returns the prefix of all routed lists: `bananas:route:`.
    #[must_use]
    pub fn route_prefix(&self) -> String {
        format!("{}:route:", self.prefix)
    }

    /// Returns the route and the priority of a queue's list; `None` for other lists.
    #[must_use]
    pub fn parse_list(&self, list: &str) -> Option<(RoutingKey, Priority)> {
        let word = |text: &str| Priority::ALL.into_iter().find(|p| p.as_str() == text);
        if let Some(rest) = list.strip_prefix(&self.route_prefix()) {
            let (route, priority) = rest.split_once(":queue:")?;
            return Some((route.parse().ok()?, word(priority)?));
        }
        let plain = list.strip_prefix(&format!("{}:queue:", self.prefix))?;
        Some((RoutingKey::default(), word(plain)?))
    }

    /// Jobs that any worker runs (a list of ids): `bananas:queue:processing`.
    #[must_use]
    pub fn processing(&self) -> String {
        format!("{}:queue:processing", self.prefix)
    }

    /// Dead letters (a list of ids): `bananas:queue:dead`.
    #[must_use]
    pub fn dead(&self) -> String {
        format!("{}:queue:dead", self.prefix)
    }

    /// Delayed jobs (a sorted set of ids by seconds since 1970): `bananas:queue:scheduled`.
    #[must_use]
    pub fn scheduled(&self) -> String {
        format!("{}:queue:scheduled", self.prefix)
    }

    /// Outcome of a job, a hash: `bananas:result:{id}`.
    #[must_use]
    pub fn result(&self, id: &str) -> String {
        format!("{}{id}", self.result_prefix())
    }

    fn result_prefix(&self) -> String {
        format!("{}:result:", self.prefix)
    }

    /// Channel on which a result is published: `bananas:result:notify:{id}`.
    #[must_use]
    pub fn notify(&self, id: &str) -> String {
        format!("{}{id}", self.notify_prefix())
    }

    /// Returns the prefix of all such channels.
    #[must_use]
    pub fn notify_prefix(&self) -> String {
        format!("{}:result:notify:", self.prefix)
    }

    /// State of a cron schedule, a hash: `bananas:schedules:{schedule}`.
    #[must_use]
    pub fn schedule(&self, name: &ScheduleName) -> String {
        format!("{}{name}", self.schedule_prefix())
    }

    fn schedule_prefix(&self) -> String {
        format!("{}:schedules:", self.prefix)
    }

    fn schedule_lock_prefix(&self) -> String {
        format!("{}:schedule_lock:", self.prefix)
    }

    /// Lock of the scheduler that fires a slot, a string: `bananas:schedule_lock:{schedule}`.
    #[must_use]
    pub fn schedule_lock(&self, name: &ScheduleName) -> String {
        format!("{}{name}", self.schedule_lock_prefix())
    }

    fn own(&self, name: &str) -> String {
        format!("{}:mw:{name}", self.prefix)
    }

    /// Request to a running worker, by its name with the incarnation (a string with a time to live).
    #[must_use]
    pub fn worker_request(&self, worker: &str, request: WorkerRequest) -> String {
        self.own(&request.name(worker))
    }

    /// Jobs that Meshwork's workers run, by the end of their lease (a sorted set, milliseconds).
    #[must_use]
    pub fn lease(&self) -> String {
        self.own("lease")
    }

    /// For each job that Meshwork's workers run, the fencing token, a blank and the list that it came from (a hash).
    #[must_use]
    pub fn held(&self) -> String {
        self.own("held")
    }

    /// Registered prefetch lists, by the time at which their worker counts as dead (a sorted set, milliseconds).
    #[must_use]
    pub fn prefetch_registry(&self) -> String {
        self.own("feeds")
    }

    /// Returns the member of a worker in [`Self::prefetch_registry`]: the worker's incarnation, a blank, the list.
    #[must_use]
    pub fn prefetch_member(incarnation: &str, list: &str) -> String {
        format!("{incarnation} {list}")
    }

    /// Prefetch list of one worker for another list.
    #[must_use]
    pub fn feed(&self, incarnation: &str, list: &str) -> String {
        let member = Self::prefetch_member(incarnation, list);
        format!("{}{member}", self.own("feed:"))
    }

    /// Routes that have a Meshwork worker, by the time at which the worker counts as dead (a sorted set,
    /// milliseconds).
    #[must_use]
    pub fn routes(&self) -> String {
        self.own("routes")
    }

    /// Time at which a foreign job was first seen in [`Self::processing`] (a sorted set, milliseconds).
    #[must_use]
    pub fn seen(&self) -> String {
        self.own("seen")
    }

    /// Cron schedules of Meshwork, by name (a hash of JSON). [`Self::schedule`] has the state of each.
    #[must_use]
    pub fn crons(&self) -> String {
        self.own("cron")
    }

    /// Settings of routes (a hash, as [`super::hero::JobKeys::config`] is).
    #[must_use]
    pub fn config(&self) -> String {
        self.own("config")
    }

    /// Jobs of a route that Meshwork's workers run, by the time of their claim (a sorted set, milliseconds).
    #[must_use]
    pub fn slots(&self, route: &RoutingKey) -> String {
        format!("{}{route}", self.own("slots:"))
    }

    /// Meshwork's counters (a hash): a list, a blank and the kind of event, with the number of events.
    #[must_use]
    pub fn stats(&self) -> String {
        self.own("stats")
    }

    /// Returns names that scripts use without receiving them in each call.
    #[must_use]
    pub fn script_names(&self) -> Vec<ScriptName> {
        vec![
            ("JOB", self.job_prefix()),
            ("RESULT", self.result_prefix()),
            ("NOTIFY", self.notify_prefix()),
            ("PROCESSING", self.processing()),
            ("DEAD", self.dead()),
            ("SCHEDULED", self.scheduled()),
            ("SCHEDULE", self.schedule_prefix()),
            ("SCHEDULE_LOCK", self.schedule_lock_prefix()),
            ("ROUTED", self.route_prefix()),
            ("LISTED", format!("{}:queue:", self.prefix)),
            ("LIST", self.plain(Priority::Normal)),
            ("LEASES", self.lease()),
            ("CLAIMS", self.held()),
            ("PREFETCH_LISTS", self.prefetch_registry()),
            ("PREFETCH", self.own("feed:")),
            ("ROUTES", self.routes()),
            ("SEEN", self.seen()),
            ("CRONS", self.crons()),
            ("CONFIG", self.config()),
            ("SLOTS", self.own("slots:")),
            // Consumption of rates (strings).
            ("RATES", self.own("rate:")),
            ("STATS", self.stats()),
            // Number of lost workers by job (strings).
            ("LOST", self.own("lost:")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(text: &str) -> RoutingKey {
        text.parse().unwrap()
    }

    #[test]
    fn the_names_that_bananas_uses() {
        let keys = BananasKeys::default();
        let nightly = "nightly".parse().unwrap();
        for (is, should) in [
            (keys.job("1"), "bananas:job:1"),
            (keys.job(""), "bananas:job:"),
            (keys.plain(Priority::High), "bananas:queue:high"),
            (
                keys.routed(&route("gpu"), Priority::Low),
                "bananas:route:gpu:queue:low",
            ),
            (keys.processing(), "bananas:queue:processing"),
            (keys.dead(), "bananas:queue:dead"),
            (keys.scheduled(), "bananas:queue:scheduled"),
            (keys.result("1"), "bananas:result:1"),
            (keys.notify("1"), "bananas:result:notify:1"),
            (keys.schedule(&nightly), "bananas:schedules:nightly"),
            (
                keys.schedule_lock(&nightly),
                "bananas:schedule_lock:nightly",
            ),
        ] {
            assert_eq!(is, should);
        }
    }

    #[test]
    fn a_worker_takes_route_by_route_and_default_from_both_kinds() {
        let lists = BananasKeys::default().lists(&[route("gpu"), route("default")]);
        let expected = [
            "bananas:route:gpu:queue:high",
            "bananas:route:gpu:queue:normal",
            "bananas:route:gpu:queue:low",
            "bananas:route:default:queue:high",
            "bananas:queue:high",
            "bananas:route:default:queue:normal",
            "bananas:queue:normal",
            "bananas:route:default:queue:low",
            "bananas:queue:low",
        ];
        assert_eq!(lists, expected);
    }

    #[test]
    fn a_list_tells_its_route() {
        let keys = BananasKeys::default();
        for list in keys.lists(&[route("gpu"), route("default")]) {
            let (route, priority) = keys.parse_list(&list).unwrap();
            assert!(list.contains(priority.as_str()));
            assert_eq!(list.contains("gpu"), route.as_str() == "gpu");
        }
        for other in [
            keys.dead(),
            keys.processing(),
            keys.scheduled(),
            keys.job("queue:high"),
            "bananas:route:a b:queue:high".to_owned(),
        ] {
            assert_eq!(keys.parse_list(&other), None, "{other}");
        }
    }

    #[test]
    fn our_own_keys_are_none_of_theirs() {
        let keys = BananasKeys::default();
        // The names of Bananas' own keys; all others are Meshwork's.
        let theirs = [
            "JOB",
            "RESULT",
            "NOTIFY",
            "PROCESSING",
            "DEAD",
            "SCHEDULED",
            "SCHEDULE",
            "SCHEDULE_LOCK",
            "ROUTED",
            "LISTED",
            "LIST",
        ];
        for (name, key) in keys.script_names() {
            let ours = key.starts_with("bananas:mw:");
            assert_eq!(ours, !theirs.contains(&name), "{name}: {key}");
        }
        assert!(keys.feed("w", "q").starts_with("bananas:mw:feed:w q"));
        assert!(keys.is_plain("bananas:queue:low"));
        assert!(!keys.is_plain(&keys.dead()));
    }
}
