//! The count: what the account outside of Redis says against what is there in the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use meshwork_model::bananas::Peer;
use redis::{Commands, Connection};
use serde_json::{Map, Value, json};

use super::BananasError;
use super::orders::{Account, is_flaky};
use meshwork_conformance::accept;

/// Keys in one call.
const STEP: usize = 500;

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The scenario.
    pub name: &'static str,
    /// Jobs that were submitted.
    pub submitted: usize,
    /// Jobs without a start, or whose record does not say that they are done.
    pub lost: Vec<String>,
    /// What stands in a list or a set where nothing should any more.
    pub stuck: Vec<String>,
    /// Jobs that ran more often or less often than they had to.
    pub miscounted: Vec<String>,
    /// Jobs that ran before one that stood before them in their list.
    pub disordered: Vec<String>,
    /// Records and results of ours that one of their clients would refuse.
    pub refused: Vec<String>,
    /// Jobs whose client did not learn that they are done.
    pub unanswered: Vec<String>,
    /// Clients that learned of the end of their job.
    pub answers: usize,
    /// Starts, by who ran the job.
    pub starts: BTreeMap<String, usize>,
    /// Kills, stops, or runs over their time.
    pub kills: usize,
    /// Starts that these made needed.
    pub permitted: usize,
}

impl Report {
    /// Whether everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults().all(|(_, all)| all.is_empty())
    }

    /// One object of JSON: how many of each, and what is wrong in words.
    #[must_use]
    pub fn json(&self) -> Value {
        let faults = self.faults();
        let faults = faults.map(|(what, all)| (what.replace(' ', "_"), json!(all)));
        json!({
            "scenario": self.name,
            "holds": self.holds(),
            "submitted": self.submitted,
            "answers": self.answers,
            "starts": self.starts,
            "kills": self.kills,
            "permitted": self.permitted,
            "faults": faults.collect::<Map<_, _>>(),
        })
    }

    fn faults(&self) -> impl Iterator<Item = (&'static str, &Vec<String>)> {
        [
            ("lost", &self.lost),
            ("stuck", &self.stuck),
            ("miscounted", &self.miscounted),
            ("out of order", &self.disordered),
            ("refused", &self.refused),
            ("unanswered", &self.unanswered),
        ]
        .into_iter()
    }
}

/// A line of the account of clients.
pub(super) struct Submitted {
    pub(super) id: String,
    list: String,
    flaky: bool,
}

impl Submitted {
    pub(super) fn read(dir: &Path) -> Result<Vec<Self>, BananasError> {
        let lines = Account::Submitted.read(dir)?;
        let line = |line: String| {
            let mut words = line.split(' ').map(str::to_owned);
            let mut next = || words.next().unwrap_or_default();
            Self {
                id: next(),
                list: next(),
                flaky: is_flaky(&next()),
            }
        };
        Ok(lines.into_iter().map(line).collect())
    }

    /// Its client's number: the first part of the id.
    fn client(&self) -> &str {
        self.id.split('-').next().unwrap_or_default()
    }
}

/// What stands where nothing should, with how many entries.
pub(super) fn standing(redis: &mut Connection) -> Result<Vec<String>, BananasError> {
    let mut standing = Vec::new();
    for pattern in ["bananas:*queue:*", "bananas:mw:*"] {
        let keys: Vec<String> = redis.keys(pattern)?;
        // Workers of ours that are there say so in two of these, and what happened is counted in the third.
        let kept = ["bananas:mw:routes", "bananas:mw:feeds", "bananas:mw:stats"];
        for key in keys.iter().filter(|key| !kept.contains(&key.as_str())) {
            standing.push(key.clone());
        }
    }
    Ok(standing)
}

/// The records of jobs.
pub(super) fn records(
    redis: &mut Connection,
    jobs: &[Submitted],
) -> Result<HashMap<String, String>, BananasError> {
    let mut records = HashMap::new();
    for some in jobs.chunks(STEP) {
        let keys: Vec<String> = some
            .iter()
            .map(|job| format!("bananas:job:{}", job.id))
            .collect();
        let texts: Vec<Option<String>> = redis.mget(keys)?;
        let texts = texts.into_iter().map(Option::unwrap_or_default);
        records.extend(some.iter().map(|job| job.id.clone()).zip(texts));
    }
    Ok(records)
}

