//! Parsers for names of queues.

use super::super::suffix;
use super::{JobKeys, NoWorkQueue, QueueParts};

impl JobKeys {
    /// Parses the name of a queue; `None` for other lists, such as legacy lists.
    #[must_use]
    pub fn queue_parts(&self, queue: &str) -> Option<QueueParts> {
        QueueParts::of_suffix(queue.strip_prefix(&self.work_prefix())?)
    }

    /// Returns the queue that `text` names: by its whole name, or by the part after `hero:q:work:type:`.
    ///
    /// # Errors
    /// The text names no queue.
    pub fn parse_work_queue(&self, text: &str) -> Result<String, NoWorkQueue> {
        let prefix = self.work_prefix();
        Ok(format!("{prefix}{}", suffix::named(text, &prefix)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Priority;

    #[test]
    fn whole_names_and_short_ones() {
        let keys = JobKeys::default();
        for short in [
            "osis",
            "sal:group:io",
            "osis:group:default:inst:1",
            "osis:prio:0",
            "sal:group:io:inst:3:prio:2",
        ] {
            let whole = format!("hero:q:work:type:{short}");
            assert_eq!(keys.parse_work_queue(short), Ok(whole.clone()));
            assert_eq!(keys.parse_work_queue(&whole), Ok(whole));
        }
        let low = keys.parse_work_queue("osis:prio:low").unwrap();
        assert_eq!(low, "hero:q:work:type:osis:prio:2");
    }

    #[test]
    fn a_name_is_taken_apart() {
        let keys = JobKeys::default();
        let parts = |short: &str| keys.queue_parts(&format!("hero:q:work:type:{short}"));
        let whole = parts("Odd One:group:io:inst:3:prio:2").unwrap();
        assert_eq!(whole.script_type, "Odd One");
        assert_eq!(whole.group.as_deref(), Some("io"));
        assert_eq!(whole.instance.as_deref(), Some("3"));
        assert_eq!(whole.priority, Priority::Low);
        assert_eq!(parts("osis"), parts("osis:prio:1"));
        assert_ne!(parts("osis"), parts("osis:group:default"));
        for other in ["osis:prio:7", "osis:x", "osis:group:a:b"] {
            assert_eq!(parts(other), None, "{other}");
        }
        assert_eq!(keys.queue_parts("hero:work_queue:w"), None);
    }

    #[test]
    fn what_is_no_queue_is_named() {
        let keys = JobKeys::default();
        for bad in [
            "",
            "osis:",
            "osis:group",
            "osis:group:",
            "osis:group:a b",
            "osis:inst:1",
            "osis:prio:3",
            "osis:prio:",
            "hero:work_queue:w",
            "other:q:work:type:osis",
        ] {
            let error = keys.parse_work_queue(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
    }
}
