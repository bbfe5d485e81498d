//! The comparison of all messages with what was sent, and the report as text and as JSON.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;

use meshwork::context::MessageView;
use meshwork_model::context::{MessageStatus, MessageType};
use serde_json::json;

use super::{Killed, Plan, Views};
use crate::chaos::findings;
use crate::chaos::fleet::ledger::Start;

/// Number of the actor who sends the messages.
const ME: u32 = 1;

/// The report of a play.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seed of the choices.
    pub seed: u64,
    /// Messages that were sent.
    pub messages: usize,
    /// Killed coordinators of the sender, coordinators of the receiver, and workers.
    pub kills: [u32; 3],
    /// Damaged messages beside them.
    pub damaged: usize,
    /// Results at the sender.
    pub results: usize,
    /// Jobs at the receiver.
    pub jobs: usize,
    /// Starts of all jobs.
    pub starts: usize,
    /// Messages without exactly one job, or without exactly one correct result.
    pub wrong: Vec<String>,
    /// Jobs that started again though the worker of an earlier start was not killed.
    pub doubled: Vec<String>,
    /// Keys that still have elements.
    pub open: Vec<String>,
    /// Duration in seconds.
    pub seconds: u64,
    /// Folder of the logs, if something does not hold.
    pub files: Option<PathBuf>,
}

impl Report {
    pub(super) fn new(plan: &Plan, killed: &Killed) -> Self {
        Self {
            seed: plan.seed,
            messages: plan.messages,
            kills: killed.counts,
            damaged: 0,
            results: 0,
            jobs: 0,
            starts: 0,
            wrong: Vec::new(),
            doubled: Vec::new(),
            open: Vec::new(),
            seconds: 0,
            files: None,
        }
    }

    pub(super) fn judge(
        &mut self,
        [from, to]: &[Views; 2],
        open: Vec<String>,
        starts: &[Start],
        killed: &Killed,
    ) {
        self.open = open;
        // Damaged messages have another caller.
        let is_sent = |view: &&MessageView| view.re.is_none() && view.message.caller_id.0 == ME;
        let sent: Vec<_> = from.iter().filter(is_sent).collect();
        let mut results: HashMap<&str, Vec<&MessageView>> = HashMap::new();
        for view in from {
            if let Some(re) = &view.re {
                self.results += 1;
                results.entry(re).or_default().push(view);
            }
        }
        let mut jobs: HashMap<String, Vec<&String>> = HashMap::new();
        let came = to.iter().filter(is_sent);
        for view in came.filter(|view| view.message.message_type == MessageType::Job) {
            let text = view.message.message.clone();
            jobs.entry(text).or_default().extend(&view.materialised);
        }
        self.jobs = jobs.values().flatten().collect::<BTreeSet<_>>().len();
        let numbers: BTreeSet<_> = sent.iter().map(|view| &view.message.message).collect();
        if numbers.len() != self.messages || sent.len() != self.messages {
            let what = format!("{} messages at the sender", sent.len());
            self.wrong.push(what);
        }
        for view in sent {
            let key = view.message.key().numbers();
            let results = results.get(&*key).map_or(&[][..], Vec::as_slice);
            let jobs = jobs.get(&view.message.message).map_or(0, Vec::len);
            if let Some(what) = outcome(view, results, jobs) {
                self.wrong.push(format!("message {key}: {what}"));
            }
        }
        self.count(starts, killed);
    }

    /// Counts starts. Each start of a job but the last one was by a worker that was killed.
    fn count(&mut self, starts: &[Start], killed: &Killed) {
        let mut of_job: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for start in starts {
            of_job.entry(&start.job).or_default().push(start.worker);
        }
        self.starts = starts.len();
        if of_job.len() != self.messages {
            let what = format!("{} jobs have started", of_job.len());
            self.wrong.push(what);
        }
        for (job, workers) in of_job {
            let (_, earlier) = workers.split_last().unwrap_or((&0, &[]));
            if earlier
                .iter()
                .any(|worker| !killed.workers.contains(worker))
            {
                let what = format!("{job}: {} starts by {workers:?}", workers.len());
                self.doubled.push(what);
            }
        }
    }

    fn findings(&self) -> [(&'static str, &[String]); 3] {
        [
            ("wrong", &self.wrong),
            ("doubled", &self.doubled),
            ("open", &self.open),
        ]
    }

    /// Returns true if everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        let counted = [self.results, self.jobs];
        counted == [self.messages; 2] && self.findings().iter().all(|(_, lines)| lines.is_empty())
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        let [senders, receivers, workers] = self.kills;
        let mut value = json!({
            "scenario": "messages",
            "seed": self.seed,
            "messages": self.messages,
            "killed": {"senders": senders, "receivers": receivers, "workers": workers},
            "damaged": self.damaged,
            "results": self.results,
            "jobs": self.jobs,
            "starts": self.starts,
            "seconds": self.seconds,
            "files": self.files,
            "holds": self.holds(),
        });
        for (name, lines) in self.findings() {
            value[name] = lines.into();
        }
        value.to_string()
    }
}

/// Returns the difference between a message's outcome and the promised one.
fn outcome(view: &MessageView, results: &[&MessageView], jobs: usize) -> Option<String> {
    if view.message.status != MessageStatus::Processed {
        return Some(format!("its status is {}", view.message.status));
    }
    if jobs != 1 {
        return Some(format!("it became {jobs} jobs"));
    }
    let [result] = results else {
        return Some(format!("it has {} results", results.len()));
    };
    let number: Option<usize> = view.message.message.parse().ok();
    let expected = number.map(|number| (number * 2).to_string());
    let job = result.message.job.first();
    let output = job.and_then(|job| job.result.get("result"));
    let same = output == expected.as_ref();
    (!same).then(|| format!("its result is {output:?} instead of {expected:?}"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            messages,
            damaged,
            kills: [senders, receivers, workers],
            results,
            jobs,
            starts,
            seconds,
            ..
        } = self;
        write!(
            f,
            "messages: {messages} sent beside {damaged} damaged ones, {jobs} jobs, {starts} starts, {results} results in {seconds} s; \
             killed {senders} coordinators of the sender, {receivers} of the receiver, {workers} workers"
        )?;
        for (name, lines) in self.findings() {
            write!(f, "; {name} {}", lines.len())?;
        }
        findings::write(f, &self.findings())?;
        if let Some(files) = &self.files {
            write!(f, "\n  files: {}", files.display())?;
        }
        Ok(())
    }
}
