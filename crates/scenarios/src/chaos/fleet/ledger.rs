//! The starts of jobs, the troubles meanwhile, and whether these explain each start beyond the first. All data comes
//! from outside of the store.

use std::collections::HashMap;
use std::time::Duration;

use crate::chaos::ChaosError;

/// One start of a job, as the script recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chaos) struct Start {
    pub(in crate::chaos) job: String,
    /// Process of the worker; [`ORPHANED`] if it had ended when the script looked.
    pub(in crate::chaos) worker: u32,
    /// Time on the monotonic clock.
    pub(in crate::chaos) at: Duration,
}

/// Parent process of the scripts of a killed worker, until they notice the kill.
const ORPHANED: u32 = 1;
/// Greatest delay until a process learns of a trouble: a script, that its worker was killed; a worker, that others
/// have its jobs after its pause.
const LEARNT: Duration = Duration::from_secs(5);

/// A trouble that the harness caused, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::chaos) struct Trouble {
    pub(in crate::chaos) what: What,
    pub(in crate::chaos) from: Duration,
    pub(in crate::chaos) to: Duration,
}

/// A trouble that can take a running job from its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::chaos) enum What {
    /// `kill -9` of this process.
    Killed(u32),
    /// SIGSTOP of this process until its leases had expired.
    Paused(u32),
    /// This process could start no run, and released its jobs.
    Sick(u32),
    /// No server answered.
    ServerAway,
}

/// Verdict on the starts of a whole play.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::chaos) struct Judged {
    /// Number of starts beyond the first of each job.
    pub(in crate::chaos) twice: u64,
    /// Number of these that a trouble explains.
    pub(in crate::chaos) permitted: u64,
    /// Starts that no trouble explains.
    pub(in crate::chaos) unexplained: Vec<String>,
}

/// Parses the lines `job worker nanoseconds`.
pub(in crate::chaos) fn starts(tally: &str) -> Result<Vec<Start>, ChaosError> {
    let start = |line: &str| {
        let mut words = line.split(' ');
        Some(Start {
            job: words.next()?.to_owned(),
            worker: words.next()?.parse().ok()?,
            at: Duration::from_nanos(words.next()?.parse().ok()?),
        })
    };
    let read = |line: &str| start(line).ok_or_else(|| ChaosError::Line(line.to_owned()));
    tally.lines().map(read).collect()
}

/// Judges the starts. A job may start again if, between both starts, the first worker was killed or paused beyond its
/// lease, or no server answered. It may also start again if the second worker was about to start it when it was
/// paused.
pub(in crate::chaos) fn judge(starts: &[Start], troubles: &[Trouble]) -> Judged {
    let mut of_job: HashMap<&str, Vec<&Start>> = HashMap::new();
    for start in starts {
        of_job.entry(&start.job).or_default().push(start);
    }
    let mut judged = Judged::default();
    for (job, mut starts) in of_job {
        starts.sort_by_key(|start| start.at);
        for pair in starts.windows(2) {
            judged.twice += 1;
            if troubles
                .iter()
                .any(|trouble| explains(trouble, pair[0], pair[1]))
            {
                judged.permitted += 1;
            } else {
                let (first, then) = (pair[0].worker, pair[1].worker);
                let after = pair[1].at - pair[0].at;
                let line = format!("{job}: by process {first}, {after:?} later by {then}");
                judged.unexplained.push(line);
            }
        }
    }
    judged
}

/// Returns true if a trouble explains the second of two starts of a job.
pub(in crate::chaos) fn explains(trouble: &Trouble, first: &Start, then: &Start) -> bool {
    let meanwhile = trouble.from <= then.at && trouble.to >= first.at;
    let concerns = match trouble.what {
        What::Killed(_) if first.worker == ORPHANED => {
            let since = first.at.checked_sub(trouble.from);
            return since.is_some_and(|since| since < LEARNT);
        }
        What::Killed(process) | What::Paused(process) if process == first.worker => true,
        What::Killed(_) => false,
        What::Sick(process) => process == first.worker,
        What::Paused(process) => {
            let taken_over = first.at >= trouble.from;
            process == then.worker && taken_over && then.at < trouble.to + LEARNT
        }
        What::ServerAway => true,
    };
    meanwhile && concerns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(job: &str, worker: u32, second: u64) -> Start {
        Start {
            job: job.to_owned(),
            worker,
            at: Duration::from_secs(second),
        }
    }

    fn trouble(what: What, from: u64, to: u64) -> Trouble {
        Trouble {
            what,
            from: Duration::from_secs(from),
            to: Duration::from_secs(to),
        }
    }

    #[test]
    fn one_start_each_is_as_it_should_be() {
        assert_eq!(
            judge(&[start("a", 11, 1), start("b", 11, 2)], &[]),
            Judged::default()
        );
    }

    #[test]
    fn only_what_happened_to_the_first_worker_meanwhile_explains_a_second_start() {
        let starts = [start("a", 11, 10), start("a", 12, 20)];
        for (what, from, to, explained) in [
            (What::Killed(11), 15, 15, true),
            (What::Killed(12), 15, 15, false),
            (What::Killed(11), 9, 9, false),
            (What::Killed(11), 21, 21, false),
            (What::Paused(11), 5, 12, true),
            (What::Paused(11), 5, 9, false),
            (What::Paused(12), 5, 18, true),
            (What::Paused(12), 11, 18, false),
            (What::Paused(12), 5, 14, false),
            (What::ServerAway, 19, 30, true),
            (What::ServerAway, 21, 30, false),
        ] {
            let judged = judge(&starts, &[trouble(what, from, to)]);
            let said = (judged.twice, judged.permitted, judged.unexplained.len());
            assert_eq!(
                said,
                (1, u64::from(explained), usize::from(!explained)),
                "{what:?} {from}"
            );
        }
    }

    #[test]
    fn a_worker_may_start_its_job_again_after_its_own_pause() {
        let starts = [start("a", 11, 10), start("a", 11, 16)];
        for (from, to, permitted) in [(11, 15, 1), (5, 9, 0), (17, 20, 0)] {
            let judged = judge(&starts, &[trouble(What::Paused(11), from, to)]);
            assert_eq!(judged.permitted, permitted, "paused at {from}");
        }
    }

    #[test]
    fn a_script_that_outlived_its_worker_for_a_moment_has_a_killed_one() {
        let starts = [start("a", ORPHANED, 10), start("a", 12, 20)];
        for (at, permitted) in [(9, 1), (11, 0), (4, 0)] {
            let judged = judge(&starts, &[trouble(What::Killed(1234), at, at)]);
            assert_eq!(judged.permitted, permitted, "killed at {at}");
        }
    }

    #[test]
    fn each_further_start_needs_its_own_reason() {
        let starts = [start("a", 11, 10), start("a", 12, 20), start("a", 13, 30)];
        let judged = judge(&starts, &[trouble(What::Killed(11), 15, 15)]);
        assert_eq!((judged.twice, judged.permitted), (2, 1));
        assert!(
            judged.unexplained[0].contains("by process 12"),
            "{judged:?}"
        );
    }

    #[test]
    fn a_line_that_is_none_is_told() {
        assert_eq!(starts("a 7 1000000000\n").unwrap(), [start("a", 7, 1)]);
        assert!(starts("a seven 1").is_err());
    }
}
