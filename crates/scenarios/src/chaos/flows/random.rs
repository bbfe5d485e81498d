//! Random flows of deterministic scripts: the file, and what each attempt of each job does.

use std::path::Path;

use meshwork::flow::run::{Attempt, FlowState, JobReport, Report, Simulation, interpret};
use meshwork::flow::{self, Plan};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::chaos::ChaosError;
use crate::chaos::hostile::failed;

/// Most jobs of a file.
const MOST: usize = 500;
/// Attempts of a [`Kind::Flaky`] job beyond the first; one is needed.
const RETRIES: u32 = 2;
/// Digest of the input, which shows each result that the job was given.
const DIGEST: &str = "let s = 7; for c in INPUT.chars() { s = (s * 31 + c.to_int()) % 1000003; }";
/// Bound of a digest.
const MODULUS: u64 = 1_000_003;
/// A program that notes its start and its end in the order in which they happen.
const PROGRAM: &str =
    "#!/bin/sh\necho \"begin $FLOW_ID $JOB_NAME $ITEM_INDEX\" >> \"$TALLY\"\nn=$(wc -c)\n";
const FLAKY: &str =
    "if mkdir \"$TALLY.$FLOW_ID.$JOB_NAME.$ITEM_INDEX\" 2> /dev/null; then exit 1; fi\n";
const NOTED: &str = "echo \"end $FLOW_ID $JOB_NAME $ITEM_INDEX\" >> \"$TALLY\"\necho $((n + 1))\n";

/// The script of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Rhai, returns a digest of its input.
    Digest,
    /// Rhai, throws.
    Fails,
    /// Rhai, throws if the digest of its input is a multiple of three.
    Sometimes,
    /// A program, returns the length of its input.
    Program,
    /// The same, which fails in its first run.
    Flaky,
}

impl Kind {
    fn draw(random: &mut StdRng) -> Self {
        match random.random_range(0..100) {
            0..70 => Self::Digest,
            70..76 => Self::Fails,
            76..84 => Self::Sometimes,
            84..95 => Self::Program,
            _ => Self::Flaky,
        }
    }

    /// Returns true for a program, which notes its starts and ends.
    pub(super) fn notes(self) -> bool {
        matches!(self, Self::Program | Self::Flaky)
    }

    fn script(self) -> (String, &'static str) {
        match self {
            Self::Digest => (format!("{DIGEST} s"), "osis"),
            Self::Fails => ("throw \"on purpose\"".to_owned(), "osis"),
            Self::Sometimes => (
                format!("{DIGEST} if s % 3 == 0 {{ throw \"by chance\"; }} s"),
                "osis",
            ),
            Self::Program => (format!("{PROGRAM}{NOTED}"), "exec"),
            Self::Flaky => (format!("{PROGRAM}{FLAKY}{NOTED}"), "exec"),
        }
    }

    /// Returns what an attempt with this input does.
    fn attempt(self, input: &str, attempt: u32) -> Result<Value, String> {
        let digest = input
            .chars()
            .fold(7, |s, c| (s * 31 + u64::from(u32::from(c))) % MODULUS);
        match self {
            Self::Fails => Err("on purpose".to_owned()),
            Self::Sometimes if digest % 3 == 0 => Err("by chance".to_owned()),
            Self::Digest | Self::Sometimes => Ok(json!(digest)),
            Self::Flaky if attempt == 1 => Err("the first run".to_owned()),
            Self::Program | Self::Flaky => Ok(json!(input.len() + 1)),
        }
    }
}

/// A random flow.
#[derive(Debug)]
pub(super) struct Dag {
    /// Its plan, as the command reads it.
    pub(super) plan: Plan,
    /// The kinds of its jobs, in the order of the plan.
    pub(super) kinds: Vec<Kind>,
    /// The outcome in memory, of all jobs: no failure stops others.
    pub(super) expected: Report,
}

impl Dag {
    /// Draws the flow of this number, and writes its file.
    pub(super) fn draw(
        number: usize,
        seed: u64,
        tally: &Path,
        file: &Path,
    ) -> Result<Self, ChaosError> {
        let mut random = StdRng::seed_from_u64(seed ^ (number as u64).rotate_left(32));
        let (jobs, kinds) = jobs(&mut random);
        let value = json!({
            "flow": format!("r{number}"),
            "env": {"TALLY": tally.display().to_string()},
            "fail_fast": random.random_bool(0.3),
            "jobs": jobs,
        });
        // JSON is YAML.
        std::fs::write(file, value.to_string()).map_err(ChaosError::io("a flow"))?;
        let plan = flow::load(file).map_err(|error| failed(&error))?;
        let kinds: Vec<Kind> = plan
            .jobs
            .iter()
            .map(|job| kinds[job.name.as_str()])
            .collect();
        let expected = expected(&plan, &kinds)?;
        Ok(Self {
            plan,
            kinds,
            expected,
        })
    }

    /// Returns true if a failure stops jobs at a moment that nobody knows.
    pub(super) fn stops(&self) -> bool {
        self.plan.fail_fast && self.expected.end().error.is_some()
    }
}

