//! The table of all methods.

use std::sync::LazyLock;

use super::method::Method;
use super::methods::{
    batch, context, dead, flow, gate, job, job_history, job_source, key, message, migration,
    new_jobs, queue, queue_alert, queue_history, queue_limit, runner, schedule, spread, system,
    worker,
};

/// All methods, by object.
pub static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    let objects = [
        job::methods,
        new_jobs::methods,
        gate::methods,
        job_history::methods,
        job_source::methods,
        queue::methods,
        queue_limit::methods,
        queue_alert::methods,
        queue_history::methods,
        spread::methods,
        worker::methods,
        schedule::methods,
        dead::methods,
        batch::methods,
        flow::methods,
        flow::logs::methods,
        flow::change::methods,
        flow::deploy::methods,
        context::methods,
        runner::methods,
        message::methods,
        migration::methods,
        key::methods,
        system::methods,
    ];
    objects.into_iter().flat_map(|methods| methods()).collect()
});

/// Returns the method of this name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    let is = |method: &&Method| method.name == name || method.aliases.contains(&name);
    METHODS.iter().find(is)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_name_and_each_path_is_there_once() {
        let (mut names, mut paths) = (HashSet::new(), HashSet::new());
        for method in METHODS.iter() {
            for name in method.aliases.iter().chain([&method.name]) {
                assert!(names.insert(*name), "{name}");
            }
            assert!(paths.insert((method.verb, method.path)), "{}", method.path);
        }
    }
}
