//! Reads the starts of jobs from the workers' logs and from the file of the scripts.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use meshwork_model::time::parse_iso;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::chaos::ChaosError;
use crate::chaos::fleet::ledger::Start;
use crate::chaos::fleet::troubles::now;

/// `RUST_LOG` of workers: the beginning of each run, and little else.
pub(in crate::chaos) const LOG: &str = "warn,meshwork::span=info";
/// Target of the line about the beginning of a run.
const TARGET: &str = "meshwork::span";
/// Target of the line about jobs whose leases have ended.
const RECLAIM: &str = "meshwork::protocol::hero::jobs";

/// A process that a script recorded: itself, or one that it had started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chaos) struct Noted {
    pub(in crate::chaos) job: String,
    pub(in crate::chaos) process: u32,
    /// Time on the monotonic clock.
    pub(in crate::chaos) at: Duration,
}

/// A job whose lease had expired without a report, as the worker that requeued it logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chaos) struct Expired {
    pub(in crate::chaos) job: String,
    /// Time on the monotonic clock.
    pub(in crate::chaos) at: Duration,
}

/// All records of logs and scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::chaos) struct Written {
    pub(in crate::chaos) starts: Vec<Start>,
    pub(in crate::chaos) noted: Vec<Noted>,
    pub(in crate::chaos) expired: Vec<Expired>,
}

impl Written {
    /// Reads the logs of all workers in `dir`, and the tally.
    pub(in crate::chaos) fn read(dir: &Path, tally: &Path) -> Result<Self, ChaosError> {
        let mut written = Self::default();
        let (clock, wall) = (now(), wall());
        for file in fs::read_dir(dir)
            .map_err(ChaosError::io("the workers' logs"))?
            .flatten()
        {
            let name = file.file_name().to_string_lossy().into_owned();
            if !name.starts_with("worker-") || !name.ends_with(".err") {
                continue;
            }
            let log = fs::read(file.path()).map_err(ChaosError::io(name))?;
            let log = String::from_utf8_lossy(&log);
            let at = |at: Duration| (clock + at).checked_sub(wall).unwrap_or_default();
            for line in log.lines() {
                if let Some((job, worker, time)) = run(line) {
                    let at = at(time);
                    written.starts.push(Start { job, worker, at });
                }
                if let Some((jobs, time)) = expired(line) {
                    let at = at(time);
                    let all = jobs.into_iter().map(|job| Expired { job, at });
                    written.expired.extend(all);
                }
            }
        }
        written.starts.sort_by_key(|start| start.at);
        let tally = match fs::read_to_string(tally) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            tally => tally.map_err(ChaosError::io("the tally"))?,
        };
        for line in tally.lines() {
            let noted = noted(line).ok_or_else(|| ChaosError::Line(line.to_owned()))?;
            written.noted.push(noted);
        }
        Ok(written)
    }

    /// Returns the processes of runs of this worker.
    pub(in crate::chaos) fn of_worker(&self, worker: u32) -> Vec<Noted> {
        let mut of_job: HashMap<&str, Vec<&Start>> = HashMap::new();
        for start in &self.starts {
            of_job.entry(&start.job).or_default().push(start);
        }
        let is_its = |noted: &&Noted| {
            let starts = of_job.get(&*noted.job);
            let last = starts.and_then(|starts| starts.iter().rfind(|start| start.at <= noted.at));
            last.is_some_and(|start| start.worker == worker)
        };
        self.noted.iter().filter(is_its).cloned().collect()
    }

    /// Returns starts that a script recorded and no worker logged.
    pub(in crate::chaos) fn secret(&self) -> Vec<String> {
        let known = |noted: &&Noted| {
            let before = |start: &Start| start.job == noted.job && start.at <= noted.at;
            !self.starts.iter().any(before)
        };
        let secret = self.noted.iter().filter(known);
        secret
            .map(|noted| {
                format!(
                    "{}: process {} runs it for no worker",
                    noted.job, noted.process
                )
            })
            .collect()
    }
}

