//! Progress of a flow: a redrawn tree on a terminal, else a line for each change.

use std::collections::BTreeMap;
use std::time::Duration;

use console::Term;
use meshwork::flow::graph;
use meshwork::flow::{FlowView, JobView, Plan};
use meshwork::view::FlowDag;
use meshwork_model::flow::Dag;
use meshwork_model::keys::context::FlowId;
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::place::Place;
use crate::app::App;
use crate::error::CommandError;
use crate::interrupt::Interrupt;
use crate::out::{can_draw, note, one_line, with_keys};

/// Interval of calls of the API.
const LOOK: Duration = Duration::from_millis(500);

/// Shows the progress of a flow until it has ended. An interruption ends the command, not the flow, and prints how to go on.
///
/// # Errors
/// The command was interrupted, or the server refuses a call.
pub(super) async fn watch(
    place: &Place,
    (id, plan): (FlowId, &Plan),
    interrupt: &Interrupt,
) -> Result<FlowView, CommandError> {
    let context = place.flows.context();
    let how = format!(
        "workers of the context continue flow {id}: `meshwork worker --context {context}` starts one, `meshwork flow status {id} \
         --wait` shows it, `meshwork flow cancel {id}` cancels it"
    );
    let mut live = Live::new(super::named(plan)?);
    let ended = with_keys(place.flows.wait(id, |view| live.show(view)));
    interrupt.or_detach(ended, how).await
}

/// Same as [`watch`], by the API.
pub(super) async fn watch_by_api(
    app: &App,
    id: FlowId,
    params: &Map<String, Value>,
    interrupt: &Interrupt,
) -> Result<FlowView, CommandError> {
    let how = format!("flow {id} goes on: `meshwork flow status {id} --wait` waits for it");
    let FlowDag(dag) = app.call("flow.dag", params).await?;
    let mut live = Live::new(dag);
    let ended = async {
        loop {
            let view = app.retried(async || read(app, params).await).await?;
            live.show(&view);
            if view.is_ended() {
                return Ok::<_, CommandError>(view);
            }
            sleep(LOOK).await;
        }
    };
    interrupt.or_detach(with_keys(ended), how).await
}

/// Reads a flow by a method of the API.
pub(super) async fn read(app: &App, params: &Map<String, Value>) -> Result<FlowView, CommandError> {
    let mut view: FlowView = app.call("flow.get", params).await?;
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let outputs = view.outputs.iter();
    view.result = outputs
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    Ok(view)
}

/// Progress display.
struct Live {
    dag: Dag<String>,
    /// None: output is disabled.
    term: Option<Term>,
    drawn: usize,
    said: BTreeMap<String, String>,
}

impl Live {
    fn new(dag: Dag<String>) -> Self {
        let terminal = can_draw(&std::io::stderr());
        Self {
            dag,
            term: terminal.then(Term::stderr),
            drawn: 0,
            said: BTreeMap::new(),
        }
    }

    /// Shows a state.
    fn show(&mut self, view: &FlowView) {
        match self.term.clone() {
            Some(term) => self.draw(&term, view),
            None => self.tell(view),
        }
    }