/// Counts. `makes` are those of the clients, by their number; `single` says that one slot took all jobs; `extra` are
/// the starts beyond its own that a job may have had.
pub(super) fn count(
    name: &'static str,
    dir: &Path,
    redis: &mut Connection,
    makes: &[Peer],
    single: bool,
    extra: &HashMap<String, usize>,
) -> Result<Report, BananasError> {
    let jobs = Submitted::read(dir)?;
    let records = records(redis, &jobs)?;
    let mut report = Report {
        name,
        submitted: jobs.len(),
        stuck: standing(redis)?,
        permitted: extra.values().sum(),
        ..Report::default()
    };
    let (mut runs, mut first, mut last) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (at, line) in Account::Starts.read(dir)?.into_iter().enumerate() {
        let (id, who) = line.split_once(' ').unwrap_or((&line, ""));
        *runs.entry(id.to_owned()).or_insert(0_usize) += 1;
        first.entry(id.to_owned()).or_insert(at);
        last.insert(id.to_owned(), who.to_owned());
        *report.starts.entry(who.to_owned()).or_default() += 1;
    }
    for job in &jobs {
        let (id, ran) = (&job.id, runs.get(&job.id).copied().unwrap_or_default());
        let record = &records[id];
        if ran == 0 || !record.contains("\"completed\"") {
            report.lost.push(format!("{id} ({ran} runs) {record}"));
        }
        let own = 1 + usize::from(job.flaky);
        let most = own + extra.get(id).copied().unwrap_or_default();
        if !(own..=most).contains(&ran) {
            let line = format!("{id} ran {ran} times, not {own} to {most}");
            report.miscounted.push(line);
        }
        let make = usize::from_str_radix(job.client(), 16).ok();
        let make = make.and_then(|number| makes.get(number)).copied();
        if last.get(id).is_some_and(|who| who.starts_with("ours")) {
            report.refused.extend(refused(redis, make, id, record)?);
        }
    }
    if single {
        report.disordered = disordered(&jobs, &first);
    }
    for line in Account::Answers.read(dir)? {
        report.answers += 1;
        if !line.ends_with(" completed") {
            report.unanswered.push(line);
        }
    }
    Ok(report)
}

/// Why clients would refuse what ours left of a job: the record that of the make that wrote it, the result all.
fn refused(
    redis: &mut Connection,
    make: Option<Peer>,
    id: &str,
    record: &str,
) -> Result<Vec<String>, BananasError> {
    let result: HashMap<String, String> = redis.hgetall(format!("bananas:result:{id}"))?;
    let results = Peer::ALL.map(|make| accept::result(make, &result));
    let records = [make.unwrap_or_default(), Peer::Go].map(|make| accept::record(make, record));
    let whys = results.into_iter().chain(records).filter_map(Result::err);
    let whys: HashSet<String> = whys.collect();
    Ok(whys.into_iter().map(|why| format!("{id}: {why}")).collect())
}

/// Jobs that began before one that its client had pushed to the same list before.
fn disordered(jobs: &[Submitted], first: &HashMap<String, usize>) -> Vec<String> {
    let mut latest: HashMap<(&str, &str), (usize, &str)> = HashMap::new();
    let mut found = Vec::new();
    // What waits for its time comes to its list then.
    let waits = |job: &&Submitted| job.list.contains("scheduled") || job.list.starts_with("later");
    for job in jobs.iter().filter(|job| !waits(job)) {
        let Some(&at) = first.get(&job.id) else {
            continue;
        };
        let before = latest
            .entry((job.client(), &job.list))
            .or_insert((at, &job.id));
        if before.0 > at {
            found.push(format!("{} before {} in {}", job.id, before.1, job.list));
        } else {
            *before = (at, &job.id);
        }
    }
    found
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: submitted {}", self.name, self.submitted)?;
        for (what, all) in self.faults() {
            write!(f, ", {what} {}", all.len())?;
        }
        write!(f, "; {} answers; starts", self.answers)?;
        for (who, starts) in &self.starts {
            write!(f, " {who} {starts}")?;
        }
        if self.kills > 0 {
            let (kills, permitted) = (self.kills, self.permitted);
            write!(f, "; {kills} kills, at most {permitted} more starts")?;
        }
        for (what, all) in self.faults() {
            for one in all.iter().take(5) {
                write!(f, "\n  {what}: {one}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_overtakes_is_found() {
        let job = |id: &str, list: &str| Submitted {
            id: id.to_owned(),
            list: list.to_owned(),
            flaky: false,
        };
        let jobs = [
            job("0-a", "x"),
            job("0-b", "x"),
            job("1-c", "x"),
            job("0-d", "later:x"),
        ];
        let first = |order: [&str; 4]| {
            let places = order.into_iter().enumerate();
            places.map(|(at, id)| (id.to_owned(), at)).collect()
        };
        assert!(disordered(&jobs, &first(["0-d", "1-c", "0-a", "0-b"])).is_empty());
        assert_eq!(
            disordered(&jobs, &first(["0-b", "0-a", "1-c", "0-d"])).len(),
            1
        );
    }
}
