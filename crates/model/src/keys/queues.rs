//! Lists of a route, and lists that a worker claims from.

use super::hero::JobKeys;
use super::suffix;
use crate::name::{Group, RoutingKey};
use crate::route::{Listen, Priority, Route};

impl Route {
    /// Returns the list to which the job's id is pushed.
    #[must_use]
    pub fn queue(&self, keys: &JobKeys) -> String {
        format!("{}{}", keys.work_prefix(), self.suffix())
    }

    /// Returns the part of that list's name after the prefix of all queues.
    pub(crate) fn suffix(&self) -> String {
        let shared = self.shared_suffix();
        match self.priority {
            Priority::Normal => shared,
            priority => suffix::with_priority(&shared, priority),
        }
    }

    fn shared_suffix(&self) -> String {
        match (&self.group, &self.instance) {
            (group, Some(instance)) => suffix::of_instance(
                &self.script_type,
                &group.clone().unwrap_or_default(),
                instance,
            ),
            (Some(group), None) => suffix::of_group(&self.script_type, group),
            (None, None) => self.script_type.to_string(),
        }
    }
}

impl Listen {
    /// Returns the lists that the worker claims from, in parts. Without routes there is one part in Hero's order
    /// (section 8): priority by priority, and within each instance, group, type. With routes there is a part for
    /// each, in Bananas' order: route by route and priority by priority. A list without `:prio` precedes the same
    /// list with `:prio:1`.
    #[must_use]
    pub fn queues(&self, keys: &JobKeys) -> Vec<Vec<String>> {
        self.queues_under(&keys.work_prefix())
    }

    /// Returns the same lists where all queues begin with `prefix`.
    pub(crate) fn queues_under(&self, prefix: &str) -> Vec<Vec<String>> {
        let Some(routes) = &self.routes else {
            let of_type = self.script_type.to_string();
            let shared = self.instance_suffix().into_iter();
            let shared = shared.chain([self.group_suffix(&self.group), of_type]);
            return vec![by_level(prefix, &shared.collect::<Vec<_>>())];
        };
        let routes = routes.keys().iter();
        routes
            .map(|route| by_level(prefix, &self.routed(route)))
            .collect()
    }

    /// Returns the suffixes of a route's lists without priorities: that of the group. `default` also has that of the
    /// type, which receives jobs without a route.
    fn routed(&self, route: &RoutingKey) -> Vec<String> {
        let group = Group::from(route);
        let own = (group == self.group).then(|| self.instance_suffix());
        let of_type = route.is_default().then(|| self.script_type.to_string());
        let own = own.flatten().into_iter();
        own.chain([self.group_suffix(&group)])
            .chain(of_type)
            .collect()
    }

    fn instance_suffix(&self) -> Option<String> {
        let instance = self.instance.as_ref()?;
        Some(suffix::of_instance(
            &self.script_type,
            &self.group,
            instance,
        ))
    }

    fn group_suffix(&self, group: &Group) -> String {
        suffix::of_group(&self.script_type, group)
    }
}

fn by_level(prefix: &str, shared: &[String]) -> Vec<String> {
    let of_level = |priority: Priority| {
        shared.iter().flat_map(move |suffix| {
            let queue = format!("{prefix}{suffix}");
            let plain = (priority == Priority::Normal).then(|| queue.clone());
            plain
                .into_iter()
                .chain([suffix::with_priority(&queue, priority)])
        })
    };
    Priority::ALL.into_iter().flat_map(of_level).collect()
}