    fn draw(&mut self, term: &Term, view: &FlowView) {
        let (height, width) = term.size();
        // The last line stays empty, since a full screen scrolls.
        let room = usize::from(height).saturating_sub(2).max(1);
        let text = drawing(&self.dag, view, (usize::from(width.max(20)) - 1, room));
        let lines: Vec<&str> = text.lines().take(room).collect();
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

/// Returns a flow in at most `room` lines: its tree, the counts of its jobs, and if the tree leaves jobs out, what has
/// failed and what runs. A tree that leaves no room for these is reduced to its first line.
pub(super) fn drawing(dag: &Dag<String>, view: &FlowView, (width, room): (usize, usize)) -> String {
    let tree = tree(dag, view, width);
    let lines = tree.lines().count();
    let is_whole = lines > dag.nodes.len();
    let text = match lines + if is_whole { 1 } else { WINDOW } <= room {
        true => tree.as_str(),
        false => tree.split_inclusive('\n').next().unwrap_or_default(),
    };
    let used = text.lines().count() + 1;
    let window = match is_whole && text.len() == tree.len() {
        true => String::new(),
        false => window(view, (width, room.saturating_sub(used))),
    };
    format!("{text}{}\n{window}", one_line(&counts(view), width))
}

/// Lines for the counts and for what has failed and runs, below a tree that leaves jobs out.
const WINDOW: usize = 8;

/// Returns the jobs that have failed and those that run, in at most `room` lines.
fn window(view: &FlowView, (width, room): (usize, usize)) -> String {
    let of = |status| view.jobs.iter().filter(move |job| job.status == status);
    let shown: Vec<_> = of("error").chain(of("started")).collect();
    let fits = match shown.len() > room {
        true => room.saturating_sub(1),
        false => shown.len(),
    };
    let mut text = String::new();
    for job in &shown[..fits] {
        text.push_str(&one_line(&format!("{}: {}", job.name, state(job)), width));
        text.push('\n');
    }
    if fits < shown.len() {
        text.push_str(&format!("… {} more\n", shown.len() - fits));
    }
    text
}

/// The words of a count, in the order in which they are printed.
const COUNTED: [(&str, &str); 7] = [
    ("error", "failed"),
    ("started", "running"),
    ("ready", "queued"),
    ("waiting", "waiting"),
    ("finished", "finished"),
    ("skipped", "skipped"),
    ("stopped", "cancelled"),
];

/// Returns the number of jobs in each state, and of the items of each `foreach` that runs.
fn counts(view: &FlowView) -> String {
    let number = |status: &str| view.jobs.iter().filter(|job| job.status == status).count();
    let counts = COUNTED.map(|(status, word)| (number(status), word));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let jobs = counts.map(|(count, word)| format!("{count} {word}"));
    let running = view
        .jobs
        .iter()
        .filter(|job| job.status == "started" && !job.items.is_empty());
    let items = running.map(|job| format!("{} {}", job.name, items(job)));
    jobs.chain(items).collect::<Vec<_>>().join(", ")
}

/// Returns the number of finished items of a `foreach`.
fn items(job: &JobView) -> String {
    let finished = job.items.iter().filter(|item| item.status == "finished");
    format!("{} of {} items finished", finished.count(), job.items.len())
}

/// Returns a flow as a tree of its jobs, each with a sign for its status.
fn tree(dag: &Dag<String>, view: &FlowView, width: usize) -> String {
    let mut dag = dag.clone();
    for (node, job) in dag.nodes.iter_mut().zip(&view.jobs) {
        node.status = Some(shown(job.status).to_owned());
    }
    graph::text(&dag, &format!("{} {}", view.name, view.status), width)
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
    match (&job.error, &job.question) {
        (Some(error), _) => format!("{}: {error}", job.status),
        (_, Some(question)) => format!("asks: {question}"),
        _ if job.items.is_empty() => job.status.to_owned(),
        _ => format!("{}, {}", job.status, items(job)),
    }
}

#[cfg(test)]
mod tests {
    use meshwork::flow::{Flow, Task};

    use super::*;

    /// A flow of so many jobs, of which the first have these statuses and the others wait.
    fn flow(jobs: usize, statuses: &[&'static str]) -> (Dag<String>, FlowView) {
        let mut flow = Flow::new("large");
        for job in 0..jobs {
            flow = flow.job(&format!("j{job}"), Task::rhai("1"));
        }
        let plan = flow.plan().unwrap();
        let job = |(at, node): (usize, &meshwork_model::flow::Node)| JobView {
            name: node.name.to_string(),
            id: String::new(),
            status: statuses.get(at).copied().unwrap_or("waiting"),
            result: serde_json::Value::Null,
            error: None,
            question: None,
            until: None,
            started_at: None,
            ended_at: None,
            updated_at: None,
            items: Vec::new(),
        };
        let jobs = plan.jobs.iter().enumerate().map(job).collect();
        let view = FlowView {
            id: FlowId(1),
            name: "large".to_owned(),
            status: "started".to_owned(),
            error: None,
            caller: 1,
            created_at: None,
            ended_at: None,
            outputs: BTreeMap::new(),
            result: BTreeMap::new(),
            jobs,
        };
        (super::super::named(&plan).unwrap(), view)
    }

    #[test]
    fn a_large_flow_shows_counts_and_what_failed_and_runs() {
        let statuses = [&["finished"; 1000][..], &["error"; 2], &["started"; 40]].concat();
        let (dag, view) = flow(2000, &statuses);
        let text = drawing(&dag, &view, (79, 22));
        assert!(text.lines().count() <= 22, "{text}");
        let counts = "2 failed, 40 running, 958 waiting, 1000 finished\n";
        let (_, window) = text.split_once(counts).unwrap();
        assert!(
            window.starts_with("j1000: error\nj1001: error\nj1002: started\n"),
            "{text}"
        );
        assert!(window.ends_with(" more\n"), "{text}");
    }

    #[test]
    fn a_small_flow_is_a_tree_with_counts() {
        let (dag, view) = flow(3, &["finished", "started"]);
        let text = drawing(&dag, &view, (79, 22));
        assert!(
            text.ends_with("j2 (osis)\n1 running, 1 waiting, 1 finished\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 5, "{text}");
    }
}
