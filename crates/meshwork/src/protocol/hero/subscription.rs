//! Subscription: the queues from which a worker claims. These are the canonical queues of its types and, while a type
//! migrates, the old lists after them.

use std::borrow::Cow;

use meshwork_broker::LegacyList;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::migration::{Migration, Phase};
use meshwork_model::name::{ActorId, RoutingKey, ScriptType};
use meshwork_model::route::routes::Routes;
use meshwork_model::route::{Listen, Priority};

use meshwork_worker::Queues;

/// Every eighth claim that returns jobs has the reverse order, so that no queue starves.
const REVERSE_EVERY: usize = 8;

/// Returns the name of a queue without its priority: settings apply to all its priorities together.
pub(super) fn base_of(queue: &str) -> &str {
    queue.rsplit_once(":prio:").map_or(queue, |(base, _)| base)
}

/// Types, groups and names of a worker.
#[derive(Debug)]
pub(super) struct Subscriptions {
    /// Subscriptions, one per type.
    pub(super) listens: Vec<Listen>,
    /// Names of old workers whose lists the worker reads.
    pub(super) legacy_ids: Vec<ActorId>,
}

impl Subscriptions {
    /// Returns the script types that it runs.
    pub(super) fn types(&self) -> Vec<ScriptType> {
        let listens = self.listens.iter();
        listens.map(|listen| listen.script_type.clone()).collect()
    }

    /// Returns the lists of its cancel requests.
    pub(super) fn control_queues(&self, keys: &JobKeys) -> Vec<String> {
        let mut queues = Vec::new();
        for listen in &self.listens {
            let (script_type, group) = (&listen.script_type, &listen.group);
            queues.push(keys.control_queue_type(script_type));
            let instance = listen.instance.iter();
            queues.extend(
                instance.map(|instance| keys.control_queue_instance(script_type, group, instance)),
            );
        }
        let old = self.legacy_ids.iter();
        queues.extend(old.map(|id| keys.legacy_stop_queue(id)));
        queues
    }

    /// Returns its queues for the given states of migrations, one per type.
    pub(super) fn lists(&self, keys: &JobKeys, migrations: &[Option<Migration>]) -> Lists {
        let mut old: Vec<LegacyList> = Vec::new();
        for (listen, setting) in self.listens.iter().zip(migrations) {
            let Some(set) = setting.as_ref().filter(|set| set.phase != Phase::Dual) else {
                continue;
            };
            for list in self.old_lists(keys, listen, set) {
                if old.iter().all(|known| known.list != list) {
                    old.push(LegacyList {
                        list,
                        requeue_to: keys.work_queue_type(&listen.script_type),
                    });
                }
            }
        }
        Lists::new(self.queues(keys), old)
    }

    /// Returns the routes, if it has any. They are the same for all types.
    pub(super) fn routes(&self) -> Option<&Routes> {
        self.listens.first()?.routes.as_ref()
    }

    /// Returns the canonical queues: route by route, or without routes priority by priority for all types together.
    fn queues(&self, keys: &JobKeys) -> Vec<Vec<String>> {
        let of_types: Vec<_> = self
            .listens
            .iter()
            .map(|listen| listen.queues(keys))
            .collect();
        let parts = of_types.first().map_or(0, Vec::len);
        let part = |at: usize| {
            let of_types: Vec<_> = of_types.iter().filter_map(|parts| parts.get(at)).collect();
            let places = of_types.first().map_or(0, |queues| queues.len());
            let place = |at: usize| of_types.iter().filter_map(move |queues| queues.get(at));
            (0..places).flat_map(place).cloned().collect()
        };
        (0..parts).map(part).collect()
    }

    fn old_lists(&self, keys: &JobKeys, listen: &Listen, set: &Migration) -> Vec<String> {
        let mut lists = set.lists(&self.legacy_ids);
        let routes = listen.routes.as_ref();
        if routes.is_none_or(|routes| routes.keys().iter().any(RoutingKey::is_default)) {
            lists.push(keys.legacy_type_queue(&listen.script_type));
        }
        for id in &self.legacy_ids {
            lists.extend([keys.legacy_work_queue(id), keys.legacy_actor_queue(id)]);
        }
        lists
    }
}

