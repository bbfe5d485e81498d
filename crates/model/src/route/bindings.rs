//! Bindings: rules for the route of a job whose client names none. The first matching binding decides. It matches the
//! job's name, its topic like Celery's queue bindings, its payload, or all of these.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wildmatch::WildMatch;

use super::topic::{InvalidTopic, Topic, TopicPattern};
use crate::name::{NameError, RoutingKey};

/// Greatest number of bindings. A job without a route is compared with all of them.
pub const MAX_BINDINGS: usize = 1_000;

/// Bindings, as they stand in a file:
///
/// ```yaml
/// bindings:
///   - route: gpu
///     name: "image_*"               # `*` any characters, `?` one
///   - route: orders-eu
///     topic: "orders.eu.#"          # `*` one word, `#` any number
///   - route: high_memory
///     payload:                      # JSON pointers (RFC 6901)
///       /region: [eu, us]           # one of these
///       /pixels: {from: 4000000}    # also `below`
/// default: cpu                      # otherwise; without this, `default`
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "File")]
pub struct Bindings {
    bindings: Vec<Binding>,
    otherwise: RoutingKey,
}

/// The properties of a job that bindings match.
#[derive(Debug, Clone, Copy)]
struct Subject<'a> {
    name: &'a str,
    topic: Option<&'a Topic>,
    payload: Option<&'a Value>,
}

