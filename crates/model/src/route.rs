//! Routes of jobs and subscriptions of workers. [`routes`] has a worker's routing keys, [`bindings`] a client's rules
//! for them, over [`topic`]s.

pub mod bindings;
pub mod routes;
pub mod topic;

use std::fmt;
use std::str::FromStr;

use crate::name::{Group, Instance, RoutingKey, ScriptType};
use routes::Routes;

/// Priority of a job. A queue without `:prio` counts as [`Priority::Normal`], because clients without priorities push
/// there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// `:prio:0`, before all others.
    High,
    /// No suffix; `:prio:1` is read as well.
    #[default]
    Normal,
    /// `:prio:2`, after all others.
    Low,
}

/// An unknown priority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no priority: high, normal or low, or 0, 1 or 2")]
pub struct UnknownPriority(String);

impl Priority {
    /// All priorities, the highest first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// Returns the number in the queue's name: 0 is the highest priority.
    #[must_use]
    pub const fn level(self) -> u8 {
        self as u8
    }

    /// Returns the word for the priority.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(text: &str) -> Result<Self, UnknownPriority> {
        let is = |p: &Self| p.as_str() == text || p.level().to_string() == text;
        Self::ALL
            .into_iter()
            .find(is)
            .ok_or_else(|| UnknownPriority(text.to_owned()))
    }
}

/// Destination of a job: a type, optionally one of its groups, optionally one instance of that group.
///
/// As in Hero, the most specific queue is used. A job without a group goes to the type's queue, not to the group
/// `default`. A job for an instance without a group goes to that instance of the group `default`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Type of the job.
    pub script_type: ScriptType,
    /// Group of workers, if required.
    pub group: Option<Group>,
    /// Worker, if required.
    pub instance: Option<Instance>,
    /// Priority of the job.
    pub priority: Priority,
}

impl Route {
    /// Returns the route to any worker of the type.
    #[must_use]
    pub fn to(script_type: ScriptType) -> Self {
        Self {
            script_type,
            group: None,
            instance: None,
            priority: Priority::Normal,
        }
    }

    /// Returns the route for a routing key: `default` is the queue of the type, each other key that of a group. The
    /// instance is kept.
    #[must_use]
    pub fn via(self, key: &RoutingKey) -> Self {
        let group = (!key.is_default()).then(|| key.into());
        Self { group, ..self }
    }
}

/// Subscription of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Type of the worker.
    pub script_type: ScriptType,
    /// Group of the worker.
    pub group: Group,
    /// Name within the group, if jobs may be pinned to the worker.
    pub instance: Option<Instance>,
    /// Routes of the worker, if it has any. The queues of its group and of the type are then used only if these
    /// routes include them.
    pub routes: Option<Routes>,
}

/// Destination of a job for one worker that is not alive or has no free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The worker's group.
    Group,
    /// Any worker of the type.
    Type,
}

/// An unknown fallback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no fallback: group or type")]
pub struct UnknownFallback(String);

impl FromStr for Fallback {
    type Err = UnknownFallback;

    fn from_str(text: &str) -> Result<Self, UnknownFallback> {
        match text {
            "group" => Ok(Self::Group),
            "type" => Ok(Self::Type),
            _ => Err(UnknownFallback(text.to_owned())),
        }
    }
}