/// Lists from which a worker claims now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lists {
    names: Vec<String>,
    old: Vec<LegacyList>,
    /// Number of canonical queues of each route.
    parts: Vec<usize>,
}

impl Lists {
    fn new(queues: Vec<Vec<String>>, old: Vec<LegacyList>) -> Self {
        let parts = queues.iter().map(Vec::len).collect();
        let mut names = queues.concat();
        names.extend(old.iter().map(|old| old.list.clone()));
        Self { names, old, parts }
    }

    /// Returns the canonical queues.
    pub(super) fn queues(&self) -> &[String] {
        &self.names[..self.names.len() - self.old.len()]
    }

    /// Returns the canonical queues in the order of `turn`.
    pub(super) fn queues_in(&self, turn: ClaimOrder) -> Cow<'_, [String]> {
        if turn.first == 0 && !turn.backwards {
            return Cow::Borrowed(self.queues());
        }
        let mut parts = Vec::new();
        let mut rest = self.queues();
        for many in &self.parts {
            let (part, behind) = rest.split_at(*many);
            parts.push(part);
            rest = behind;
        }
        let first = parts.remove(turn.first);
        parts.insert(0, first);
        let ordered = parts.into_iter().flat_map(|part| {
            let mut part = part.to_vec();
            if turn.backwards {
                part.reverse();
            }
            part
        });
        Cow::Owned(ordered.collect())
    }

    /// Returns the old lists, which follow the canonical queues.
    pub(super) fn old(&self) -> &[LegacyList] {
        &self.old
    }

    /// Returns the queues with a blocking read. An alias of the default priority has none, since few clients push
    /// there; claims read it.
    fn parked(&self) -> impl Iterator<Item = &String> {
        let alias = format!(":prio:{}", Priority::Normal.level());
        let canonical = self.queues().iter();
        canonical
            .filter(move |queue| !queue.ends_with(&alias))
            .chain(self.old.iter().map(|old| &old.list))
    }
}

impl Queues for Lists {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn waited(&self) -> Vec<String> {
        self.parked().cloned().collect()
    }
}

/// Order of the queues in one claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClaimOrder {
    /// True for the order from the last list to the first.
    pub(super) reverse: bool,
    /// Index of the route that comes first.
    first: usize,
    /// True for the reverse order within each route. Weights alone decide the order of routes.
    backwards: bool,
}

