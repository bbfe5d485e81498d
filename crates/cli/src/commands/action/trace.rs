//! `meshwork action trace`: the tree of one task's actions.

use std::collections::HashMap;

use meshwork_broker::MAX_ITEMS;
use meshwork_broker::nooble::Nooble;
use meshwork_model::nooble::TraceEvent;
use meshwork_model::time::duration;

use super::Side;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::printable;

/// Print the tree of one task's actions, with their times
///
/// The trace has the latest 50,000 actions that Meshwork's services ended in the last day. The lists dialect has no tasks: give the id
/// of the trace there, which is the value of --task in `action call` and `send`.
#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    #[command(flatten)]
    side: Side,
    /// Id of the task, or of the trace, as `action call --json` prints them
    id: String,
}

type Event = TraceEvent<'static>;

impl Trace {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let broker = self.side.broker(context).await?;
        // Stored ids have the canonical form of a UUID.
        let id = meshwork_model::nooble::uuid(&self.id).unwrap_or(self.id);
        let entries = read(&broker, &id).await?;
        if entries.is_empty() {
            return Err(CommandError::new(
                Exit::NO_JOB,
                format_args!(
                    "task or trace {id} not found: the trace has the latest 50,000 actions that Meshwork's services ended in \
                     the last day"
                ),
            ));
        }
        if context.out.is_json() {
            for one in &entries {
                context.out.json(one)?;
            }
        } else {
            let lines = tree(&entries);
            for line in lines {
                context.out.line(printable(&line))?;
            }
        }
        Ok(Exit::DONE)
    }
}

/// Reads the entries of a task or a trace, the earliest first.
async fn read(broker: &Nooble, id: &str) -> Result<Vec<Event>, CommandError> {
    let (mut entries, mut before) = (Vec::new(), None::<String>);
    loop {
        let page = broker.traced(before.as_deref(), MAX_ITEMS).await?;
        before = page.last().map(|(id, _)| id.clone());
        let many = page.len();
        let is_it = |one: &Event| one.task == id || one.trace == id;
        entries.extend(page.into_iter().filter_map(|(_, one)| one).filter(is_it));
        if many < MAX_ITEMS {
            break;
        }
    }
    entries.sort_by(|a, b| a.began.cmp(&b.began));
    Ok(entries)
}

/// Returns one line per action, with called actions indented below their caller. An action without a known caller is a
/// root.
fn tree(entries: &[Event]) -> Vec<String> {
    let (parents, mut below) = (parents(entries), vec![Vec::new(); entries.len()]);
    for (at, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            below[*parent].push(at);
        }
    }
    let (mut lines, mut shown) = (Vec::new(), vec![false; entries.len()]);
    let roots = (0..entries.len()).filter(|at| parents[*at].is_none());
    // A cycle has no root: its earliest entry becomes one.
    for root in roots.chain(0..entries.len()) {
        // Depth first.
        let mut next = vec![(root, 0)];
        while let Some((at, depth)) = next.pop() {
            if std::mem::replace(&mut shown[at], true) {
                continue;
            }
            lines.push(line(&entries[at], depth));
            next.extend(below[at].iter().rev().map(|it| (*it, depth + 1)));
        }
    }
    lines
}

/// Returns the entry of the run that called each action: of several runs, the last one that had begun before. Excludes
/// the action itself, and entries without a span.
fn parents(entries: &[Event]) -> Vec<Option<usize>> {
    let mut runs = HashMap::<&str, Vec<usize>>::new();
    for (at, one) in entries.iter().enumerate() {
        runs.entry(&one.span).or_default().push(at);
    }
    let parent = |(at, one): (usize, &Event)| {
        let parent = Some(&*one.parent).filter(|span| !span.is_empty())?;
        let others = |it: &&usize| entries[**it].action != one.action;
        let mut calls = runs.get(parent)?.iter().filter(others).peekable();
        let first = calls.peek().copied();
        calls.take_while(|it| **it < at).last().or(first).copied()
    };
    entries.iter().enumerate().map(parent).collect()
}

fn line(one: &Event, depth: usize) -> String {
    let error = match &*one.error {
        "" => String::new(),
        error => format!(": {error}"),
    };
    let line = format!(
        "{:indent$}{} {} at {} by {}, called by {}: {}{error}",
        "",
        one.action_type,
        duration(one.took_ms),
        one.began,
        one.service,
        one.from,
        one.how.as_str(),
        indent = 2 * depth,
    );
    line.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use meshwork_model::nooble::ActionOutcome;

    use super::*;

    fn entry(action: &str, span: &str, parent: &str) -> Event {
        let text = |text: &str| Cow::from(text.to_owned());
        Event {
            task: text("t"),
            action: text(action),
            action_type: text(action),
            span: text(span),
            parent: text(parent),
            from: text("caller"),
            service: text("service"),
            correlation: text(""),
            trace: text("t"),
            requested: text("2026-01-01T00:00:00.000001Z"),
            began: text("2026-01-01T00:00:00.000002Z"),
            took_ms: 12,
            how: ActionOutcome::Done,
            error: text(""),
        }
    }

    #[test]
    fn what_an_action_called_stands_below_it() {
        let all = [
            entry("a", "1", "unknown"),
            entry("b", "2", "1"),
            entry("c", "3", "2"),
            entry("d", "4", "1"),
            entry("e", "5", ""),
        ];
        let lines = tree(&all);
        let begins: Vec<_> = lines
            .iter()
            .map(|line| &line[..line.len().min(6)])
            .collect();
        let indents: Vec<_> = begins
            .iter()
            .map(|it| it.len() - it.trim_start().len())
            .collect();
        assert_eq!(indents, [0, 2, 4, 2, 0]);
        assert!(lines[3].trim_start().starts_with("d "));
    }

    fn shown(entries: &[Event]) -> Vec<String> {
        let begin = |line: &String| line.split("12 ms").next().unwrap_or_default().to_owned();
        tree(entries).iter().map(begin).collect()
    }

    #[test]
    fn a_circle_ends_and_all_in_it_is_shown() {
        let all = [
            entry("a", "1", "2"),
            entry("b", "2", "1"),
            entry("c", "3", "1"),
        ];
        assert_eq!(shown(&all), ["a ", "  b ", "  c "]);
        let all = [entry("a", "1", "x"), entry("b", "1", "1")];
        assert_eq!(shown(&all), ["a ", "  b "]);
    }

    #[test]
    fn an_action_that_names_itself_stands_at_the_edge() {
        assert_eq!(shown(&[entry("a", "1", "1")]), ["a "]);
    }

    /// A replayed action: the calls of its second run are below that run.
    #[test]
    fn each_run_is_shown() {
        let all = [
            entry("a", "1", ""),
            entry("b", "2", "1"),
            entry("a", "1", ""),
            entry("c", "3", "1"),
        ];
        assert_eq!(shown(&all), ["a ", "  b ", "a ", "  c "]);
    }

    #[test]
    fn what_has_no_span_called_nothing() {
        let all = [entry("a", "", ""), entry("b", "2", "")];
        assert_eq!(shown(&all), ["a ", "b "]);
    }

    #[test]
    fn an_error_stays_on_its_line() {
        let failed = Event {
            how: ActionOutcome::Failed,
            error: "it\nfailed".into(),
            ..entry("a", "1", "")
        };
        assert!(tree(&[failed])[0].ends_with(": failed: it failed"));
    }
}
