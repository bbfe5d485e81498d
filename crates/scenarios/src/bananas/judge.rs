//! The judge: compares the records outside of Redis with the state in the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use meshwork_model::bananas::ClientVariant;
use redis::{Commands, Connection};
use serde_json::{Map, Value, json};

use super::BananasError;
use super::orders::{Account, is_flaky};
use meshwork_conformance::accept;

/// Number of keys in one call.
const STEP: usize = 500;

/// Result of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name of the scenario.
    pub name: &'static str,
    /// Number of submitted jobs.
    pub submitted: usize,
    /// Jobs that were never started, or whose record does not say that they are done.
    pub lost: Vec<String>,
    /// Entries of lists and sets that should be empty.
    pub stuck: Vec<String>,
    /// Jobs that ran more often or less often than they should.
    pub miscounted: Vec<String>,
    /// Jobs that ran before an earlier job of their list.
    pub disordered: Vec<String>,
    /// Records and results of Meshwork that a client of Bananas would refuse.
    pub refused: Vec<String>,
    /// Jobs whose client did not learn that they are done.
    pub unanswered: Vec<String>,
    /// Number of clients that learned of the end of their job.
    pub answers: usize,
    /// Number of starts by worker.
    pub starts: BTreeMap<String, usize>,
    /// Number of kills, stops, or runs beyond their timeout.
    pub kills: usize,
    /// Number of starts that these explain.
    pub permitted: usize,
}

impl Report {
    /// Returns true if nothing was lost, stuck, miscounted, disordered, refused or unanswered.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults().all(|(_, all)| all.is_empty())
    }

    /// Returns the report as a JSON object: the numbers, and each violation as text.
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

/// A line of the clients' records.
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

    /// Returns the number of its client: the first part of the id.
    fn client(&self) -> &str {
        self.id.split('-').next().unwrap_or_default()
    }
}

/// Returns the lists and sets that should be empty and are not, with their lengths.
pub(super) fn standing(redis: &mut Connection) -> Result<Vec<String>, BananasError> {
    let mut standing = Vec::new();
    for pattern in ["bananas:*queue:*", "bananas:mw:*"] {
        let keys: Vec<String> = redis.keys(pattern)?;
        // Two of these contain registrations of running Meshwork workers; the third contains counters.
        let kept = ["bananas:mw:routes", "bananas:mw:feeds", "bananas:mw:stats"];
        for key in keys.iter().filter(|key| !kept.contains(&key.as_str())) {
            standing.push(key.clone());
        }
    }
    Ok(standing)
}

/// Returns the records of jobs.
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

/// Compares the records. `makes` are the variants of the clients by number. `single` means that one slot ran all
/// jobs. `extra` is the number of additional starts that each job may have had.
pub(super) fn count(
    name: &'static str,
    dir: &Path,
    redis: &mut Connection,
    makes: &[ClientVariant],
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

/// Returns the reasons why clients would refuse the record or the result of a job. The record must suit the variant
/// that wrote it, the result all variants.
fn refused(
    redis: &mut Connection,
    make: Option<ClientVariant>,
    id: &str,
    record: &str,
) -> Result<Vec<String>, BananasError> {
    let result: HashMap<String, String> = redis.hgetall(format!("bananas:result:{id}"))?;
    let results = ClientVariant::ALL.map(|make| accept::result(make, &result));
    let records =
        [make.unwrap_or_default(), ClientVariant::Go].map(|make| accept::record(make, record));
    let whys = results.into_iter().chain(records).filter_map(Result::err);
    let whys: HashSet<String> = whys.collect();
    Ok(whys.into_iter().map(|why| format!("{id}: {why}")).collect())
}

/// Returns the jobs that began before a job that the same client had pushed to the same list earlier.
fn disordered(jobs: &[Submitted], first: &HashMap<String, usize>) -> Vec<String> {
    let mut latest: HashMap<(&str, &str), (usize, &str)> = HashMap::new();
    let mut found = Vec::new();
    // A delayed job reaches its list at its due time.
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
