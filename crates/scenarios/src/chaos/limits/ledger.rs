//! The runs, as the workers recorded them, and whether the limits held. No data comes from the store.

use std::collections::BTreeMap;
use std::time::Duration;

use super::jobs::{BURST, KEY_PER_WINDOW, KEY_SLOTS, PER_SECOND, SLOTS, Sort, Submitted};
use crate::chaos::ChaosError;

/// Greatest delay from the claim of a job to its record, on a busy machine.
const LAG: Duration = Duration::from_secs(1);

/// One run of a job, in times of the monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    job: String,
    worker: u32,
    from: Duration,
    /// End of the run; `None` if its worker was killed.
    to: Option<Duration>,
}

/// Times of the kills of workers, by process id.
pub(super) type Kills = BTreeMap<u32, Duration>;

/// Verdict on the runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) starts: usize,
    pub(super) killed: usize,
    /// Greatest number of running jobs in the limited queue.
    pub(super) most: usize,
    pub(super) over: Vec<String>,
}

/// Parses the lines `start|end job worker nanoseconds`.
pub(super) fn runs(tally: &str) -> Result<Vec<Run>, ChaosError> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open = BTreeMap::new();
    for line in tally.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let mut known = || {
            let [word, job, worker, at] = words[..] else {
                return None;
            };
            let (worker, at) = (worker.parse().ok()?, Duration::from_nanos(at.parse().ok()?));
            match word {
                "start" => {
                    open.insert((job.to_owned(), worker), runs.len());
                    runs.push(Run {
                        job: job.to_owned(),
                        worker,
                        from: at,
                        to: None,
                    });
                }
                "end" => runs[open.remove(&(job.to_owned(), worker))?].to = Some(at),
                _ => return None,
            }
            Some(())
        };
        known().ok_or_else(|| ChaosError::Line(line.to_owned()))?;
    }
    Ok(runs)
}

/// A run, and the time until which its slot must not have another job. A killed worker's slot is free at once, since
/// other workers on its host see its end.
type Held<'a> = (&'a Run, Duration);