impl ClaimOrder {
    /// Returns the order after `round` claims that returned jobs; the usual order for `None`.
    pub(super) fn of(round: Option<usize>, routes: Option<&Routes>) -> Self {
        let Some(round) = round else {
            return Self::default();
        };
        let other_way = round % REVERSE_EVERY == REVERSE_EVERY - 1;
        let weighted = routes.filter(|routes| routes.is_weighted());
        Self {
            reverse: other_way && weighted.is_none(),
            first: weighted.map_or(0, |routes| routes.first(round)),
            backwards: other_way && weighted.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(types: &[&str], legacy_ids: &[&str]) -> Subscriptions {
        let listen = |name: &&str| Listen {
            script_type: name.parse().unwrap(),
            group: meshwork_model::name::Group::default(),
            instance: None,
            routes: None,
        };
        Subscriptions {
            listens: types.iter().map(listen).collect(),
            legacy_ids: legacy_ids.iter().map(|id| id.parse().unwrap()).collect(),
        }
    }

    fn lists(places: &Subscriptions, migrations: &[&str]) -> Lists {
        // An empty setting means none.
        let migrations: Vec<_> = migrations.iter().map(|set| set.parse().ok()).collect();
        places.lists(&JobKeys::default(), &migrations)
    }

    #[test]
    fn old_lists_are_taken_after_the_first_phase_and_last() {
        let places = places(&["osis"], &["a1"]);
        for setting in ["", "dual hero:job:actor_queue:osis 30000"] {
            assert!(lists(&places, &[setting]).old().is_empty(), "{setting}");
        }
        for phase in ["canonical", "closing"] {
            let setting = format!("{phase} hero:work_queue:{{worker_id}} 30000");
            let lists = lists(&places, &[&setting]);
            assert_eq!(
                lists.names()[lists.queues().len()..],
                [
                    "hero:work_queue:a1",
                    "hero:job:actor_queue:osis",
                    "hero:job:a1"
                ]
            );
        }
    }

    #[test]
    fn an_old_list_of_two_types_is_taken_once_and_goes_home_to_the_first() {
        let places = places(&["osis", "sal"], &["a1"]);
        let lists = lists(&places, &["canonical x:osis 1", "canonical x:sal 1"]);
        let shared = lists.old().iter().filter(|old| old.list == "hero:job:a1");
        let shared: Vec<_> = shared.collect();
        assert_eq!(shared.len(), 1);
        assert_eq!(shared[0].requeue_to, "hero:q:work:type:osis");
    }

    #[test]
    fn levels_come_before_types_and_aliases_are_not_waited_on() {
        let places = places(&["osis", "sal"], &[]);
        let lists = lists(&places, &["", ""]);
        let place = |name: &str| {
            lists
                .names()
                .iter()
                .position(|queue| queue == name)
                .unwrap()
        };
        assert!(place("hero:q:work:type:sal:prio:0") < place("hero:q:work:type:osis"));
        assert!(place("hero:q:work:type:osis:prio:2") < place("hero:q:work:type:sal:prio:2"));
        assert_eq!(lists.parked().count(), 12);
        assert_eq!(lists.names().len(), 16);
    }

    #[test]
    fn every_eighth_claim_that_brings_jobs_goes_the_other_way_round() {
        let is_reversed = |round: &usize| ClaimOrder::of(Some(*round), None).reverse;
        let reversed: Vec<_> = (0..20).filter(is_reversed).collect();
        assert_eq!(reversed, [7, 15]);
        assert_eq!(ClaimOrder::of(None, None), ClaimOrder::default());
    }

    /// Returns the queues of one type for these routes, without those of other priorities.
    fn routed(routes: &str, turn: impl Fn(&Routes) -> ClaimOrder) -> Vec<String> {
        let mut places = places(&["osis"], &[]);
        let routes: Routes = routes.parse().unwrap();
        places.listens[0].routes = Some(routes.clone());
        let lists = lists(&places, &[""]);
        let queues = lists.queues_in(turn(&routes)).into_owned();
        let plain = queues.into_iter().filter(|queue| !queue.contains(":prio:"));
        plain
            .map(|queue| queue.replace("hero:q:work:type:osis", ""))
            .collect()
    }

    #[test]
    fn routes_are_taken_from_in_their_order_or_by_weight() {
        let after = |claims| move |routes: &Routes| ClaimOrder::of(Some(claims), Some(routes));
        let strict = [":group:gpu", ":group:eu", ":group:default", ""];
        for claims in 0..8 {
            assert_eq!(routed("gpu,eu,default", after(claims)), strict);
        }
        let eu_first = [":group:eu", ":group:gpu"];
        let gpu_first = [":group:gpu", ":group:eu"];
        for (claims, expected) in [
            (0, gpu_first),
            (1, eu_first),
            (2, gpu_first),
            (3, gpu_first),
        ] {
            assert_eq!(routed("gpu=2,eu=1", after(claims)), expected, "{claims}");
        }
    }

    #[test]
    fn by_weight_the_eighth_claim_turns_each_route_round_and_no_route() {
        let mut places = places(&["osis"], &[]);
        let routes: Routes = "gpu=2,eu=1".parse().unwrap();
        places.listens[0].routes = Some(routes.clone());
        let lists = lists(&places, &[""]);
        let turn = ClaimOrder::of(Some(7), Some(&routes));
        assert!(!turn.reverse);
        let queues = lists.queues_in(turn);
        let (eu, gpu) = (
            "hero:q:work:type:osis:group:eu",
            "hero:q:work:type:osis:group:gpu",
        );
        assert_eq!(queues[0], format!("{eu}:prio:2"));
        assert_eq!(queues[4], format!("{gpu}:prio:2"));
        assert_eq!(queues.len(), lists.queues().len());
        let strict = "gpu,eu".parse().unwrap();
        assert!(ClaimOrder::of(Some(7), Some(&strict)).reverse);
    }
}
