//! The checks of expressions before a flow runs: each can be read, and names ancestors and nothing else.

use std::collections::{BTreeSet, HashSet};

use meshwork_model::flow::{Ancestors, Graph, Node, NodeName, Plan, Position, Text, Work};
use rhai::{Engine, EvalAltResult, ParseErrorType, Scope};
use serde_json::Value;

use super::engine::{self, Marked};
use super::template::{Part, parts};
use super::{described, known, lexer};

/// A fault of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The place of the expression in the flow's file.
    pub at: Option<Position>,
    /// The job, the option, and the fault.
    pub message: String,
}

/// All faults of the expressions of a plan, in the order of its jobs. Plans with cycles have none.
#[must_use]
pub fn check(plan: &Plan) -> Vec<Fault> {
    let checked = engine::on_stack(|| checked(plan).0);
    checked.unwrap_or_else(|message| vec![Fault { at: None, message }])
}

/// Returns probable mistakes in a plan that can run: `${{ }}`, and inputs that no expression can name after a dot.
#[must_use]
pub fn hints(plan: &Plan) -> Vec<Fault> {
    engine::on_stack(|| checked(plan).1).unwrap_or_default()
}

/// The faults and the hints.
fn checked(plan: &Plan) -> (Vec<Fault>, Vec<Fault>) {
    let Ok(graph) = Graph::new(plan) else {
        return (Vec::new(), Vec::new());
    };
    let mut checker = Checker {
        plan,
        ancestors: graph.ancestors(),
        graph,
        engine: engine::new(false),
        faults: Vec::new(),
        hints: Vec::new(),
    };
    checker.reserved_inputs();
    checker.flow();
    for (number, job) in plan.jobs.iter().enumerate() {
        checker.job(number, job);
    }
    let (mut faults, mut hints) = (checker.faults, checker.hints);
    for nested in plan.flows.values() {
        let (own, advice) = checked(nested);
        faults.extend(own);
        hints.extend(advice);
    }
    (faults, hints)
}

/// The names that the outputs of a flow use.
#[must_use]
pub fn output_names(plan: &Plan) -> HashSet<NodeName> {
    let mut names = HashSet::new();
    for text in plan.outputs.values() {
        for part in parts(&text.text).unwrap_or_default() {
            if let Part::Expression(expression) = part {
                let found = lexer::names(expression);
                names.extend(found.iter().filter_map(|name| name.text.parse().ok()));
            }
        }
    }
    names
}

/// The names that an expression may use.
#[derive(Clone, Copy)]
enum Names {
    /// `inputs`.
    Inputs,
    /// The ancestors of a job, `inputs` and `env`; with `item` and `index` of a `foreach`.
    Of { job: usize, item: bool },
    /// All jobs of the graph, `inputs` and `env`.
    All,
}

struct Checker<'a> {
    plan: &'a Plan,
    graph: Graph,
    ancestors: Ancestors,
    engine: Engine,
    faults: Vec<Fault>,
    hints: Vec<Fault>,
}