/// Judges the runs of the requested jobs.
pub(super) fn judge(runs: &[Run], kills: &Kills, submitted: &Submitted) -> Judged {
    let mut judged = Judged {
        starts: runs.len(),
        ..Judged::default()
    };
    let mut groups: BTreeMap<(&str, &str), (Sort, Vec<Held<'_>>)> = BTreeMap::new();
    for run in runs {
        let Some((sort, name)) = submitted.of(&run.job) else {
            judged.over.push(format!("{} ran, and is no job", run.job));
            continue;
        };
        let to = match (run.to, kills.get(&run.worker)) {
            (Some(to), _) => to,
            (None, Some(killed)) => {
                judged.killed += 1;
                run.from.max(*killed)
            }
            (None, None) => {
                let (job, worker) = (&run.job, run.worker);
                let line = format!("{job}: the run in {worker} has no end, and nobody killed it");
                judged.over.push(line);
                continue;
            }
        };
        for name in ["", name] {
            let group = groups.entry((sort.name(), name));
            let (_, runs) = group.or_insert_with(|| (sort, Vec::new()));
            runs.push((run, to));
        }
    }
    for ((of, name), (sort, mut runs)) in groups {
        runs.sort_by_key(|(run, _)| run.from);
        let what = format!("{of} {name}");
        let over = match (sort, name.is_empty()) {
            (Sort::Slots, true) => {
                let (most, over) = at_once(&what, &runs, SLOTS);
                judged.most = most;
                over
            }
            (Sort::Slots, false) => at_once(&what, &runs, KEY_SLOTS).1,
            (Sort::Rates, true) => in_a_time(&what, &runs, |time| {
                BURST + (time.as_millis() as u64 * PER_SECOND).div_ceil(1000)
            }),
            // The window in which the time begins, the complete windows, and the window in which it ends.
            (Sort::Rates, false) => {
                in_a_time(&what, &runs, |time| KEY_PER_WINDOW * (time.as_secs() + 2))
            }
            (Sort::Names, true) => continue,
            (Sort::Names, false) => one_of_a_name(&what, &runs),
        };
        judged.over.extend(over);
    }
    judged
}

/// Returns the greatest number of slots in use, and the moments with too many.
fn at_once(what: &str, runs: &[Held<'_>], limit: usize) -> (usize, Vec<String>) {
    let mut moments: Vec<_> = runs
        .iter()
        .flat_map(|(run, to)| [(run.from, true, *run), (*to, false, *run)])
        .collect();
    // A slot may be free and taken again at the same moment.
    moments.sort_by_key(|(at, taken, _)| (*at, *taken));
    let (mut now, mut most, mut over) = (0_usize, 0, Vec::new());
    for (at, taken, run) in moments {
        now = if taken { now + 1 } else { now - 1 };
        most = most.max(now);
        if taken && now > limit {
            over.push(format!("{what}: {now} at once, {} at {at:?}", run.job));
        }
    }
    (most, over)
}

/// Returns the starts beyond the limit `may` of a duration. The duration is extended by the greatest delay of a
/// record.
fn in_a_time(what: &str, runs: &[Held<'_>], may: impl Fn(Duration) -> u64) -> Vec<String> {
    let mut over = Vec::new();
    for (first, (from, _)) in runs.iter().enumerate() {
        for (last, (to, _)) in runs.iter().enumerate().skip(first) {
            let (starts, time) = (last - first + 1, to.from - from.from);
            if starts as u64 > may(time + LAG) {
                over.push(format!(
                    "{what}: {starts} starts in {time:?}, to {}",
                    to.job
                ));
                break;
            }
        }
    }
    over
}

/// Returns the jobs that began before an earlier job with their name had ended.
fn one_of_a_name(what: &str, runs: &[Held<'_>]) -> Vec<String> {
    let mut spans: BTreeMap<&str, (Duration, Duration)> = BTreeMap::new();
    for (run, to) in runs {
        let span = spans.entry(&run.job).or_insert((run.from, *to));
        span.1 = span.1.max(*to);
    }
    let mut spans: Vec<_> = spans.into_iter().collect();
    spans.sort_by_key(|(_, (from, _))| *from);
    let pairs = spans.windows(2);
    let over = pairs.filter(|pair| pair[1].1.0 < pair[0].1.1);
    over.map(|pair| format!("{what}: {} began before {} was done", pair[1].0, pair[0].0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns jobs of each sort: `s…`, `r…` and `n…`, all with the key or name `k`.
    fn submitted(runs: &[Run]) -> Submitted {
        let sort = |job: &str| match job.as_bytes()[0] {
            b's' => Sort::Slots,
            b'r' => Sort::Rates,
            _ => Sort::Names,
        };
        let of = |run: &Run| (run.job.clone(), sort(&run.job), "k".to_owned());
        Submitted::of_all(runs.iter().map(of))
    }

    fn judged(tally: &str, kills: &[(u32, u64)]) -> Judged {
        let runs = runs(&tally.replace(';', "\n")).unwrap();
        let kill = |(worker, ms): &(u32, u64)| (*worker, Duration::from_millis(*ms));
        judge(&runs, &kills.iter().map(kill).collect(), &submitted(&runs))
    }

    /// Returns the lines `start` and `end` at times in milliseconds.
    fn ran(job: &str, worker: u32, from: u64, to: u64) -> String {
        let ms = 1_000_000;
        format!(
            "start {job} {worker} {};end {job} {worker} {};",
            from * ms,
            to * ms
        )
    }

    #[test]
    fn as_many_as_the_limit_are_not_too_many() {
        let two = [ran("s1", 7, 0, 10), ran("s2", 8, 5, 20)].concat();
        let judged_two = judged(&[two.as_str(), &ran("s3", 7, 10, 30)].concat(), &[]);
        assert_eq!((judged_two.most, judged_two.over), (KEY_SLOTS, vec![]));
        let three = judged(&[two.as_str(), &ran("s3", 7, 9, 30)].concat(), &[]);
        assert_eq!(three.most, 3);
        assert_eq!(three.over.len(), 1, "{three:?}");
        assert!(three.over[0].contains("slots k: 3 at once, s3"));
    }

    #[test]
    fn a_killed_workers_slot_is_its_own_until_it_is_killed() {
        let killed = "start s1 7 0;start s2 7 0;";
        let next = |from| judged(&[killed, &ran("s3", 8, from, from + 9)].concat(), &[(7, 5)]);
        let soon = next(4);
        assert_eq!((soon.killed, soon.over.len()), (2, 1), "{soon:?}");
        assert_eq!(next(5).over, Vec::<String>::new());
        let alive = judged(killed, &[]);
        assert_eq!(alive.over.len(), 2, "nobody killed it: {alive:?}");
    }

    #[test]
    fn starts_are_counted_over_each_time() {
        let many = |count: u64, apart: u64| -> String {
            let one = |n| ran(&format!("r{n}"), 7, n * apart, n * apart);
            (0..count).map(one).collect()
        };
        let at_once = BURST + PER_SECOND;
        assert!(judged(&many(3 * KEY_PER_WINDOW, 0), &[]).over.is_empty());
        let of_key = judged(&many(3 * KEY_PER_WINDOW + 1, 0), &[]).over;
        assert_eq!(of_key.len(), 1, "{of_key:?}");
        let of_both = judged(&many(at_once + 1, 0), &[]).over;
        assert!(of_both.iter().any(|line| line.starts_with("rates :")));
    }

    #[test]
    fn a_name_is_one_jobs_until_it_is_done() {
        let retried = ["start n1 7 0;", &ran("n1", 8, 4_000, 4_010)].concat();
        let then = [retried.as_str(), &ran("n2", 8, 4_010, 4_020)].concat();
        assert_eq!(judged(&then, &[(7, 5)]).over, Vec::<String>::new());
        let between = [retried.as_str(), &ran("n2", 8, 3_500, 3_600)].concat();
        let over = judged(&between, &[(7, 5)]).over;
        assert_eq!(over, ["names k: n2 began before n1 was done"]);
    }

    #[test]
    fn a_line_that_is_none_is_told() {
        for line in ["start s1 7", "end s1 7 5", "begin s1 7 5", "start s1 x 5"] {
            assert!(runs(line).is_err(), "{line}");
        }
    }
}
