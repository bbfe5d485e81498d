//! Submitters: several tasks, each of which starts one process of the command after the other. Their output goes
//! directly to files. Only that output decides which jobs are accepted.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::failed;
use super::jobs::{Draw, End, ExpectedJob};
use crate::chaos::ChaosError;
use crate::chaos::callers::{Callers, Files};
use crate::chaos::fleet::troop::Quarters;

/// Processes that submit at the same time.
const SUBMITTERS: u64 = 3;
/// Greatest number of jobs in one call.
const TOGETHER: usize = 12;
/// Tries of a call. If all fail, its jobs may exist or not.
const TRIES: usize = 6;
/// Pause between two tries.
const AGAIN: Duration = Duration::from_millis(300);
/// Longest time of a call: the command itself repeats one for 15 s.
const CALL: Duration = Duration::from_secs(60);
/// Number of latest jobs on which new ones may depend.
const LATEST: usize = 8;

/// The answer of the command to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The job is stored.
    Accepted,
    /// The job is not stored, because another one has its unique name.
    Kept,
    /// The job is refused, with this word.
    Refused(String),
}

/// Requested jobs, and the answers to them.
#[derive(Debug, Default)]
pub(super) struct Submitted {
    pub(super) jobs: Vec<ExpectedJob>,
    pub(super) answers: HashMap<String, Answer>,
    /// Jobs of successful calls that printed no answer for them.
    pub(super) unanswered: Vec<String>,
}

/// State that all submitters share.
struct Shared {
    callers: Callers,
    tally: PathBuf,
    jobs: usize,
    next: AtomicUsize,
}

/// Running submitters.
pub(super) struct Submitting {
    shared: Arc<Shared>,
    allowed: watch::Sender<usize>,
    tasks: JoinSet<Result<Submitted, ChaosError>>,
}

impl Submitting {
    pub(super) fn start(quarters: &Quarters<'_>, tally: &Path, jobs: usize, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            callers: Callers::new(quarters),
            tally: tally.to_owned(),
            jobs,
            next: AtomicUsize::new(0),
        });
        let (allowed, allowance) = watch::channel(0);
        let mut tasks = JoinSet::new();
        for number in 0..SUBMITTERS {
            let (shared, allowance) = (Arc::clone(&shared), allowance.clone());
            let random = StdRng::seed_from_u64(seed.wrapping_add(number));
            tasks.spawn(async move { submit(&shared, number, allowance, random).await });
        }
        Self {
            shared,
            allowed,
            tasks,
        }
    }

    /// Allows this many jobs to be submitted, in total.
    pub(super) fn allow(&self, jobs: usize) {
        self.allowed.send_replace(jobs);
    }

    /// Kills a submitting process with `kill -9`, if there is one.
    pub(super) fn kill(&self, random: &mut StdRng) -> Option<u32> {
        self.shared.callers.kill(random)
    }

    /// Waits until all jobs are submitted.
    pub(super) async fn end(mut self) -> Result<Submitted, ChaosError> {
        self.allow(self.shared.jobs);
        let mut all = Submitted::default();
        while let Some(ended) = self.tasks.join_next().await {
            let one = ended.map_err(|error| failed(&error))??;
            all.jobs.extend(one.jobs);
            all.answers.extend(one.answers);
            all.unanswered.extend(one.unanswered);
        }
        all.jobs.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(all)
    }
}

async fn submit(
    shared: &Shared,
    number: u64,
    mut allowance: watch::Receiver<usize>,
    random: StdRng,
) -> Result<Submitted, ChaosError> {
    let mut all = Submitted::default();
    let mut draw = Draw {
        random,
        tally: &shared.tally,
        known: HashMap::new(),
        latest: Vec::new(),
    };
    for call in 0.. {
        let size = draw.random.random_range(1..=TOGETHER);
        let first = shared.next.fetch_add(size, Ordering::SeqCst);
        let last = (first + size).min(shared.jobs);
        if first >= last {
            break;
        }
        let allowed = allowance.wait_for(|allowed| *allowed >= last).await;
        // No submitter is left to use the permits.
        allowed.map_err(|error| failed(&error))?;
        let mut jobs = Vec::new();
        for number in first..last {
            let job = draw.job(number, &jobs);
            jobs.push(job);
        }
        let file = shared.callers.dir.join(format!("jobs-{number}-{call}"));
        let answers = send(shared, &file, &jobs, &mut all.unanswered).await?;
        for job in &jobs {
            if answers.get(&job.id) == Some(&Answer::Accepted) {
                let fails = matches!(job.end(), End::Failed(_));
                draw.known.insert(job.id.clone(), fails);
                draw.latest.push(job.id.clone());
            }
        }
        let old = draw.latest.len().saturating_sub(LATEST);
        draw.latest.drain(..old);
        all.answers.extend(answers);
        all.jobs.extend(jobs);
    }
    Ok(all)
}

