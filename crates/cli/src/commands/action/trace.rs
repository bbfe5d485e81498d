//! `meshwork action trace`: the tree of one task's actions.

use std::collections::HashMap;

use meshwork::model::nooble::Traced;
use meshwork_broker::MAX_ITEMS;
use meshwork_broker::nooble::Nooble;

use super::Side;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::printable;

/// Print the tree of one task's actions, with their times
///
/// It knows the latest 50,000 actions that services of ours dealt with. The wire of lists has no task: the trace
/// stands for it, which is what --task of `action call` and `send` gives there.
#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    #[command(flatten)]
    side: Side,
    /// The id of the task, or that of the trace, as `action call --json` prints them
    id: String,
}

type Told = Traced<'static>;

impl Trace {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let broker = self.side.broker(context).await?;
        // However it is written, it stands there in one form.
        let id = meshwork::model::nooble::uuid(&self.id).unwrap_or(self.id);
        let told = told(&broker, &id).await?;
        if told.is_empty() {
            return Err(CommandError::new(
                Exit::NO_JOB,
                format_args!(
                    "nothing is known of the task or trace {id}: services of ours tell of the actions that they ended in \
                     the last day, the latest 50,000"
                ),
            ));
        }
        if context.out.is_json() {
            for one in &told {
                context.out.json(one)?;
            }
        } else {
            let lines = tree(&told);
            for line in lines {
                context.out.line(printable(&line))?;
            }
        }
        Ok(Exit::DONE)
    }
}

/// What the trace tells of a task, or of all with a trace's id, the earliest first.
async fn told(broker: &Nooble, id: &str) -> Result<Vec<Told>, CommandError> {
    let (mut told, mut before) = (Vec::new(), None::<String>);
    loop {
        let page = broker.traced(before.as_deref(), MAX_ITEMS).await?;
        before = page.last().map(|(id, _)| id.clone());
        let many = page.len();
        let is_it = |one: &Told| one.task == id || one.trace == id;
        told.extend(page.into_iter().filter_map(|(_, one)| one).filter(is_it));
        if many < MAX_ITEMS {
            break;
        }
    }
    told.sort_by(|a, b| a.began.cmp(&b.began));
    Ok(told)
}

/// A line for each, those that an action called below it. What no action that is known called stands at the edge.
fn tree(told: &[Told]) -> Vec<String> {
    let (parents, mut below) = (parents(told), vec![Vec::new(); told.len()]);
    for (at, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            below[*parent].push(at);
        }
    }
    let (mut lines, mut shown) = (Vec::new(), vec![false; told.len()]);
    let roots = (0..told.len()).filter(|at| parents[*at].is_none());
    // Those that say of each other that they called them have no root: the earliest of them stands at the edge.
    for root in roots.chain(0..told.len()) {
        // The last in is the first out.
        let mut next = vec![(root, 0)];
        while let Some((at, depth)) = next.pop() {
            if std::mem::replace(&mut shown[at], true) {
                continue;
            }
            lines.push(line(&told[at], depth));
            next.extend(below[at].iter().rev().map(|it| (*it, depth + 1)));
        }
    }
    lines
}

/// Which entry tells of the run that called each action: of several runs, the last that had begun by then. None is
/// called by itself, nor by what has no span.
fn parents(told: &[Told]) -> Vec<Option<usize>> {
    let mut runs = HashMap::<&str, Vec<usize>>::new();
    for (at, one) in told.iter().enumerate() {
        runs.entry(&one.span).or_default().push(at);
    }
    let parent = |(at, one): (usize, &Told)| {
        let parent = Some(&*one.parent).filter(|span| !span.is_empty())?;
        let others = |it: &&usize| told[**it].action != one.action;
        let mut calls = runs.get(parent)?.iter().filter(others).peekable();
        let first = calls.peek().copied();
        calls.take_while(|it| **it < at).last().or(first).copied()
    };
    told.iter().enumerate().map(parent).collect()
}

fn line(one: &Told, depth: usize) -> String {
    let error = match &*one.error {
        "" => String::new(),
        error => format!(": {error}"),
    };
    let line = format!(
        "{:indent$}{} {} ms at {} by {}, asked by {}: {}{error}",
        "",
        one.action_type,
        one.took_ms,
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

    use meshwork::model::nooble::Ended;

    use super::*;

    fn told(action: &str, span: &str, parent: &str) -> Told {
        let text = |text: &str| Cow::from(text.to_owned());
        Told {
            task: text("t"),
            action: text(action),
            action_type: text(action),
            span: text(span),
            parent: text(parent),
            from: text("caller"),
            service: text("service"),
            correlation: text(""),
            trace: text("t"),
            asked: text("2026-01-01T00:00:00.000001Z"),
            began: text("2026-01-01T00:00:00.000002Z"),
            took_ms: 12,
            how: Ended::Done,
            error: text(""),
        }
    }

    #[test]
    fn what_an_action_called_stands_below_it() {
        let all = [
            told("a", "1", "unknown"),
            told("b", "2", "1"),
            told("c", "3", "2"),
            told("d", "4", "1"),
            told("e", "5", ""),
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

    fn shown(told: &[Told]) -> Vec<String> {
        let begin = |line: &String| line.split("12 ms").next().unwrap_or_default().to_owned();
        tree(told).iter().map(begin).collect()
    }

    #[test]
    fn a_circle_ends_and_all_in_it_is_shown() {
        let all = [
            told("a", "1", "2"),
            told("b", "2", "1"),
            told("c", "3", "1"),
        ];
        assert_eq!(shown(&all), ["a ", "  b ", "  c "]);
        let all = [told("a", "1", "x"), told("b", "1", "1")];
        assert_eq!(shown(&all), ["a ", "  b "]);
    }

    #[test]
    fn an_action_that_names_itself_stands_at_the_edge() {
        assert_eq!(shown(&[told("a", "1", "1")]), ["a "]);
    }

    /// An action that was replayed: what its second run called stands below that.
    #[test]
    fn each_run_is_shown() {
        let all = [
            told("a", "1", ""),
            told("b", "2", "1"),
            told("a", "1", ""),
            told("c", "3", "1"),
        ];
        assert_eq!(shown(&all), ["a ", "  b ", "a ", "  c "]);
    }

    #[test]
    fn what_has_no_span_called_nothing() {
        let all = [told("a", "", ""), told("b", "2", "")];
        assert_eq!(shown(&all), ["a ", "b "]);
    }

    #[test]
    fn an_error_stays_on_its_line() {
        let failed = Told {
            how: Ended::Failed,
            error: "it\nfailed".into(),
            ..told("a", "1", "")
        };
        assert!(tree(&[failed])[0].ends_with(": failed: it failed"));
    }
}
