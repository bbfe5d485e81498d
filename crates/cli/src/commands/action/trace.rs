//! `meshwork action trace`: the tree of one task's actions.

use std::collections::BTreeMap;

use meshwork_broker::MAX_ITEMS;
use meshwork_broker::nooble::Nooble;

use super::Side;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::out::printable;

/// Print the tree of one task's actions, with their times
///
/// It knows the latest 50,000 actions that services of ours dealt with. The wire of lists has no task: give the trace
/// there.
#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    #[command(flatten)]
    side: Side,
    /// The task's id, or the trace's
    id: String,
}

/// An action as the trace tells of it.
type Told = BTreeMap<String, String>;

impl Trace {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let broker = self.side.broker(context).await?;
        // However it is written, it stands there in one form.
        let id = meshwork::model::nooble::uuid(&self.id).unwrap_or(self.id);
        let told = told(&broker, &id).await?;
        if told.is_empty() {
            return Err(Error::NoTrace(id));
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
async fn told(broker: &Nooble, id: &str) -> Result<Vec<Told>, Error> {
    let (mut told, mut before) = (Vec::new(), None::<String>);
    loop {
        let key = broker.names().trace();
        let page = broker.traced(&key, before.as_deref(), MAX_ITEMS).await?;
        before = page.last().map(|(id, _)| id.clone());
        let many = page.len();
        let of = |(_, fields): (String, Vec<(String, String)>)| Told::from_iter(fields);
        let is_it = |one: &Told| ["task", "trace"].iter().any(|it| word(one, it) == id);
        told.extend(page.into_iter().map(of).filter(is_it));
        if many < MAX_ITEMS {
            break;
        }
    }
    told.sort_by(|a, b| a.get("began").cmp(&b.get("began")));
    Ok(told)
}

fn word<'a>(one: &'a Told, name: &str) -> &'a str {
    one.get(name).map_or("", String::as_str)
}

/// A line for each, those that an action called below it. What no action that is known called stands at the edge.
fn tree(told: &[Told]) -> Vec<String> {
    let mut lines = Vec::new();
    let spans: Vec<_> = told.iter().map(|one| word(one, "span")).collect();
    let roots = told
        .iter()
        .filter(|one| !spans.contains(&word(one, "parent")));
    // The last in is the first out; each is shown once, whatever its parents say.
    let mut next: Vec<_> = roots.rev().map(|one| (one, 0)).collect();
    let mut shown = Vec::new();
    while let Some((one, depth)) = next.pop() {
        let span = word(one, "span");
        if shown.contains(&word(one, "action")) {
            continue;
        }
        shown.push(word(one, "action"));
        let error = word(one, "error");
        let error = if error.is_empty() {
            String::new()
        } else {
            format!(": {error}")
        };
        lines.push(format!(
            "{:indent$}{} {} ms at {} by {}, asked by {}: {}{error}",
            "",
            word(one, "type"),
            word(one, "took_ms"),
            word(one, "began"),
            word(one, "service"),
            word(one, "from"),
            word(one, "how"),
            indent = 2 * depth,
        ));
        let below = told.iter().filter(|it| word(it, "parent") == span);
        next.extend(below.rev().map(|it| (it, depth + 1)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(action: &str, span: &str, parent: &str) -> Told {
        let fields = [
            ("action", action),
            ("type", action),
            ("span", span),
            ("parent", parent),
        ];
        let field = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        fields.into_iter().map(field).collect()
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

    #[test]
    fn a_circle_ends() {
        let all = [told("a", "1", "x"), told("b", "1", "1")];
        assert_eq!(tree(&all).len(), 2);
    }
}