/// Submits jobs, with repeated tries if need be. Returns the answer for each.
async fn send(
    shared: &Shared,
    file: &Path,
    jobs: &[ExpectedJob],
    unanswered: &mut Vec<String>,
) -> Result<HashMap<String, Answer>, ChaosError> {
    let lines: String = jobs.iter().map(|job| format!("{}\n", job.line)).collect();
    fs::write(file, lines).map_err(ChaosError::io("jobs"))?;
    let mut answers = HashMap::new();
    let mut tries = tokio::time::interval(AGAIN);
    tries.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for attempt in 0..TRIES {
        tries.tick().await;
        let said = file.with_extension(format!("said-{attempt}"));
        // The first try of a single job uses the options that people use.
        let alone = (attempt == 0).then_some(jobs).and_then(single);
        let arguments = alone.unwrap_or_else(|| {
            let file = file.display().to_string();
            ["job", "submit", "--json", "--jsonl", &file]
                .map(str::to_owned)
                .to_vec()
        });
        let input = jobs[0].line["script"].as_str().unwrap_or_default();
        let stderr = shared.callers.dir.join("submit.err");
        let files = Files {
            stdout: &said,
            stderr: &stderr,
        };
        let ended = shared.callers.call(&arguments, input, files, CALL).await?;
        let text = fs::read_to_string(&said).map_err(ChaosError::io("what was said"))?;
        answers.extend(heard(&text, jobs)?);
        if ended.success() {
            let silent = jobs.iter().filter(|job| !answers.contains_key(&job.id));
            unanswered.extend(silent.map(|job| job.id.clone()));
            break;
        }
    }
    Ok(answers)
}

/// Returns the arguments of `job submit` for one job, whose script comes from stdin.
fn single(jobs: &[ExpectedJob]) -> Option<Vec<String>> {
    let [job] = jobs else {
        return None;
    };
    let mut words = ["job", "submit", "-", "--json"].map(str::to_owned).to_vec();
    for (name, value) in job.line.as_object()? {
        let option = format!("--{}", name.replace('_', "-"));
        match value {
            Value::Array(values) => {
                for value in values {
                    words.extend([option.clone(), value.as_str()?.to_owned()]);
                }
            }
            Value::Object(pairs) => {
                for (name, value) in pairs {
                    words.extend([option.clone(), format!("{name}={}", value.as_str()?)]);
                }
            }
            _ if name == "script" => {}
            Value::String(text) => words.extend([option, text.clone()]),
            other => words.extend([option, other.to_string()]),
        }
    }
    Some(words)
}

/// Parses the output of a process, whose last line may be cut off by a kill.
fn heard(text: &str, jobs: &[ExpectedJob]) -> Result<Vec<(String, Answer)>, ChaosError> {
    let mut heard = Vec::new();
    for line in text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        let value: Value =
            serde_json::from_str(line).map_err(|_| ChaosError::Line(line.to_owned()))?;
        let id = value["id"].as_str().unwrap_or_default().to_owned();
        let answer = match (value["result"].as_str(), value["kept"].as_bool()) {
            (Some("stored" | "exists"), _) | (None, None | Some(false)) => (id, Answer::Accepted),
            (Some("kept"), _) => (id, Answer::Kept),
            // The answer has the id of the existing job, not of the new one.
            (None, Some(true)) => (jobs[0].id.clone(), Answer::Kept),
            (Some(other), _) => (id, Answer::Refused(other.to_owned())),
        };
        heard.push(answer);
    }
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use super::super::jobs::Kind;
    use super::*;

    #[test]
    fn what_a_killed_process_said_last_is_left_out() {
        let jobs = [ExpectedJob::plain("a", Kind::Rhai)];
        let said = "{\"line\":1,\"id\":\"a\",\"result\":\"stored\"}\n{\"line\":2,\"id\":\"b\",\"re";
        assert_eq!(
            heard(said, &jobs).unwrap(),
            [("a".to_owned(), Answer::Accepted)]
        );
        let said = "{\"id\":\"c\",\"kept\":true}\n{\"line\":2,\"id\":\"d\",\"result\":\"full\"}\n";
        let refused = Answer::Refused("full".to_owned());
        let expected = [("a".to_owned(), Answer::Kept), ("d".to_owned(), refused)];
        assert_eq!(heard(said, &jobs).unwrap(), expected);
        assert!(heard("no json\n", &jobs).is_err());
    }

    #[test]
    fn a_lone_job_is_asked_for_with_options() {
        let mut job = ExpectedJob::plain("a", Kind::Rhai);
        job.line = serde_json::json!({
            "id": "a", "script": "1", "retries": 2, "env": {"A": "b"}, "depends_on": ["c", "d"], "in": "5ms",
        });
        let words = single(&[job]).unwrap().join(" ");
        assert_eq!(
            words,
            "job submit - --json --depends-on c --depends-on d --env A=b --id a --in 5ms --retries 2"
        );
    }
}