impl Fallback {
    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Type => "type",
        }
    }

    /// Returns the route that replaces `route`.
    #[must_use]
    pub fn route(self, route: &Route) -> Route {
        let group = match self {
            Self::Group => Some(route.group.clone().unwrap_or_default()),
            Self::Type => None,
        };
        Route {
            group,
            instance: None,
            ..route.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::hero::JobKeys;

    fn route(group: Option<&str>, instance: Option<&str>) -> String {
        Route {
            script_type: "sal".parse().unwrap(),
            group: group.map(|g| g.parse().unwrap()),
            instance: instance.map(|i| i.parse().unwrap()),
            priority: Priority::Normal,
        }
        .queue(&JobKeys::default())
    }

    #[test]
    fn the_most_specific_queue() {
        assert_eq!(route(None, None), "hero:q:work:type:sal");
        assert_eq!(route(Some("io"), None), "hero:q:work:type:sal:group:io");
        assert_eq!(
            route(Some("io"), Some("3")),
            "hero:q:work:type:sal:group:io:inst:3"
        );
        assert_eq!(
            route(None, Some("3")),
            "hero:q:work:type:sal:group:default:inst:3"
        );
    }

    #[test]
    fn a_worker_listens_most_specific_first() {
        let listen = Listen {
            script_type: "osis".parse().unwrap(),
            group: Group::default(),
            instance: Some("2".parse().unwrap()),
            routes: None,
        };
        let (inst, group, of_type) = (
            "hero:q:work:type:osis:group:default:inst:2",
            "hero:q:work:type:osis:group:default",
            "hero:q:work:type:osis",
        );
        let mut expected: Vec<String> = [inst, group, of_type]
            .iter()
            .map(|queue| format!("{queue}:prio:0"))
            .collect();
        for queue in [inst, group, of_type] {
            expected.extend([queue.to_owned(), format!("{queue}:prio:1")]);
        }
        expected.extend(
            [inst, group, of_type]
                .iter()
                .map(|queue| format!("{queue}:prio:2")),
        );
        assert_eq!(listen.queues(&JobKeys::default()), [expected]);
    }

    #[test]
    fn with_routes_it_listens_route_by_route() {
        let listen = Listen {
            script_type: "osis".parse().unwrap(),
            group: "gpu".parse().unwrap(),
            instance: Some("2".parse().unwrap()),
            routes: Some("gpu,eu,default".parse().unwrap()),
        };
        let queues = listen.queues(&JobKeys::default());
        let plain: Vec<Vec<_>> = queues
            .iter()
            .map(|part| {
                part.iter()
                    .filter(|queue| !queue.contains(":prio:"))
                    .collect()
            })
            .collect();
        let of = |tail: &str| format!("hero:q:work:type:osis{tail}");
        let (inst, gpu, eu) = (of(":group:gpu:inst:2"), of(":group:gpu"), of(":group:eu"));
        let (group, of_type) = (of(":group:default"), of(""));
        assert_eq!(
            plain,
            [vec![&inst, &gpu], vec![&eu], vec![&group, &of_type]]
        );
        assert_eq!(
            queues[1],
            [
                format!("{eu}:prio:0"),
                eu.clone(),
                format!("{eu}:prio:1"),
                format!("{eu}:prio:2")
            ]
        );
    }

    #[test]
    fn a_routing_key_is_a_group_and_default_is_none() {
        let route = Route::to("osis".parse().unwrap());
        let queue = |key: &str| {
            route
                .clone()
                .via(&key.parse().unwrap())
                .queue(&JobKeys::default())
        };
        assert_eq!(queue("gpu"), "hero:q:work:type:osis:group:gpu");
        assert_eq!(queue("default"), "hero:q:work:type:osis");
    }

    #[test]
    fn a_priority_is_a_suffix_unless_it_is_the_default() {
        let mut route = Route::to("osis".parse().unwrap());
        for (word, queue) in [
            ("high", "hero:q:work:type:osis:prio:0"),
            ("1", "hero:q:work:type:osis"),
            ("low", "hero:q:work:type:osis:prio:2"),
        ] {
            route.priority = word.parse().unwrap();
            assert_eq!(route.queue(&JobKeys::default()), queue);
        }
        for word in ["", "3", "High", "-1"] {
            assert!(word.parse::<Priority>().is_err(), "{word}");
        }
    }

    #[test]
    fn a_fallback_leaves_out_the_worker() {
        let mut route = Route::to("sal".parse().unwrap());
        route.instance = Some("3".parse().unwrap());
        let keys = JobKeys::default();
        let group = Fallback::Group.route(&route).queue(&keys);
        assert_eq!(group, "hero:q:work:type:sal:group:default");
        assert_eq!(
            Fallback::Type.route(&route).queue(&keys),
            "hero:q:work:type:sal"
        );
    }
}
