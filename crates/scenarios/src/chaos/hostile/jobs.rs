//! The jobs: their work, their prerequisites, and their correct ends.

use std::collections::HashMap;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use serde_json::{Value, json};

/// Prologue of scripts in Python: writes down the start and its process.
const NOTE: &str = r#"
import os, time
tally = os.open(os.environ["TALLY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def note(process):
    os.write(tally, f"{JOB_ID} {process} {time.monotonic_ns()}\n".encode())
note(os.getpid())
"#;
/// Error of a job that fails.
pub(super) const ON_PURPOSE: &str = "on purpose";
/// Words in the error of a job whose prerequisite failed.
pub(super) const NOT_FINISHED: &str = "did not finish";
/// Depth of folders that exceeds the usual limit of open files.
const DEPTH: u32 = 1200;
/// Number of keys, and of unique names.
const NAMES: u32 = 6;
/// Most prerequisites of a job.
const BEFORE: usize = 2;

/// The work of a job. Those in Python write down each start themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Returns a result at once.
    Rhai,
    /// Fails in each run.
    RhaiFails,
    /// Returns a result after a moment.
    Python,
    /// Fails in each run.
    PythonFails,
    /// Fails in its first run, and only there.
    Flaky,
    /// Stays in a C call that lets no other thread of the interpreter run.
    Stuck,
    /// Becomes another program.
    Replaced,
    /// Leaves a process behind that would run for ever.
    Parent,
    /// Leaves deeply nested folders behind.
    Deep,
}

/// The kinds, repeated for all jobs: the first few jobs have some of each.
const ORDER: [Kind; 20] = [
    Kind::Rhai,
    Kind::Stuck,
    Kind::Python,
    Kind::RhaiFails,
    Kind::Replaced,
    Kind::Flaky,
    Kind::Rhai,
    Kind::PythonFails,
    Kind::Parent,
    Kind::Python,
    Kind::Rhai,
    Kind::Deep,
    Kind::Rhai,
    Kind::Python,
    Kind::Rhai,
    Kind::Python,
    Kind::Rhai,
    Kind::Python,
    Kind::Rhai,
    Kind::Python,
];

impl Kind {
    /// Returns the kind of the job with this id, if the scenario submitted it.
    pub(super) fn of(id: &str) -> Option<Self> {
        let number: usize = id.strip_prefix("job-")?.parse().ok()?;
        Some(ORDER[number % ORDER.len()])
    }

    pub(super) fn script_type(self) -> &'static str {
        match self {
            Self::Rhai | Self::RhaiFails => "osis",
            _ => "python",
        }
    }

    /// Returns true if each of its runs fails.
    fn fails(self) -> bool {
        matches!(self, Self::RhaiFails | Self::PythonFails)
    }

    /// Returns true if a run lasts for seconds, so that a kill can meet it.
    pub(super) fn is_long(self) -> bool {
        matches!(self, Self::Stuck | Self::Replaced)
    }

    /// Returns the number of retries of a failed job.
    pub(super) fn retries(self) -> u32 {
        match self {
            Self::RhaiFails | Self::PythonFails => 2,
            Self::Flaky => 1,
            _ => 0,
        }
    }

    fn script(self) -> String {
        let body = match self {
            Self::Rhai => return "JOB_ID + \" done\"".to_owned(),
            Self::RhaiFails => return format!("throw \"{ON_PURPOSE}\""),
            Self::Python => "time.sleep(0.02)\nresult = JOB_ID + ' done'".to_owned(),
            Self::PythonFails => format!("raise ValueError('{ON_PURPOSE}')"),
            Self::Flaky => format!(
                "try:\n\
                 \x20   os.close(os.open(os.environ['TALLY'] + '.' + JOB_ID, os.O_CREAT | os.O_EXCL))\n\
                 except FileExistsError:\n\
                 \x20   result = JOB_ID + ' done'\n\
                 else:\n\
                 \x20   raise ValueError('{ON_PURPOSE}')"
            ),
            Self::Stuck => {
                "import ctypes\nctypes.PyDLL(None).sleep(4)\nresult = JOB_ID + ' done'".to_owned()
            }
            Self::Replaced => {
                "os.execv('/bin/sh', ['sh', '-c', 'sleep 4; printf \"%s done\" \"$JOB_ID\"'])"
                    .to_owned()
            }
            Self::Parent => "import subprocess\n\
                 note(subprocess.Popen(['sleep', '600']).pid)\n\
                 result = JOB_ID + ' done'"
                .to_owned(),
            Self::Deep => format!(
                "for _ in range({DEPTH}):\n\
                 \x20   os.mkdir('a')\n\
                 \x20   os.chdir('a')\n\
                 result = JOB_ID + ' done'"
            ),
        };
        format!("{NOTE}{body}")
    }
}

/// Beginning of the ids of jobs that kill their workers.
pub(super) const KILLER: &str = "killer-";

/// Script that kills the worker that runs it: the parent of its launcher.
pub(super) const KILLS: &str = r#"
import os, time
with open(f"/proc/{os.getppid()}/stat") as file:
    worker = int(file.read().rsplit(")", 1)[1].split()[1])
os.kill(worker, 9)
time.sleep(60)
"#;

/// The right end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The job has this result.
    Finished(String),
    /// The job has an error that contains these words.
    Failed(&'static str),
}

/// A requested job.
#[derive(Clone, Debug)]
pub(super) struct ExpectedJob {
    pub(super) id: String,
    pub(super) kind: Kind,
    /// The jobs that it depends on.
    pub(super) after: Vec<String>,
    /// True if the job must not run, because a prerequisite fails.
    pub(super) barred: bool,
    /// A line of `job submit --jsonl`.
    pub(super) line: Value,
}

