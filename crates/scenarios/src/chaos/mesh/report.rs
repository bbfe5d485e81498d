//! The comparison of all messages with what was sent, and the report as text and as JSON.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;

use meshwork::context::MessageView;
use meshwork_model::context::MessageStatus;
use serde_json::json;

use super::{FROM, Plan, Sent, World};
use crate::chaos::ChaosError;
use crate::chaos::findings;
use crate::chaos::hostile::starts::Written;

/// The report of a play.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seed of the choices.
    pub seed: u64,
    /// Messages that were sent.
    pub messages: usize,
    /// Number of troubles, by kind.
    pub troubles: BTreeMap<&'static str, u32>,
    /// Messages by their outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Jobs at the receivers.
    pub jobs: usize,
    /// Starts of all jobs.
    pub starts: usize,
    /// Messages that their sender does not have.
    pub lost: Vec<String>,
    /// Messages with another number of jobs or results than one, or with a wrong outcome.
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

/// A message at its sender: node and key.
type At = (usize, String);

/// All messages of all nodes.
#[derive(Default)]
struct Found {
    /// Messages at their senders.
    sent: HashMap<At, MessageView>,
    /// Results at the senders.
    results: HashMap<At, Vec<MessageView>>,
    /// Messages at their receivers, with the number of that node.
    received: HashMap<At, Vec<(usize, MessageView)>>,
}

impl Found {
    async fn read(world: &World) -> Self {
        let mut found = Self::default();
        for (at, node) in world.nodes.iter().enumerate() {
            let [from, to] = node.read().await;
            for view in from {
                match view.re.clone() {
                    Some(re) => found.results.entry((at, re)).or_default().push(view),
                    None => {
                        let key = view.message.key().numbers();
                        found.sent.insert((at, key), view);
                    }
                }
            }
            // What has no origin is a result that was made here.
            for view in to {
                let Some(origin) = view.origin.clone() else {
                    continue;
                };
                let from = world.nodes.iter().position(|it| it.id == origin.node);
                let from = from.filter(|_| origin.context.get() == FROM);
                let key = (from.unwrap_or(usize::MAX), origin.message.numbers());
                found.received.entry(key).or_default().push((at, view));
            }
        }
        found
    }
}

impl Report {
    pub(super) fn new(plan: &Plan, world: &World) -> Self {
        let troubles = world.troubles.counts.iter();
        Self {
            seed: plan.seed,
            messages: world.sent.len(),
            troubles: troubles
                .map(|(kind, count)| (kind.name(), *count))
                .collect(),
            outcomes: BTreeMap::new(),
            jobs: 0,
            starts: 0,
            lost: Vec::new(),
            wrong: Vec::new(),
            doubled: Vec::new(),
            open: Vec::new(),
            seconds: 0,
            files: None,
        }
    }

    pub(super) async fn judge(&mut self, world: &World, is_quiet: bool) -> Result<(), ChaosError> {
        self.open = world.open(true);
        if !is_quiet {
            self.open
                .push("no further result for a long time".to_owned());
        }
        let found = Found::read(world).await;
        let mut expected: HashMap<At, &Sent> = HashMap::new();
        for sent in &world.sent {
            let at = (sent.from, sent.key.numbers());
            if !found.sent.contains_key(&at) {
                self.lost.push(format!("node {}: {}", at.0, at.1));
            }
            expected.insert(at, sent);
        }
        // A message whose sender got no answer is stored, or not; if it is, all holds for it, too.
        for (at, view) in &found.sent {
            let sent = expected.get(at).copied();
            if let Some(what) = self.difference(at, view, sent, &found) {
                self.wrong
                    .push(format!("node {}, message {}: {what}", at.0, at.1));
            }
        }
        for at in found
            .received
            .keys()
            .filter(|at| !found.sent.contains_key(*at))
        {
            self.wrong
                .push(format!("a message that nobody sent: {at:?}"));
        }
        self.jobs = world.nodes.iter().map(super::Node::jobs).sum();
        let materialised = found.received.values().flatten();
        let materialised: usize = materialised.map(|(_, view)| view.materialised.len()).sum();
        if materialised != self.jobs {
            let what = format!("{} jobs, and messages name {materialised}", self.jobs);
            self.wrong.push(what);
        }
        for (at, node) in world.nodes.iter().enumerate() {
            self.count(
                at,
                &Written::read(node.dir(), &node.dir().join("none"))?,
                world,
            );
        }
        Ok(())
    }

