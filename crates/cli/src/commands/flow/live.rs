//! Progress of a flow: a redrawn tree on a terminal, else a line for each change.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use console::Term;
use meshwork::flow::graph;
use meshwork::flow::{FlowView, JobView, Plan};
use meshwork_model::flow::{Dag, JobState};

use crate::out::note;

/// Progress display.
pub(super) struct Live {
    plan: Plan,
    /// None: output is disabled.
    term: Option<Term>,
    drawn: usize,
    said: BTreeMap<String, String>,
}

impl Live {
    pub(super) fn new(plan: &Plan) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            plan: plan.clone(),
            term: terminal.then(Term::stderr),
            drawn: 0,
            said: BTreeMap::new(),
        }
    }

    /// Shows a state.
    pub(super) fn show(&mut self, view: &FlowView) {
        match self.term.clone() {
            Some(term) => self.draw(&term, view),
            None => self.tell(view),
        }
    }

    fn draw(&mut self, term: &Term, view: &FlowView) {
        let (height, width) = term.size();
        // The last line stays empty, since a full screen scrolls.
        let room = usize::from(height).saturating_sub(2).max(1);
        let text = tree(&self.plan, view, usize::from(width.max(20)) - 1);
        let mut lines: Vec<&str> = text.lines().collect();
        let more = format!("… {} more lines", lines.len().saturating_sub(room) + 1);
        if lines.len() > room {
            lines.truncate(room - 1);
            lines.push(&more);
        }
        // Write errors are ignored, since the flow continues without its terminal.
        term.clear_last_lines(self.drawn).ok();
        self.drawn = lines.len();
        term.write_line(&lines.join("\n")).ok();
    }

    fn tell(&mut self, view: &FlowView) {
        for job in &view.jobs {
            let state = state(job);
            let known = self.said.get(&job.name);
            if known != Some(&state) && (known.is_some() || !state.starts_with("waiting")) {
                note(format_args!("{}: {state}", job.name));
            }
            self.said.insert(job.name.clone(), state);
        }
    }
}

/// Returns a flow as a tree of its jobs, each with a sign for its status.
pub(super) fn tree(plan: &Plan, view: &FlowView, width: usize) -> String {
    let name = |number: usize| plan.jobs[number].name.to_string();
    let status = |number: usize| JobState {
        status: view
            .jobs
            .get(number)
            .map(|job| shown(job.status).to_owned()),
        ..JobState::default()
    };
    match Dag::new(plan, name, status) {
        Ok(dag) => graph::text(&dag, &format!("{} {}", view.name, view.status), width),
        Err(cycle) => cycle.to_string(),
    }
}

/// Returns the status for the drawing.
fn shown(status: &str) -> &str {
    match status {
        "stopped" => "error",
        other => other,
    }
}

/// Returns the state of a job in words.
fn state(job: &JobView) -> String {
    let ended = |status: &str| {
        job.items
            .iter()
            .filter(|item| item.status == status)
            .count()
    };
    match (&job.error, &job.question) {
        (Some(error), _) => format!("{}: {error}", job.status),
        (_, Some(question)) => format!("asks: {question}"),
        _ if job.items.is_empty() => job.status.to_owned(),
        _ => format!(
            "{}, {} of {} items finished",
            job.status,
            ended("finished"),
            job.items.len()
        ),
    }
}
