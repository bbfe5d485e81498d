//! The judge: compares the accepted jobs, their ends and their starts with the faults.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::state::Status;

use super::jobs::{End, ExpectedJob, KILLER};
use super::starts::Expired;
use super::submit::{Answer, Submitted};
use crate::chaos::fleet::ledger::{Start, Trouble, explains};

/// The jobs and starts of a whole play.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// Jobs that were accepted.
    pub(super) accepted: usize,
    /// Accepted jobs without exactly one correct end, with the reason.
    pub(super) lost: Vec<String>,
    /// Jobs that were not accepted and that exist in part, or against the command's answer.
    pub(super) half: Vec<String>,
    /// Starts beyond the first of each job.
    pub(super) again: u64,
    /// Repeated starts that a fault or a retry explains.
    pub(super) permitted: u64,
    /// Repeated starts that only an expired lease explains: the machine had no time for a worker.
    pub(super) expired: u64,
    /// Starts that nothing explains, and those that came too early.
    pub(super) unexplained: Vec<String>,
}

/// Greatest delay of the log line about an expired lease after the next start. Another process writes that line, and
/// may have to wait for a processor on a busy machine.
const LATE: Duration = Duration::from_secs(5);

/// Judges the jobs and starts.
pub(super) fn judge(
    submitted: &Submitted,
    records: &HashMap<String, Job>,
    starts: &[Start],
    faults: &[Trouble],
    expired: &[Expired],
) -> Judged {
    let mut judged = Judged::default();
    let mut of_job: BTreeMap<&str, Vec<&Start>> = BTreeMap::new();
    for start in starts {
        of_job.entry(&start.job).or_default().push(start);
    }
    for starts in of_job.values_mut() {
        starts.sort_by_key(|start| start.at);
    }
    for job in &submitted.jobs {
        let record = records.get(&job.id);
        let starts = of_job.get(&*job.id).map_or(&[][..], Vec::as_slice);
        match (submitted.answers.get(&job.id), record) {
            (Some(Answer::Accepted), record) => {
                judged.accepted += 1;
                judged.lost.extend(fault(job, record, starts.len()));
            }
            (None, Some(record)) => judged.half.extend(fault(job, Some(record), starts.len())),
            (Some(said), Some(_)) => {
                judged
                    .half
                    .push(format!("{} is there, and was {said:?}", job.id));
            }
            (_, None) if !starts.is_empty() => {
                judged
                    .half
                    .push(format!("{} ran, and is not there", job.id));
            }
            (_, None) => {}
        }
        judged.starts(job, starts, faults, expired);
        judged.order(job, starts, &of_job);
    }
    let is_submitted =
        |id: &str| id.starts_with(KILLER) || submitted.jobs.iter().any(|job| job.id == id);
    let strange = of_job.keys().filter(|id| !is_submitted(id));
    judged
        .half
        .extend(strange.map(|id| format!("{id} ran, and was not submitted")));
    let silent = submitted.unanswered.iter();
    judged
        .half
        .extend(silent.map(|id| format!("{id}: the call ended well and said nothing of it")));
    judged
}

/// Returns the reason why a job lacks its correct end.
fn fault(job: &ExpectedJob, record: Option<&Job>, starts: usize) -> Option<String> {
    let id = &job.id;
    let Some(record) = record else {
        return Some(format!("{id} is not there; it was started {starts} times"));
    };
    let (error, output) = (record.error.as_deref(), record.output.as_deref());
    let right = match (job.end(), record.status()) {
        (End::Finished(result), Some(Status::Finished)) => {
            output == Some(result.as_bytes()) && error.is_none()
        }
        (End::Failed(why), Some(Status::Error)) => {
            output.is_none() && error.is_some_and(|error| error.contains(why))
        }
        _ => false,
    };
    let output = output.map(String::from_utf8_lossy);
    let (kind, status) = (job.kind, &record.status);
    if !right {
        return Some(format!(
            "{id} ({kind:?}): {status}, result {output:?}, error {error:?}"
        ));
    }
    let (least, _) = job.runs();
    let ran = u32::try_from(starts).unwrap_or(u32::MAX);
    (ran < least).then(|| format!("{id} ({kind:?}) is {status}, and was started {ran} times"))
}

