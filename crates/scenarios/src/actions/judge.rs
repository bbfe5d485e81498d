//! The judge: compares the records of this program, of its workers and of the server's traffic.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use super::asks::Outcomes;
use super::call::correlation;
use super::wire::Answers;
use super::work::starts;
use super::{ActionsError, Plan};
use meshwork_test_servers::account;

/// Result of a play.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Dialect of the wire format.
    pub dialect: &'static str,
    /// Number of calls.
    pub calls: usize,
    /// Calls without an answer, or with a wrong one.
    pub lost: Vec<String>,
    /// Answers that came more than once, or that belong to no call.
    pub twice: Vec<String>,
    /// Calls that ran more often than the kills explain, or never.
    pub unexplained: Vec<String>,
    /// Keys and entries that remain in the end.
    pub left: Vec<String>,
    /// Number of kills.
    pub kills: usize,
    /// Number of times that a handler was started for these calls.
    pub starts: usize,
    /// Starts in workers that were killed later, of calls that were started again.
    pub again: usize,
    /// Number of answers to calls that handlers made.
    pub inner: usize,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Report {
    /// Returns true if no call was lost, repeated without a kill, or left anything behind.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults().iter().all(|(_, all)| all.is_empty()) && self.again >= self.kills
    }

    fn faults(&self) -> [(&'static str, &Vec<String>); 4] {
        [
            ("lost", &self.lost),
            ("answered twice or never", &self.twice),
            ("unexplained", &self.unexplained),
            ("left behind", &self.left),
        ]
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::json!({
            "dialect": self.dialect,
            "calls": self.calls,
            "lost": self.lost,
            "twice": self.twice,
            "unexplained": self.unexplained,
            "left": self.left,
            "kills": self.kills,
            "starts": self.starts,
            "again": self.again,
            "inner": self.inner,
            "seconds": self.seconds,
            "holds": self.holds(),
        })
        .to_string()
    }
}

/// Compares the records. `left` lists what remains in the end, `killed` the killed workers.
pub(super) fn count(
    plan: &Plan,
    dir: &Path,
    outcomes: &Outcomes,
    answers: &Answers,
    killed: &HashSet<String>,
    left: Vec<String>,
) -> Result<Report, ActionsError> {
    let mut report = Report {
        dialect: plan.dialect.as_str(),
        calls: outcomes.len(),
        kills: killed.len(),
        left,
        ..Report::default()
    };
    let mut starts_of: HashMap<String, Vec<String>> = HashMap::new();
    for line in account::read(&starts(dir))? {
        let (call, who) = line.split_once(' ').unwrap_or((&line, ""));
        let of = starts_of.entry(call.to_owned()).or_default();
        of.push(who.to_owned());
    }
    let mut called = HashSet::new();
    for number in 0..plan.calls {
        let (call, id) = (number.to_string(), correlation(number));
        match outcomes.get(&number) {
            Some(Ok(())) => {}
            Some(Err(why)) => report.lost.push(format!("{call}: {why}")),
            None => report.lost.push(format!("{call}: never called")),
        }
        let replies = answers.get(&id).copied().unwrap_or_default();
        if replies != 1 {
            report.twice.push(format!("{call}: {replies} answers"));
        }
        called.insert(id);
        let whos = starts_of.remove(&call).unwrap_or_default();
        let survived = whos.iter().filter(|who| !killed.contains(*who)).count();
        report.starts += whos.len();
        report.again += whos.len().saturating_sub(1);
        if whos.is_empty() || survived > 1 {
            report.unexplained.push(format!("{call}: {whos:?}"));
        }
    }
    for (id, count) in answers.iter().filter(|(id, _)| !called.contains(*id)) {
        report.inner += 1;
        if *count > 1 {
            report.twice.push(format!("{id}: {count} answers"));
        }
    }
    Ok(report)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: calls {}", self.dialect, self.calls)?;
        for (what, all) in self.faults() {
            write!(f, ", {what} {}", all.len())?;
        }
        let Self {
            kills,
            starts,
            again,
            inner,
            seconds,
            ..
        } = self;
        write!(f, "; {kills} kills, {starts} starts, of these {again} ")?;
        write!(f, "again; {inner} calls by handlers; {seconds:.1} s")?;
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
    use meshwork_model::keys::nooble::Dialect;

    use super::*;

    /// Judges two calls, the first of which began in a worker that was killed.
    fn judged(change: impl Fn(&mut Outcomes, &mut Answers, &mut Vec<&str>)) -> Report {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = Plan {
            actions: "actions".into(),
            dialect: Dialect::Lists,
            calls: 2,
            kills: 1,
            seed: 0,
        };
        let mut outcomes: Outcomes = [(0, Ok(())), (1, Ok(()))].into();
        let mut answers: Answers = [(correlation(0), 1), (correlation(1), 1)].into();
        answers.insert("inner".to_owned(), 1);
        let mut lines = vec!["0 a", "1 b", "0 b"];
        change(&mut outcomes, &mut answers, &mut lines);
        for line in lines {
            account::add(&starts(dir.path()), line).expect("a line");
        }
        let killed = HashSet::from(["a".to_owned()]);
        count(&plan, dir.path(), &outcomes, &answers, &killed, Vec::new()).expect("a count")
    }

    #[test]
    fn what_is_not_promised_is_found() {
        let report = judged(|_, _, _| {});
        assert!(report.holds(), "{report}");
        assert_eq!((report.starts, report.again, report.inner), (3, 1, 1));
        let lost = judged(|outcomes, _, _| drop(outcomes.remove(&1)));
        assert_eq!(lost.lost.len(), 1);
        let wrong = judged(|outcomes, _, _| drop(outcomes.insert(1, Err("late".to_owned()))));
        assert_eq!(wrong.lost, ["1: late"]);
        let twice = judged(|_, answers, _| {
            answers.insert("inner".to_owned(), 2);
        });
        assert_eq!(twice.twice.len(), 1);
        let never = judged(|_, answers, _| {
            answers.remove(&correlation(0));
        });
        assert_eq!(never.twice, ["0: 0 answers"]);
        let ran_twice = judged(|_, _, lines| lines.push("1 c"));
        assert_eq!(ran_twice.unexplained.len(), 1);
        let never_ran = judged(|_, _, lines| {
            lines.remove(1);
        });
        assert_eq!(never_ran.unexplained.len(), 1);
        let no_kill_hit = judged(|_, _, lines| {
            lines.remove(0);
        });
        assert!(!no_kill_hit.holds());
    }
}
