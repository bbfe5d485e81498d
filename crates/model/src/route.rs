//! Where a job goes and where a worker listens (seed 0, sections 2 and 3).

use crate::keys::hero::Hero;
use crate::name::{Group, Instance, ScriptType};

/// A job's target: a type, perhaps one of its groups, perhaps one instance of that group.
///
/// Seed 0: the most specific queue. A job without a group goes to the type's queue, not to the group
/// `default`; a job for an instance without a group goes to that instance of the group `default`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// What runs it.
    pub script_type: ScriptType,
    /// Which pool of workers, if it matters.
    pub group: Option<Group>,
    /// Which worker, if it matters.
    pub instance: Option<Instance>,
}

impl Route {
    /// To whichever worker of the type.
    #[must_use]
    pub fn to(script_type: ScriptType) -> Self {
        Self {
            script_type,
            group: None,
            instance: None,
        }
    }

    /// The list that the job's id is pushed to.
    #[must_use]
    pub fn queue(&self, keys: &Hero) -> String {
        match (&self.group, &self.instance) {
            (group, Some(instance)) => keys.work_queue_instance(
                &self.script_type,
                &group.clone().unwrap_or_default(),
                instance,
            ),
            (Some(group), None) => keys.work_queue_group(&self.script_type, group),
            (None, None) => keys.work_queue_type(&self.script_type),
        }
    }
}

/// What a worker listens to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// What it can run.
    pub script_type: ScriptType,
    /// The group it belongs to.
    pub group: Group,
    /// Its name within the group, if jobs may be pinned to it.
    pub instance: Option<Instance>,
}

impl Listen {
    /// The lists it takes from, most specific first: instance, group, type (seed 0, section 3).
    #[must_use]
    pub fn queues(&self, keys: &Hero) -> Vec<String> {
        let instance = self
            .instance
            .iter()
            .map(|instance| keys.work_queue_instance(&self.script_type, &self.group, instance));
        instance
            .chain([
                keys.work_queue_group(&self.script_type, &self.group),
                keys.work_queue_type(&self.script_type),
            ])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(group: Option<&str>, instance: Option<&str>) -> String {
        Route {
            script_type: "sal".parse().unwrap(),
            group: group.map(|g| g.parse().unwrap()),
            instance: instance.map(|i| i.parse().unwrap()),
        }
        .queue(&Hero::default())
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
        };
        assert_eq!(
            listen.queues(&Hero::default()),
            [
                "hero:q:work:type:osis:group:default:inst:2",
                "hero:q:work:type:osis:group:default",
                "hero:q:work:type:osis"
            ]
        );
    }
}
