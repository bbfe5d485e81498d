//! The judge: compares the records outside of Redis with the results.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use super::TARGET;
use super::orders::{Account, Point};
use super::{LegacyError, OldList};

/// Result of a play.
#[derive(Clone, Debug)]
pub struct Report {
    /// Pattern of the old lists.
    pub list: OldList,
    /// Number of jobs that old and new clients submitted.
    pub submitted: usize,
    /// Jobs that were never started, or did not finish.
    pub lost: Vec<String>,
    /// Jobs that are still `dispatched` in the end.
    pub stuck: Vec<String>,
    /// Number of starts beyond the first of each job.
    pub run_twice: usize,
    /// Number of these that the kills explain.
    pub permitted: usize,
    /// Jobs that ran more often than the kills explain, or never on a worker for which they were meant.
    pub not_permitted: Vec<String>,
    /// Number of kills by point.
    pub kills: Vec<(&'static str, usize)>,
    /// Starts by old workers, by Meshwork's worker with the recording runner, and by the `meshwork` command.
    pub starts: [usize; 3],
    /// Number of replies that old clients received.
    pub replies: usize,
    /// Jobs of old clients that waited while only Meshwork ran jobs, and received no reply.
    pub unanswered: Vec<String>,
}

impl Report {
    /// Returns true if all promises hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        let bad = [&self.lost, &self.stuck, &self.not_permitted];
        bad.into_iter().all(Vec::is_empty) && self.unanswered.is_empty()
    }

    /// Compares the records. `status` has the final status of each job. Jobs in `waited` must have a reply; only
    /// workers named [`TARGET`] may run jobs in `targeted`.
    pub(super) fn count(
        list: OldList,
        dir: &Path,
        status: &HashMap<String, String>,
        waited: &[String],
        targeted: &[String],
    ) -> Result<Self, LegacyError> {
        let read = |account: Account| {
            let lines = account.read(dir);
            lines.map_err(LegacyError::io(account.name()))
        };
        let (mut runs, mut starts) = (HashMap::<String, usize>::new(), [0; 3]);
        let mut not_permitted = Vec::new();
        for line in read(Account::Starts)? {
            let (id, name) = line.split_once(' ').unwrap_or((&line, ""));
            if targeted.iter().any(|one| one == id) && !name.starts_with(TARGET) {
                not_permitted.push(format!("{id} (run by {name})"));
            }
            *runs.entry(id.to_owned()).or_default() += 1;
            starts[match name.split('-').next() {
                Some("old") | Some(TARGET) => 0,
                Some("ours") => 1,
                _ => 2,
            }] += 1;
        }
        let (kills, replies) = (read(Account::Kills)?, read(Account::Replies)?);
        let answered = |id: &&String| replies.contains(&format!("{id} {id}"));
        let at = |point: Point, id: &str| {
            let killed = kills.iter().filter(|line| {
                let mut words = line.split(' ');
                words.next() == Some(point.name()) && words.next() == Some(id)
            });
            killed.count()
        };
        let mut report = Self {
            list,
            submitted: status.len(),
            lost: Vec::new(),
            stuck: Vec::new(),
            run_twice: 0,
            permitted: 0,
            not_permitted,
            kills: Point::ALL
                .map(|point| {
                    let of = kills.iter().filter(|line| line.starts_with(point.name()));
                    (point.name(), of.count())
                })
                .into(),
            starts,
            replies: replies.len(),
            unanswered: waited.iter().filter(|id| !answered(id)).cloned().collect(),
        };
        for (id, status) in status {
            let ran = runs.get(id).copied().unwrap_or_default();
            if status == "dispatched" {
                report.stuck.push(id.clone());
            } else if ran == 0 || status != "finished" {
                report.lost.push(format!("{id} ({status}, {ran} runs)"));
            }
            let again = ran.saturating_sub(1);
            if again > 0 {
                let forced = again.min(at(Point::Run, id));
                report.run_twice += again;
                report.permitted += forced;
                if forced < again {
                    report.not_permitted.push(format!("{id} ({ran} runs)"));
                }
            }
        }
        Ok(report)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            list,
            submitted,
            run_twice,
            permitted,
            replies,
            ..
        } = self;
        let (lost, stuck) = (self.lost.len(), self.stuck.len());
        let [old, ours, command] = self.starts;
        write!(f, "{}: submitted {submitted}, lost {lost}, ", list.name())?;
        write!(f, "stuck in dispatched {stuck}, run twice {run_twice}, ")?;
        write!(f, "of these permitted {permitted}; starts by old workers ")?;
        write!(f, "{old}, by ours {ours}, by the command {command}; kills")?;
        for (point, kills) in &self.kills {
            write!(f, " {point} {kills}")?;
        }
        let missing = self.unanswered.len();
        write!(f, "; {replies} replies to old clients, {missing} missing")?;
        let bad = self
            .lost
            .iter()
            .chain(&self.stuck)
            .chain(&self.not_permitted);
        for one in bad.chain(&self.unanswered).take(20) {
            write!(f, "\n  {one}")?;
        }
        Ok(())
    }
}