impl ExpectedJob {
    /// Returns a job of this kind without other properties.
    #[cfg(test)]
    pub(super) fn plain(id: &str, kind: Kind) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            after: Vec::new(),
            barred: false,
            line: Value::Null,
        }
    }

    pub(super) fn end(&self) -> End {
        if self.barred {
            End::Failed(NOT_FINISHED)
        } else if self.kind.fails() {
            End::Failed(ON_PURPOSE)
        } else {
            End::Finished(format!("{} done", self.id))
        }
    }

    /// The least and the most runs that end by themselves.
    pub(super) fn runs(&self) -> (u32, u32) {
        let most = 1 + self.kind.retries();
        match self.end() {
            _ if self.barred => (0, 0),
            End::Failed(_) => (most, most),
            End::Finished(_) => (1, most),
        }
    }
}

/// Random choices of jobs.
pub(super) struct Draw<'a> {
    pub(super) random: StdRng,
    pub(super) tally: &'a Path,
    /// Accepted jobs that others may depend on; true for those that fail.
    pub(super) known: HashMap<String, bool>,
    /// Their ids, the latest last.
    pub(super) latest: Vec<String>,
}

impl Draw<'_> {
    /// Returns the job with this number. It may depend on known jobs, and on those in `beside`, which the same call
    /// submits before it.
    pub(super) fn job(&mut self, number: usize, beside: &[ExpectedJob]) -> ExpectedJob {
        let kind = ORDER[number % ORDER.len()];
        let id = format!("job-{number:05}");
        let (after, continues) = self.prerequisites(beside);
        let fails = |id: &String| {
            let near = beside.iter().find(|other| other.id == *id);
            near.map_or_else(
                || self.known.get(id).copied().unwrap_or(false),
                |other| matches!(other.end(), End::Failed(_)),
            )
        };
        let barred = !continues && after.iter().any(fails);
        let line = self.line(kind, &id, &after, continues);
        ExpectedJob {
            id,
            kind,
            after,
            barred,
            line,
        }
    }

    /// Returns prerequisites, and whether the job is barred because one of them fails.
    fn prerequisites(&mut self, beside: &[ExpectedJob]) -> (Vec<String>, bool) {
        let random = &mut self.random;
        if !random.random_ratio(1, 4) {
            return (Vec::new(), false);
        }
        // A job with a unique name may be refused for another job, and then does not exist.
        let near = beside
            .iter()
            .filter(|other| other.line.get("unique").is_none());
        let near = near.map(|other| &other.id);
        let all: Vec<&String> = self.latest.iter().rev().take(BEFORE).chain(near).collect();
        let mut after: Vec<String> = Vec::new();
        for _ in 0..BEFORE.min(all.len()) {
            let one = all[random.random_range(0..all.len())];
            if !after.contains(one) {
                after.push(one.clone());
            }
        }
        (after, random.random_ratio(1, 3))
    }

    fn line(&mut self, kind: Kind, id: &str, after: &[String], continues: bool) -> Value {
        let random = &mut self.random;
        let mut line = json!({
            "id": id,
            "type": kind.script_type(),
            "script": kind.script(),
            "retries": kind.retries(),
            "backoff": 0.2,
            "env": {"TALLY": self.tally.display().to_string()},
        });
        if !after.is_empty() {
            line["depends_on"] = json!(after);
            line["on_failure"] = json!(if continues { "continue" } else { "fail" });
        }
        if random.random_ratio(1, 6) {
            line["in"] = json!(format!("{}ms", random.random_range(100..1500)));
        }
        if random.random_ratio(1, 3) {
            line["priority"] = json!(["high", "low"][random.random_range(0..2)]);
        }
        if random.random_ratio(1, 4) {
            line["key"] = json!(format!("key-{}", name(random)));
        }
        if random.random_ratio(1, 12) {
            line["unique"] = json!(format!("name-{}", name(random)));
        }
        line
    }
}

fn name(random: &mut impl Rng) -> u32 {
    random.random_range(0..NAMES)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn drawn(seed: u64) -> Vec<ExpectedJob> {
        let mut draw = Draw {
            random: StdRng::seed_from_u64(seed),
            tally: Path::new("/tally"),
            known: HashMap::new(),
            latest: Vec::new(),
        };
        let mut jobs = Vec::new();
        for number in 0..300 {
            let job = draw.job(number, &jobs);
            jobs.push(job);
        }
        jobs
    }

    #[test]
    fn a_seed_repeats_its_jobs_and_there_are_some_of_each() {
        let lines = |seed| -> Vec<_> { drawn(seed).into_iter().map(|job| job.line).collect() };
        assert_eq!(lines(7), lines(7));
        assert_ne!(lines(7), lines(8));
        let jobs = drawn(7);
        for option in ["depends_on", "in", "priority", "key", "unique"] {
            assert!(
                jobs.iter().any(|job| job.line.get(option).is_some()),
                "{option}"
            );
        }
        assert!(jobs.iter().all(|job| Kind::of(&job.id) == Some(job.kind)));
        assert!(
            jobs.iter().any(|job| job.barred),
            "none waits for one that fails"
        );
    }

    #[test]
    fn a_job_behind_one_that_fails_does_not_run() {
        let jobs = drawn(7);
        let of = |id: &str| jobs.iter().find(|job| job.id == id).unwrap();
        for job in jobs.iter().filter(|job| job.barred) {
            let fails = |id: &String| matches!(of(id).end(), End::Failed(_));
            assert!(job.after.iter().any(fails), "{job:?}");
            assert_eq!(job.runs(), (0, 0));
        }
        assert_eq!(ExpectedJob::plain("a", Kind::Flaky).runs(), (1, 2));
        assert_eq!(ExpectedJob::plain("a", Kind::PythonFails).runs(), (3, 3));
    }
}