    /// Returns the difference between a message's outcome and the promised one.
    fn difference(
        &mut self,
        at: &At,
        view: &MessageView,
        sent: Option<&Sent>,
        found: &Found,
    ) -> Option<String> {
        let status = view.message.status;
        let reason = view.reason.as_deref();
        let outcome = format!(
            "{status}{}",
            reason.map_or(String::new(), |it| format!(" ({it})"))
        );
        *self.outcomes.entry(outcome.clone()).or_default() += 1;
        let received = found.received.get(at).map_or(&[][..], Vec::as_slice);
        let results = found.results.get(at).map_or(&[][..], Vec::as_slice);
        let jobs: usize = received
            .iter()
            .map(|(_, view)| view.materialised.len())
            .sum();
        if received.len() > 1 || jobs > 1 {
            return Some(format!(
                "received {} times, with {jobs} jobs",
                received.len()
            ));
        }
        if let (Some(sent), [(there, _)]) = (sent, received)
            && *there != sent.to
        {
            return Some(format!("node {there} received it"));
        }
        if let Some(expected) = sent.and_then(|sent| sent.reason) {
            // A result that came too late is stored, and changes no outcome.
            let is_right = status == MessageStatus::Error && reason == Some(expected);
            let is_right = is_right && results.len() <= 1;
            return (!is_right).then(|| format!("{outcome} instead of {expected}"));
        }
        let [result] = results else {
            return Some(format!("{outcome} with {} results", results.len()));
        };
        if status != MessageStatus::Processed || jobs != 1 {
            return Some(format!("{outcome} with {jobs} jobs"));
        }
        let number: Option<usize> = view.message.message.parse().ok();
        let expected = number.map(|number| (number * 2).to_string());
        let job = result.message.job.first();
        let output = job.and_then(|job| job.result.get("result"));
        let same = output == expected.as_ref();
        (!same).then(|| format!("its result is {output:?} instead of {expected:?}"))
    }

    /// Counts starts at a node. Each start of a job but the last one was by a worker that was killed.
    fn count(&mut self, at: usize, written: &Written, world: &World) {
        let mut of_job: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for start in &written.starts {
            of_job.entry(&start.job).or_default().push(start.worker);
        }
        self.starts += written.starts.len();
        for (job, workers) in of_job {
            let (_, earlier) = workers.split_last().unwrap_or((&0, &[]));
            if earlier.iter().any(|worker| !world.killed.contains(worker)) {
                let what = format!("node {at}, {job}: {} starts by {workers:?}", workers.len());
                self.doubled.push(what);
            }
        }
    }

    fn findings(&self) -> [(&'static str, &[String]); 4] {
        [
            ("lost", &self.lost),
            ("wrong", &self.wrong),
            ("doubled", &self.doubled),
            ("open", &self.open),
        ]
    }

    /// Returns true if everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings().iter().all(|(_, lines)| lines.is_empty())
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        let mut value = json!({
            "scenario": "mesh",
            "seed": self.seed,
            "messages": self.messages,
            "troubles": self.troubles,
            "outcomes": self.outcomes,
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            messages,
            troubles,
            outcomes,
            jobs,
            starts,
            seconds,
            ..
        } = self;
        write!(
            f,
            "mesh: {messages} sent, {jobs} jobs, {starts} starts in {seconds} s; {outcomes:?}; {troubles:?}"
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