/// The reason why bindings were refused. They are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBindings {
    /// There are too many bindings.
    #[error("{0} bindings are too many: at most {MAX_BINDINGS} are allowed")]
    TooMany(usize),
    /// A binding has no condition and would match every job.
    #[error(
        "binding {0} has no condition: give it a name, a topic or a payload, or write its route as `default`"
    )]
    NoCondition(usize),
    /// The route of a binding is not valid.
    #[error("the route of binding {at} is none: {source}")]
    Route {
        /// Number of the binding.
        at: usize,
        /// The fault.
        source: NameError,
    },
    /// The route `default` is not valid.
    #[error("`default` names no route: {0}")]
    Otherwise(NameError),
    /// The topic of a binding is not valid.
    #[error("the topic of binding {at} is none: {source}")]
    Topic {
        /// Number of the binding.
        at: usize,
        /// The fault.
        source: InvalidTopic,
    },
    /// The name of a binding is empty and matches no job.
    #[error("the name of binding {0} is empty: no job has such a name; leave it out, or write `*`")]
    Name(usize),
    /// A JSON pointer in a binding is not valid.
    #[error(
        "`{pointer}` in binding {at} is no JSON pointer: it begins with `/`, as `/customer/region`, and has `~` \
         only in `~0` and `~1`"
    )]
    Pointer {
        /// Number of the binding.
        at: usize,
        /// The text.
        pointer: String,
    },
    /// A condition is neither a value, nor a list of values, nor a range of numbers.
    #[error(
        "binding {at} has no valid condition at `{pointer}`, but {given}: give a value, a list of values, or a range of \
         numbers as {{from: 1, below: 10}}"
    )]
    Condition {
        /// Number of the binding.
        at: usize,
        /// The JSON pointer of the condition.
        pointer: String,
        /// The invalid condition.
        given: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
struct Binding {
    route: RoutingKey,
    name: Option<WildMatch>,
    topic: Option<TopicPattern>,
    payload: Vec<(String, Condition)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    OneOf(Vec<Value>),
    Range {
        from: Option<f64>,
        below: Option<f64>,
    },
}

impl Bindings {
    /// Returns the route of a job by its name (that of its handler, or its script type), its topic, and its payload.
    /// The payload is parsed only if a binding needs it.
    #[must_use]
    pub fn route(&self, name: &str, topic: Option<&Topic>, given: &[u8]) -> &RoutingKey {
        let payload: Option<Value> = self
            .reads_payloads()
            .then(|| serde_json::from_slice(given).ok())
            .flatten();
        let subject = Subject {
            name,
            topic,
            payload: payload.as_ref(),
        };
        let fits = self.bindings.iter().find(|binding| binding.fits(subject));
        fits.map_or(&self.otherwise, |binding| &binding.route)
    }

    /// Returns whether any binding needs the payload. Parsing is skipped otherwise.
    fn reads_payloads(&self) -> bool {
        self.bindings
            .iter()
            .any(|binding| !binding.payload.is_empty())
    }
}

impl Binding {
    fn fits(&self, subject: Subject<'_>) -> bool {
        let name = self
            .name
            .as_ref()
            .is_none_or(|name| name.matches(subject.name));
        let topic = self.topic.as_ref();
        let topic =
            topic.is_none_or(|pattern| subject.topic.is_some_and(|topic| pattern.matches(topic)));
        let at = |pointer: &str| subject.payload.and_then(|payload| payload.pointer(pointer));
        let mut payload = self.payload.iter();
        name && topic
            && payload
                .all(|(pointer, condition)| at(pointer).is_some_and(|found| condition.fits(found)))
    }
}

impl Condition {
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Array(values) => (!values.is_empty()).then_some(Self::OneOf(values)),
            Value::Object(range) => {
                let known = range.keys().all(|key| key == "from" || key == "below");
                let numbers = range.values().all(Value::is_number);
                let number = |key| range.get(key).and_then(Value::as_f64);
                let (from, below) = (number("from"), number("below"));
                let fits_some = from.zip(below).is_none_or(|(from, below)| from < below);
                let is_range = known && numbers && !range.is_empty() && fits_some;
                is_range.then_some(Self::Range { from, below })
            }
            value => Some(Self::OneOf(vec![value])),
        }
    }

    fn fits(&self, found: &Value) -> bool {
        match self {
            Self::OneOf(values) => values.contains(found),
            Self::Range { from, below } => found.as_f64().is_some_and(|found| {
                from.is_none_or(|from| found >= from) && below.is_none_or(|below| found < below)
            }),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    bindings: Vec<Written>,
    default: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    route: String,
    name: Option<String>,
    topic: Option<String>,
    #[serde(default)]
    payload: BTreeMap<String, Value>,
}

impl TryFrom<File> for Bindings {
    type Error = InvalidBindings;

    fn try_from(file: File) -> Result<Self, InvalidBindings> {
        if file.bindings.len() > MAX_BINDINGS {
            return Err(InvalidBindings::TooMany(file.bindings.len()));
        }
        let bindings = (1..)
            .zip(file.bindings)
            .map(|(at, written)| written.read(at));
        let otherwise = file.default.map(|route| route.parse()).transpose();
        Ok(Self {
            bindings: bindings.collect::<Result<_, _>>()?,
            otherwise: otherwise
                .map_err(InvalidBindings::Otherwise)?
                .unwrap_or_default(),
        })
    }
}

impl Written {
    fn read(self, at: usize) -> Result<Binding, InvalidBindings> {
        if self.name.is_none() && self.topic.is_none() && self.payload.is_empty() {
            return Err(InvalidBindings::NoCondition(at));
        }
        if self.name.as_deref() == Some("") {
            return Err(InvalidBindings::Name(at));
        }
        let route = self.route.parse();
        let topic = self.topic.map(|topic| topic.parse()).transpose();
        let mut payload = Vec::new();
        for (pointer, value) in self.payload {
            if !is_pointer(&pointer) {
                return Err(InvalidBindings::Pointer { at, pointer });
            }
            let given = value.to_string();
            let Some(condition) = Condition::read(value) else {
                return Err(InvalidBindings::Condition { at, pointer, given });
            };
            payload.push((pointer, condition));
        }
        Ok(Binding {
            route: route.map_err(|source| InvalidBindings::Route { at, source })?,
            name: self.name.as_deref().map(WildMatch::new),
            topic: topic.map_err(|source| InvalidBindings::Topic { at, source })?,
            payload,
        })
    }
}

/// Checks a pointer by RFC 6901, except that the empty text, for the whole payload, is refused.
fn is_pointer(text: &str) -> bool {
    let mut behind = text.split('~').skip(1);
    text.starts_with('/') && behind.all(|rest| rest.starts_with(['0', '1']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bindings(file: Value) -> Result<Bindings, String> {
        serde_json::from_value(file).map_err(|error| error.to_string())
    }

    fn route(bindings: &Bindings, name: &str, topic: Option<&str>, payload: Value) -> String {
        let topic = topic.map(|topic| topic.parse().unwrap());
        let given = payload.to_string();
        bindings
            .route(name, topic.as_ref(), given.as_bytes())
            .to_string()
    }

    #[test]
    fn the_first_that_fits_decides() {
        let bindings = bindings(json!({
            "bindings": [
                {"route": "critical", "name": "image_*", "payload": {"/sla": "gold"}},
                {"route": "gpu", "name": "image_*"},
                {"route": "gpu", "name": "train_?"},
                {"route": "orders-eu", "topic": "orders.eu.#"},
                {"route": "eu", "payload": {"/customer/region": ["eu", "ch"]}},
                {"route": "high_memory", "payload": {"/pixels": {"from": 4_000_000}}},
                {"route": "small", "payload": {"/pixels": {"from": 1, "below": 10}}},
            ],
            "default": "cpu",
        }));
        let bindings = bindings.unwrap();
        for (name, topic, payload, expected) in [
            ("image_resize", None, json!({}), "gpu"),
            ("image_resize", None, json!({"sla": "gold"}), "critical"),
            ("image_resize", None, json!({"sla": ["gold"]}), "gpu"),
            ("train_1", None, json!(null), "gpu"),
            ("train_12", None, json!(null), "cpu"),
            ("x", Some("orders.eu"), json!(1), "orders-eu"),
            ("x", Some("orders.us"), json!(1), "cpu"),
            ("x", None, json!({"customer": {"region": "ch"}}), "eu"),
            ("x", None, json!({"pixels": 4_000_000}), "high_memory"),
            ("x", None, json!({"pixels": 9.5}), "small"),
            ("x", None, json!({"pixels": 10}), "cpu"),
            ("x", None, json!({"pixels": "many"}), "cpu"),
        ] {
            assert_eq!(route(&bindings, name, topic, payload), expected, "{name}");
        }
        assert!(bindings.reads_payloads());
    }

    #[test]
    fn without_bindings_all_go_to_default() {
        let none = bindings(json!({})).unwrap();
        assert_eq!(none, Bindings::default());
        assert_eq!(route(&none, "x", None, json!(1)), "default");
        assert!(!none.reads_payloads());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = vec![json!({"route": "a", "name": "b"}); MAX_BINDINGS + 1];
        for (file, word) in [
            (json!({"bindings": many}), "1001 bindings are too many"),
            (
                json!({"bindings": [{"route": "a"}]}),
                "binding 1 has no condition",
            ),
            (
                json!({"bindings": [{"route": "a:b", "name": "x"}]}),
                "route of binding 1",
            ),
            (
                json!({"bindings": [{"route": "a", "topic": "x..y"}]}),
                "topic of binding 1",
            ),
            (
                json!({"bindings": [{"route": "a", "payload": {"x": 1}}]}),
                "`x` in binding 1",
            ),
            (
                json!({"bindings": [{"route": "a", "payload": {"/x": {"from": "1"}}}]}),
                "at `/x`",
            ),
            (
                json!({"bindings": [{"route": "a", "payload": {"/x": {"least": 1}}}]}),
                "least",
            ),
            (
                json!({"bindings": [{"route": "a", "payload": {"/x": {}}}]}),
                "at `/x`",
            ),
            (
                json!({"bindings": [{"route": "a", "payload": {"/x": {"from": 5, "below": 2}}}]}),
                "at `/x`",
            ),
            (
                json!({"bindings": [{"route": "a", "payload": {"/x": []}}]}),
                "at `/x`",
            ),
            (
                json!({"bindings": [{"route": "a", "payload": {"/a~2b": 1}}]}),
                "`/a~2b` in binding 1",
            ),
            (
                json!({"bindings": [{"route": "a", "name": ""}]}),
                "name of binding 1",
            ),
            (
                json!({"bindings": [{"rout": "a", "name": "x"}]}),
                "unknown field `rout`",
            ),
            (
                json!({"bindings": [{"name": "x"}]}),
                "missing field `route`",
            ),
            (json!({"default": ""}), "`default` names no route"),
            (json!({"binding": []}), "unknown field `binding`"),
        ] {
            let said = bindings(file.clone()).unwrap_err();
            assert!(said.contains(word), "{file}: {said}");
        }
    }
}