/// Returns the outcome of a flow in memory.
fn expected(plan: &Plan, kinds: &[Kind]) -> Result<Report, ChaosError> {
    let mut plan = plan.clone();
    plan.fail_fast = false;
    let attempt = |report: &JobReport<'_>| {
        let job = plan.jobs.iter().position(|job| job.name == report.job.name);
        let input = Value::Object(report.work.input.clone()).to_string();
        let kind = kinds[job.unwrap_or_default()];
        let result = kind.attempt(&input, report.attempt);
        Attempt { ms: 1, result }
    };
    let mut simulation = Simulation {
        attempt: &attempt,
        pick: &mut |_| 0,
        slots: 4,
        cancel_ms: None,
        stop_ms: &|_| 0,
    };
    interpret(&plan, FlowState::new(&plan), &mut simulation).map_err(|error| failed(&error))
}

/// Draws a size: most flows are small, a few have hundreds of jobs.
fn size(random: &mut StdRng) -> usize {
    match random.random_range(0..100) {
        0..60 => random.random_range(1..=8),
        60..88 => random.random_range(9..=30),
        88..98 => random.random_range(31..=100),
        _ => random.random_range(101..=MOST),
    }
}

/// Draws the jobs of a flow, by name.
fn jobs(random: &mut StdRng) -> (Map<String, Value>, std::collections::HashMap<String, Kind>) {
    let (mut jobs, mut kinds) = (Map::new(), std::collections::HashMap::new());
    let undoes = random.random_bool(0.2);
    // Jobs that run once and whose result is a number.
    let mut single: Vec<bool> = Vec::new();
    for number in 0..size(random) {
        let kind = Kind::draw(random);
        let (name, job) = job(random, number, kind, &mut single);
        if undoes && random.random_bool(0.3) {
            let (script, script_type) = Kind::Digest.script();
            let undo = json!({"script": script, "type": script_type, "compensates": name, "with": {"n": number}});
            jobs.insert(format!("undo{number}"), undo);
            kinds.insert(format!("undo{number}"), Kind::Digest);
        }
        jobs.insert(name.clone(), job);
        kinds.insert(name, kind);
    }
    (jobs, kinds)
}

fn job(random: &mut StdRng, number: usize, kind: Kind, single: &mut Vec<bool>) -> (String, Value) {
    let (script, script_type) = kind.script();
    let mut job = json!({"script": script, "type": script_type, "with": {"n": number}});
    let mut needs: Vec<usize> = Vec::new();
    for _ in 0..random.random_range(0..=3.min(number)) {
        // Near ones make the graph deep, others wide.
        let from = if random.random_bool(0.5) {
            number.saturating_sub(4)
        } else {
            0
        };
        needs.push(random.random_range(from..number));
    }
    needs.sort_unstable();
    needs.dedup();
    for need in &needs {
        let of = ["result", "status"][usize::from(random.random_bool(0.2))];
        job["with"][format!("j{need}")] = json!(format!("{{{{j{need}.{of}}}}}"));
    }
    let first = needs.first().copied();
    match (random.random_range(0..100), first) {
        (0..7, _) => job["if"] = json!("always()"),
        (7..13, _) => job["if"] = json!("failed()"),
        (13..20, Some(need)) => job["if"] = json!(format!("j{need}.succeeded > 0")),
        (20..24, Some(need)) => job["if"] = json!(format!("j{need}.status != \"finished\"")),
        _ => {}
    }
    let foreach = match (random.random_range(0..100), first) {
        (0..8, _) => Some(random.random_range(0..6).to_string()),
        (8..14, Some(need)) if single[need] => Some(format!("j{need}.result % 4")),
        (14..17, Some(need)) => Some(format!("[j{need}.status, \"b\", {number}]")),
        _ => None,
    };
    single.push(foreach.is_none());
    if let Some(foreach) = foreach {
        job["foreach"] = json!(foreach);
        job["with"]["item"] = json!("{{index}} {{item}}");
        if random.random_bool(0.4) {
            job["concurrency"] = json!(random.random_range(1..3));
        }
    }
    if random.random_bool(0.15) {
        job["continue"] = json!(true);
    }
    let retries = match kind {
        Kind::Flaky => RETRIES,
        _ => random.random_range(0..2),
    };
    if retries > 0 {
        job["retries"] = json!(retries);
        job["backoff"] = json!("10ms");
    }
    job["needs"] = json!(
        needs
            .iter()
            .map(|need| format!("j{need}"))
            .collect::<Vec<_>>()
    );
    (format!("j{number}"), job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_flows_are_valid_and_of_all_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("flow.yaml");
        let draw = |number| Dag::draw(number, 7, dir.path(), &file).unwrap();
        let all: Vec<Dag> = (0..100).map(draw).collect();
        let count = |is: &dyn Fn(&Dag) -> bool| all.iter().filter(|dag| is(dag)).count();
        assert!(count(&Dag::stops) > 5);
        assert!(count(&|dag| dag.expected.end().error.is_none()) > 20);
        assert!(count(&|dag| !dag.expected.end().compensated.is_empty()) > 3);
        assert!(count(&|dag| dag.plan.jobs.len() > 100) > 0);
        assert!(count(&|dag| dag.plan.jobs.iter().any(|job| job.foreach.is_some())) > 30);
        assert_eq!(draw(3).plan, all[3].plan);
    }
}