/// Returns the wall-clock time since 1970.
fn wall() -> Duration {
    let now = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Returns the job, the worker's process and the wall-clock time of a line about the beginning of a run.
fn run(line: &str) -> Option<(String, u32, Duration)> {
    let line: Value = serde_json::from_str(line).ok()?;
    if line["target"] != TARGET || line["message"] != "job dequeued" {
        return None;
    }
    let span = &line["span"];
    // The worker's name has its name, process and a random number, with dots between them.
    let worker = span["worker"].as_str()?.rsplit('.').nth(1)?.parse().ok()?;
    let at = Duration::from_millis(parse_iso(line["timestamp"].as_str()?)?);
    Some((span["job"].as_str()?.to_owned(), worker, at))
}

/// Returns the jobs and the wall-clock time of a line about expired leases.
fn expired(line: &str) -> Option<(Vec<String>, Duration)> {
    let line: Value = serde_json::from_str(line).ok()?;
    if line["target"] != RECLAIM {
        return None;
    }
    let jobs = serde_json::from_str(line["requeued"].as_str()?).ok()?;
    let at = Duration::from_millis(parse_iso(line["timestamp"].as_str()?)?);
    Some((jobs, at))
}

/// Parses a line `job process nanoseconds`.
fn noted(line: &str) -> Option<Noted> {
    let mut words = line.split(' ');
    Some(Noted {
        job: words.next()?.to_owned(),
        process: words.next()?.parse().ok()?,
        at: Duration::from_nanos(words.next()?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"timestamp":"1970-01-01T00:00:07.250892Z","level":"INFO","message":"job dequeued","target":"meshwork::span","span":{"attempt":1,"job":"a2","type":"osis","worker":"worker.4711.30e7","name":"job"}}"#;

    fn start(job: &str, worker: u32, second: u64) -> Start {
        let at = Duration::from_secs(second);
        let job = job.to_owned();
        Start { job, worker, at }
    }

    #[test]
    fn only_the_beginning_of_a_run_is_a_start() {
        let started = run(LINE).unwrap();
        assert_eq!(
            started,
            ("a2".to_owned(), 4711, Duration::from_millis(7250))
        );
        assert_eq!(run(&LINE.replace("dequeued", "enqueued")), None);
        assert_eq!(
            run(&LINE.replace("meshwork::span", "meshwork::failure")),
            None
        );
        assert_eq!(run("no json"), None);
        assert!(noted("a 7").is_none());
    }

    #[test]
    fn jobs_whose_leases_had_ended_are_read() {
        let line = r#"{"timestamp":"1970-01-01T00:00:07.250892Z","level":"WARN","message":"took back","requeued":"[\"a\", \"b\"]","ended":"[]","moved":2,"target":"meshwork::protocol::hero::jobs"}"#;
        let jobs = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(expired(line), Some((jobs, Duration::from_millis(7250))));
        assert_eq!(expired(&line.replace("hero", "bananas")), None);
        assert_eq!(expired(LINE), None);
    }

    #[test]
    fn a_process_belongs_to_the_worker_that_started_its_job_last() {
        let noted = |process, second| Noted {
            job: "a".to_owned(),
            process,
            at: Duration::from_secs(second),
        };
        let written = Written {
            starts: vec![start("a", 11, 10), start("b", 12, 11), start("a", 12, 20)],
            noted: vec![noted(101, 10), noted(102, 15), noted(103, 21)],
            ..Written::default()
        };
        assert_eq!(written.of_worker(11), [noted(101, 10), noted(102, 15)]);
        assert_eq!(written.of_worker(12), [noted(103, 21)]);
        assert_eq!(written.secret(), Vec::<String>::new());
        let early = Written {
            noted: vec![noted(101, 9)],
            ..written
        };
        assert_eq!(early.secret().len(), 1);
    }
}
