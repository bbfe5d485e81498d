//! Printed form of a queue's settings, the same for all commands.

use std::collections::BTreeMap;

use meshwork::model::keys::hero::JobKeys;
use meshwork::model::queue::QueueSettings;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// A list and its settings. All but the limit apply to the whole queue, and are printed at its list of normal priority
/// only.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    pub(super) queue: &'a str,
    /// Printed name of the list.
    #[serde(skip)]
    name: String,
    pub(super) limit: Option<u64>,
    #[serde(flatten)]
    pub(super) set: Set<'a>,
}

/// Settings besides the greatest number of waiting jobs.
#[derive(Debug, Default, Serialize)]
pub(super) struct Set<'a> {
    paused: bool,
    draining: bool,
    concurrency: Option<u64>,
    rate: Option<String>,
    key_concurrency: Option<u64>,
    key_rate: Option<String>,
    payload: Option<u64>,
    fair: bool,
    weights: BTreeMap<&'a str, u64>,
    #[serde(skip)]
    words: String,
}

impl<'a> Set<'a> {
    pub(super) fn new(list: &str, set: Option<&'a QueueSettings>) -> Self {
        let Some(set) = set.filter(|_| JobKeys::without_priority(list) == list) else {
            return Self::default();
        };
        let states = [(set.paused, "paused"), (set.draining, "draining")];
        let states = states.into_iter().filter(|(is, _)| *is);
        let states = states.map(|(_, word)| word.to_owned());
        let weights = set.weights.iter();
        let weights = weights.map(|(key, weight)| format!("weight {weight} of {key}"));
        let words: Vec<_> = states.chain(set.limits()).chain(weights).collect();
        Self {
            paused: set.paused,
            draining: set.draining,
            concurrency: set.concurrency,
            rate: set.rate.map(|rate| rate.to_string()),
            key_concurrency: set.key_concurrency,
            key_rate: set.key_rate.map(|rate| rate.to_string()),
            payload: set.payload,
            fair: set.fair,
            weights: set.weights.iter().map(|(k, w)| (k.as_str(), *w)).collect(),
            words: words.join(", "),
        }
    }

    /// Describes the settings for people.
    pub(super) fn words(&self) -> &str {
        &self.words
    }
}

impl<'a> Line<'a> {
    pub(super) fn new(
        context: &App,
        queue: &'a str,
        limit: Option<u64>,
        set: Option<&'a QueueSettings>,
    ) -> Self {
        Self {
            queue,
            name: context.queue_name(queue),
            limit,
            set: Set::new(queue, set),
        }
    }
}

impl Row for Line<'_> {
    fn columns() -> Vec<Column> {
        Column::named(["queue", "length", "set"], &["length"])
    }

    fn cells(&self) -> Vec<String> {
        let words = match self.set.words() {
            "" => "-",
            words => words,
        };
        vec![self.name.clone(), number(self.limit), words.to_owned()]
    }
}

pub(super) fn number(limit: Option<u64>) -> String {
    limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
}

/// Prints the settings of one queue.
pub(super) fn print(context: &mut App, line: &Line<'_>) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        context.out.json(line)?;
        return Ok(Exit::DONE);
    }
    let mut words: Vec<_> = line
        .limit
        .map(|n| format!("length {n}"))
        .into_iter()
        .collect();
    words.extend(Some(line.set.words().to_owned()).filter(|words| !words.is_empty()));
    let words = match words.len() {
        0 => "no limit".to_owned(),
        _ => words.join(", "),
    };
    context.out.line(format_args!("{} {words}", line.name))?;
    Ok(Exit::DONE)
}
