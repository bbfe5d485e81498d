//! What a worker takes from: the canonical queues of its types, and, while a type migrates, the old lists
//! after them. Who waits on them is in `feed`.

use meshwork_broker::OldList;
use meshwork_model::keys::hero::Hero;
use meshwork_model::migration::{Migration, Phase};
use meshwork_model::name::{ActorId, ScriptType};
use meshwork_model::route::{Listen, Priority};

/// A claim that is the eighth since the last of its kind to bring jobs goes the other way round, so that
/// what is less urgent gets an eighth of the claims however much else there is.
const REVERSE_EVERY: u32 = 8;

/// A queue without its priority: what is set for a queue holds for all its priorities together.
pub(super) fn base_of(queue: &str) -> &str {
    queue.rsplit_once(":prio:").map_or(queue, |(base, _)| base)
}

/// Where a worker belongs.
#[derive(Debug)]
pub(super) struct Places {
    /// One per type.
    pub(super) listens: Vec<Listen>,
    /// The names of old workers whose lists it takes over.
    pub(super) legacy_ids: Vec<ActorId>,
}

impl Places {
    /// The types that it runs.
    pub(super) fn types(&self) -> Vec<ScriptType> {
        let listens = self.listens.iter();
        listens.map(|listen| listen.script_type.clone()).collect()
    }

    /// The lists on which it is asked to stop jobs.
    pub(super) fn control_queues(&self, keys: &Hero) -> Vec<String> {
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

    /// What it takes from while migrations stand as they do, one setting per type.
    pub(super) fn lists(&self, keys: &Hero, migrations: &[Option<Migration>]) -> Lists {
        let mut old: Vec<OldList> = Vec::new();
        for (listen, setting) in self.listens.iter().zip(migrations) {
            let Some(set) = setting.as_ref().filter(|set| set.phase != Phase::Dual) else {
                continue;
            };
            for list in self.old_lists(keys, &listen.script_type, set) {
                if old.iter().all(|known| known.list != list) {
                    old.push(OldList {
                        list,
                        home: keys.work_queue_type(&listen.script_type),
                    });
                }
            }
        }
        Lists::new(self.queues(keys), old)
    }

    /// The canonical queues, level by level for all types together.
    fn queues(&self, keys: &Hero) -> Vec<String> {
        let of_types: Vec<_> = self
            .listens
            .iter()
            .map(|listen| listen.queues(keys))
            .collect();
        let places = of_types.first().map_or(0, Vec::len);
        let place = |at: usize| of_types.iter().filter_map(move |queues| queues.get(at));
        let mut queues: Vec<String> = Vec::new();
        for queue in (0..places).flat_map(place) {
            if !queues.contains(queue) {
                queues.push(queue.clone());
            }
        }
        queues
    }

    fn old_lists(&self, keys: &Hero, script_type: &ScriptType, set: &Migration) -> Vec<String> {
        let mut lists = set.lists(&self.legacy_ids);
        lists.push(keys.legacy_type_queue(script_type));
        for id in &self.legacy_ids {
            lists.extend([keys.legacy_work_queue(id), keys.legacy_actor_queue(id)]);
        }
        lists
    }
}

/// The lists that a worker takes from now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lists {
    names: Vec<String>,
    old: Vec<OldList>,
}

impl Lists {
    fn new(mut names: Vec<String>, old: Vec<OldList>) -> Self {
        names.extend(old.iter().map(|old| old.list.clone()));
        Self { names, old }
    }

    /// All of them, in their order.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The canonical ones.
    pub(super) fn queues(&self) -> &[String] {
        &self.names[..self.names.len() - self.old.len()]
    }

    /// The old ones, which come after them.
    pub(super) fn old(&self) -> &[OldList] {
        &self.old
    }

    /// Those that a connection waits on. What comes to an alias of the default level is left to the next
    /// claim: hardly anybody pushes there.
    pub(super) fn parked(&self) -> impl Iterator<Item = &String> {
        let alias = format!(":prio:{}", Priority::Normal.level());
        let canonical = self.queues().iter();
        canonical
            .filter(move |queue| !queue.ends_with(&alias))
            .chain(self.old.iter().map(|old| &old.list))
    }
}

/// Which way round claims go.
#[derive(Debug, Default)]
pub(super) struct Order {
    brought: u32,
}

impl Order {
    /// Whether the next claim goes from the last list to the first.
    pub(super) fn is_reverse(&self) -> bool {
        self.brought + 1 == REVERSE_EVERY
    }

    /// A claim brought so many jobs.
    pub(super) fn note(&mut self, jobs: usize) {
        if jobs > 0 {
            self.brought = (self.brought + 1) % REVERSE_EVERY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(types: &[&str], legacy_ids: &[&str]) -> Places {
        let listen = |name: &&str| Listen {
            script_type: name.parse().unwrap(),
            group: meshwork_model::name::Group::default(),
            instance: None,
        };
        Places {
            listens: types.iter().map(listen).collect(),
            legacy_ids: legacy_ids.iter().map(|id| id.parse().unwrap()).collect(),
        }
    }

    fn lists(places: &Places, migrations: &[&str]) -> Lists {
        // What is empty is no setting.
        let migrations: Vec<_> = migrations.iter().map(|set| set.parse().ok()).collect();
        places.lists(&Hero::default(), &migrations)
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
        assert_eq!(shared[0].home, "hero:q:work:type:osis");
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
        let mut order = Order::default();
        let mut reversed = Vec::new();
        for claim in 0..20 {
            if order.is_reverse() {
                reversed.push(claim);
            }
            order.note(0);
            order.note(1);
        }
        assert_eq!(reversed, [7, 15]);
    }
}
