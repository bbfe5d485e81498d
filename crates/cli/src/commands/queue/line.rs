//! Printed form of a queue's settings, the same for all commands.

use meshwork::Settings;
use meshwork::view::QueueSettingsView;
use meshwork_model::queue::QueueSettings;
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
    pub(super) set: Set,
}

/// Settings besides the greatest number of waiting jobs.
#[derive(Debug, Serialize)]
pub(super) struct Set {
    #[serde(flatten)]
    view: QueueSettingsView,
    #[serde(skip)]
    words: String,
}

impl Set {
    pub(super) fn new(view: QueueSettingsView) -> Self {
        let states = [(view.paused, "paused"), (view.draining, "draining")];
        let states = states.into_iter().filter(|(is, _)| *is);
        let states = states.map(|(_, word)| word.to_owned());
        let weights = view.weights.iter();
        let weights = weights.map(|(key, weight)| format!("weight {weight} of {key}"));
        let limits = QueueSettings::from(&view).limits();
        let words: Vec<_> = states.chain(limits).chain(weights).collect();
        let words = words.join(", ");
        Self { view, words }
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
        set: QueueSettingsView,
    ) -> Self {
        Self {
            queue,
            name: context.queue_name(queue),
            limit,
            set: Set::new(set),
        }
    }

    /// Returns the settings of a list, or of the default, as they are in a store.
    pub(super) fn of(context: &App, queue: &'a str, set: &Settings) -> Self {
        let limit = match queue {
            DEFAULT => set.limits.default,
            list => set.limits.queues.get(list).copied(),
        };
        let view = QueueSettingsView::new(queue, set.of(queue).filter(|_| queue != DEFAULT));
        Self::new(context, queue, limit, view)
    }
}

/// Name of the default of all queues without a limit of their own.
pub(super) const DEFAULT: &str = "default";

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