impl Checker<'_> {
    /// A hint for each input that cannot follow a dot, as a word of Rhai or a name with a hyphen.
    fn reserved_inputs(&mut self) {
        for name in self.plan.inputs.keys() {
            if self
                .readable(&format!("inputs.{name}"), Names::Inputs, None)
                .is_err()
            {
                let message = format!(
                    "`inputs.{name}` is no expression of Rhai: write `inputs[\"{name}\"]`, or rename the input"
                );
                self.hints.push(Fault { at: None, message });
            }
        }
    }

    fn flow(&mut self) {
        let plan = self.plan;
        for (name, text) in &plan.env {
            self.template(&format!("`env.{name}`"), &text.text, text.at, Names::Inputs);
        }
        for (name, text) in &plan.outputs {
            self.template(
                &format!("`outputs.{name}`"),
                &text.text,
                text.at,
                Names::All,
            );
        }
    }

    fn job(&mut self, number: usize, job: &Node) {
        let name = &job.name;
        // A compensation may name the job that it undoes, and what that one may name.
        let target = job
            .compensates
            .as_ref()
            .and_then(|undone| self.graph.number(undone.as_str()));
        let item = job.foreach.is_some();
        let of = target.unwrap_or(number);
        let (before, during) = (
            Names::Of {
                job: of,
                item: false,
            },
            Names::Of { job: of, item },
        );
        for (option, text) in [("if", &job.condition), ("foreach", &job.foreach)] {
            if let Some(Text { text, at }) = text {
                self.expression(
                    &format!("job `{name}`: `{option}`"),
                    text,
                    *at,
                    before,
                    target,
                );
            }
        }
        for (variable, text) in &job.env {
            let place = format!("job `{name}`: `env.{variable}`");
            self.template_of(&place, &text.text, text.at, during, target);
        }
        for (input, value) in &job.inputs {
            let place = format!("job `{name}`: `with.{input}`");
            self.value(&place, &value.value, value.at, during, target);
        }
        match &job.work {
            Work::Approve(approve) => {
                let Text { text, at } = &approve.question;
                self.template(&format!("job `{name}`: `approve`"), text, *at, during);
            }
            Work::Flow(key) => self.nested(job, key),
            Work::Run(_) | Work::Wait(_) => {}
        }
    }

    /// The inputs of a nested flow: each is there, and all that have no default are given.
    fn nested(&mut self, job: &Node, key: &str) {
        let Some(flow) = self.plan.flows.get(key) else {
            return;
        };
        for (input, value) in &job.inputs {
            if !flow.inputs.contains_key(input) {
                let known: Vec<&str> = flow.inputs.keys().map(String::as_str).collect();
                let message = format!(
                    "job `{}`: the flow `{}` has no input `{input}`; it has: {}",
                    job.name,
                    flow.name,
                    known.join(", ")
                );
                self.faults.push(Fault {
                    at: value.at,
                    message,
                });
            }
        }
        for (input, default) in &flow.inputs {
            if default.is_null() && !job.inputs.contains_key(input) {
                let message = format!(
                    "job `{}`: the flow `{}` needs the input `{input}`: give it under `with`",
                    job.name, flow.name
                );
                self.faults.push(Fault {
                    at: job.at,
                    message,
                });
            }
        }
    }

    fn value(
        &mut self,
        place: &str,
        value: &Value,
        at: Option<Position>,
        names: Names,
        target: Option<usize>,
    ) {
        match value {
            Value::String(text) => self.template_of(place, text, at, names, target),
            Value::Array(items) => {
                for item in items {
                    self.value(place, item, at, names, target);
                }
            }
            Value::Object(entries) => {
                for item in entries.values() {
                    self.value(place, item, at, names, target);
                }
            }
            _ => {}
        }
    }

    fn template(&mut self, place: &str, text: &str, at: Option<Position>, names: Names) {
        self.template_of(place, text, at, names, None);
    }

    fn template_of(
        &mut self,
        place: &str,
        text: &str,
        at: Option<Position>,
        names: Names,
        target: Option<usize>,
    ) {
        match parts(text) {
            Ok(parts) => {
                let dollar = |pair: &[Part<'_>]| matches!(pair, [Part::Literal(text), Part::Expression(_)] if text.ends_with('$'));
                if parts.windows(2).any(dollar) {
                    let message = format!(
                        "{place}: `${{{{ }}}}` is no syntax here, and the `$` stays in the text: write `{{{{ }}}}`"
                    );
                    self.hints.push(Fault { at, message });
                }
                for part in parts {
                    if let Part::Expression(expression) = part {
                        self.expression(place, expression, at, names, target);
                    }
                }
            }
            Err(error) => {
                let message = format!("{place}: {error}");
                self.faults.push(Fault { at, message });
            }
        }
    }

    /// `target` is the job that a compensation undoes: it may be named, too.
    fn expression(
        &mut self,
        place: &str,
        text: &str,
        at: Option<Position>,
        names: Names,
        target: Option<usize>,
    ) {
        if let Err(error) = self.readable(text, names, target) {
            let message = format!("{place}: {error}");
            self.faults.push(Fault { at, message });
        }
    }

    fn readable(&self, text: &str, names: Names, target: Option<usize>) -> Result<(), String> {
        if text.trim().is_empty() {
            return Err("there is no expression".to_owned());
        }
        let allowed = |job: usize| match names {
            Names::Inputs => false,
            Names::Of { job: of, .. } => target == Some(job) || self.ancestors.contains(of, job),
            Names::All => self.graph.level_of(job).is_some(),
        };
        let used: BTreeSet<&str> = lexer::names(text)
            .iter()
            .filter(|name| !name.called)
            .map(|name| name.text)
            .collect();
        let mut scope = Scope::new();
        for name in used {
            let Some(job) = self.graph.number(name) else {
                continue;
            };
            if allowed(job) {
                scope.push_dynamic(engine::marked(name), rhai::Dynamic::UNIT);
            }
        }
        let values: &[&str] = match names {
            Names::Inputs => &["inputs"],
            Names::Of { item: true, .. } => &["inputs", "env", "item", "index"],
            Names::Of { .. } | Names::All => &["inputs", "env"],
        };
        for value in values {
            scope.push_dynamic(*value, rhai::Dynamic::UNIT);
        }
        let is_job = |name: &str| self.graph.number(name).is_some_and(allowed);
        let marked = Marked::new(text, is_job);
        let Err(error) = marked.compile(&self.engine, &scope) else {
            return known::missing(text, &self.engine, is_job).map_or(Ok(()), Err);
        };
        // A word of Rhai that is the name of another job is an error of another kind.
        let names_of_others = lexer::names(text).into_iter().filter(|name| !name.called);
        let mut others = names_of_others.filter(|name| name.dotted && !is_job(name.text));
        let other = others.find(|name| self.graph.number(name.text).is_some());
        Err(match error.err_type() {
            _ if other.is_some() => self.unknown(other.map_or("", |name| name.text), names, values),
            ParseErrorType::VariableUndefined(name) => self.unknown(name, names, values),
            kind if known::reserved(text, kind).is_some() => {
                known::reserved(text, kind).unwrap_or_default()
            }
            _ => described(&marked, text, &EvalAltResult::from(error)),
        })
    }

    fn unknown(&self, name: &str, names: Names, values: &[&str]) -> String {
        let values = values.join("`, `");
        match (self.graph.number(name), names) {
            (Some(job), _) if self.plan.jobs[job].compensates.is_some() => {
                format!("`{name}` compensates another job: expressions cannot name it")
            }
            (Some(_), Names::Inputs) => {
                format!("`{name}` is a job: the flow's own `env` may use `{values}` only")
            }
            (Some(_), _) => format!("`{name}` may not have ended before: add it to `needs`"),
            (None, _) => format!(
                "there is no `{name}` here: name a job that ends before, or one of `{values}`"
            ),
        }
    }
}