impl Judged {
    /// Judges each start beyond the first: a fault, an expired lease or a retry must explain it.
    fn starts(
        &mut self,
        job: &ExpectedJob,
        starts: &[&Start],
        faults: &[Trouble],
        expired: &[Expired],
    ) {
        let ended = |first: &Start, then: &Start| {
            let of_job = expired.iter().filter(|lease| lease.job == job.id);
            let mut between = of_job.filter(|it| it.at >= first.at && it.at <= then.at + LATE);
            between.next().is_some()
        };
        let (_, most) = job.runs();
        if most == 0 && !starts.is_empty() {
            self.unexplained
                .push(format!("{} ran, though what it depends on fails", job.id));
            return;
        }
        let mut retries = most.saturating_sub(1);
        for pair in starts.windows(2) {
            self.again += 1;
            if faults.iter().any(|fault| explains(fault, pair[0], pair[1])) {
                self.permitted += 1;
            } else if ended(pair[0], pair[1]) {
                self.expired += 1;
            } else if retries > 0 {
                retries -= 1;
                self.permitted += 1;
            } else {
                let (first, then) = (pair[0], pair[1]);
                let after = then.at.saturating_sub(first.at);
                self.unexplained.push(format!(
                    "{} ({:?}): by process {} at {:?}, {after:?} later by {}",
                    job.id, job.kind, first.worker, first.at, then.worker
                ));
            }
        }
    }

    /// Judges the order: a job begins after its prerequisites.
    fn order(
        &mut self,
        job: &ExpectedJob,
        starts: &[&Start],
        of_job: &BTreeMap<&str, Vec<&Start>>,
    ) {
        let Some(first) = starts.first() else {
            return;
        };
        for before in &job.after {
            let began = of_job.get(&**before).and_then(|starts| starts.first());
            if began.is_some_and(|before| before.at > first.at) {
                self.unexplained
                    .push(format!("{} began before {before}", job.id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::jobs::{Kind, NOT_FINISHED, ON_PURPOSE};
    use super::*;
    use crate::chaos::fleet::ledger::What;

    fn start(job: &str, worker: u32, second: u64) -> Start {
        let at = Duration::from_secs(second);
        let job = job.to_owned();
        Start { job, worker, at }
    }

    fn judge(
        submitted: &Submitted,
        records: &HashMap<String, Job>,
        starts: &[Start],
        faults: &[Trouble],
    ) -> Judged {
        super::judge(submitted, records, starts, faults, &[])
    }

    fn killed(worker: u32, second: u64) -> Trouble {
        let at = Duration::from_secs(second);
        let what = What::Killed(worker);
        Trouble {
            what,
            from: at,
            to: at,
        }
    }

    /// Returns accepted jobs of these kinds, with correct ends.
    fn whole(kinds: &[(&str, Kind)]) -> (Submitted, HashMap<String, Job>) {
        let mut submitted = Submitted::default();
        let mut records = HashMap::new();
        for (id, kind) in kinds {
            let job = ExpectedJob::plain(id, *kind);
            let mut record = Job::default();
            match job.end() {
                End::Finished(result) => {
                    record.status = "finished".to_owned();
                    record.output = Some(result.into_bytes());
                }
                End::Failed(why) => {
                    record.status = "error".to_owned();
                    record.error = Some(format!("it failed {why}"));
                }
            }
            submitted.answers.insert(job.id.clone(), Answer::Accepted);
            records.insert(job.id.clone(), record);
            submitted.jobs.push(job);
        }
        (submitted, records)
    }

    #[test]
    fn all_as_it_should_be() {
        let (submitted, records) = whole(&[("a", Kind::Rhai), ("b", Kind::RhaiFails)]);
        let starts = [
            start("a", 11, 1),
            start("b", 11, 1),
            start("b", 12, 2),
            start("b", 11, 3),
        ];
        let expected = Judged {
            accepted: 2,
            again: 2,
            permitted: 2,
            ..Judged::default()
        };
        assert_eq!(judge(&submitted, &records, &starts, &[]), expected);
    }

    #[test]
    fn a_lost_job_is_found() {
        let (submitted, records) = whole(&[("a", Kind::Rhai)]);
        let starts = [start("a", 11, 1)];
        let lost = |records: &HashMap<String, Job>, starts: &[Start]| {
            let judged = judge(&submitted, records, starts, &[]);
            assert_eq!(judged.lost.len(), 1, "{judged:?}");
            judged.lost[0].clone()
        };
        assert!(lost(&HashMap::new(), &starts).contains("is not there"));
        for (status, output, error) in [
            ("started", None, None),
            ("finished", Some("b done"), None),
            ("error", None, Some(ON_PURPOSE)),
            ("finished", Some("a done"), Some(ON_PURPOSE)),
        ] {
            let mut other = records.clone();
            let record = other.get_mut("a").unwrap();
            record.status = status.to_owned();
            record.output = output.map(|text| text.as_bytes().to_vec());
            record.error = error.map(str::to_owned);
            lost(&other, &starts);
        }
        assert!(lost(&records, &[]).contains("was started 0 times"));
        let (submitted, records) = whole(&[("a", Kind::PythonFails)]);
        let judged = judge(&submitted, &records, &starts, &[]);
        assert_eq!(judged.lost.len(), 1, "it had two more runs: {judged:?}");
    }

    #[test]
    fn a_start_beyond_the_first_needs_a_trouble_or_a_retry() {
        for (kind, starts, permitted) in
            [(Kind::Rhai, 2, 0), (Kind::Flaky, 2, 1), (Kind::Flaky, 3, 1)]
        {
            let (submitted, records) = whole(&[("a", kind)]);
            let starts: Vec<_> = (1..=starts).map(|n| start("a", 10 + n, n.into())).collect();
            let judged = judge(&submitted, &records, &starts, &[]);
            let unexplained = starts.len() - 1 - permitted;
            assert_eq!(
                judged.unexplained.len(),
                unexplained,
                "{kind:?}: {judged:?}"
            );
            let judged = judge(
                &submitted,
                &records,
                &starts,
                &[killed(12, 2), killed(11, 1)],
            );
            assert_eq!(judged.unexplained, Vec::<String>::new(), "{kind:?}");
        }
    }

    #[test]
    fn an_expired_lease_between_two_starts_explains_the_second() {
        let (submitted, records) = whole(&[("a", Kind::Rhai)]);
        let starts = [start("a", 11, 10), start("a", 12, 20)];
        let judged = |job: &str, second| {
            let at = Duration::from_secs(second);
            let job = job.to_owned();
            super::judge(&submitted, &records, &starts, &[], &[Expired { job, at }])
        };
        for second in [10, 20, 25] {
            let judged = judged("a", second);
            assert_eq!((judged.expired, judged.permitted), (1, 0), "{judged:?}");
            assert_eq!(judged.unexplained, Vec::<String>::new());
        }
        for (job, second) in [("a", 9), ("a", 26), ("b", 15)] {
            assert_eq!(judged(job, second).unexplained.len(), 1, "{job} {second}");
        }
    }

    #[test]
    fn a_job_that_nobody_was_promised_is_whole_or_not_there() {
        let (mut submitted, mut records) = whole(&[("a", Kind::Rhai)]);
        let starts = [start("a", 11, 1)];
        submitted.answers.clear();
        assert_eq!(judge(&submitted, &records, &starts, &[]), Judged::default());
        assert_eq!(
            judge(&submitted, &HashMap::new(), &[], &[]),
            Judged::default()
        );
        let ran = judge(&submitted, &HashMap::new(), &starts, &[]);
        assert_eq!(ran.half, ["a ran, and is not there"]);
        submitted.answers.insert("a".to_owned(), Answer::Kept);
        assert_eq!(judge(&submitted, &records, &starts, &[]).half.len(), 1);
        submitted.answers.clear();
        records.get_mut("a").unwrap().status = "dispatched".to_owned();
        assert_eq!(judge(&submitted, &records, &[], &[]).half.len(), 1);
        let strange = judge(&Submitted::default(), &HashMap::new(), &starts, &[]);
        assert_eq!(strange.half, ["a ran, and was not submitted"]);
        submitted.jobs.clear();
        submitted.unanswered.push("a".to_owned());
        assert_eq!(judge(&submitted, &HashMap::new(), &[], &[]).half.len(), 1);
    }

    #[test]
    fn a_job_runs_after_what_it_depends_on_and_not_if_that_fails() {
        let (mut submitted, mut records) = whole(&[("a", Kind::RhaiFails), ("b", Kind::Rhai)]);
        submitted.jobs[1].after = vec!["a".to_owned()];
        let first = [2, 3, 4].map(|second| start("a", 11, second));
        let starts = |second| [&first[..], &[start("b", 11, second)]].concat();
        assert_eq!(
            judge(&submitted, &records, &starts(5), &[])
                .unexplained
                .len(),
            0
        );
        assert_eq!(
            judge(&submitted, &records, &starts(1), &[])
                .unexplained
                .len(),
            1
        );
        submitted.jobs[1].barred = true;
        let record = records.get_mut("b").unwrap();
        (record.status, record.output) = ("error".to_owned(), None);
        record.error = Some(format!("prerequisite a {NOT_FINISHED}"));
        let judged = judge(&submitted, &records, &first, &[]);
        assert_eq!(
            (judged.lost.len(), judged.unexplained.len()),
            (0, 0),
            "{judged:?}"
        );
        assert_eq!(
            judge(&submitted, &records, &starts(5), &[])
                .unexplained
                .len(),
            1
        );
    }
}
