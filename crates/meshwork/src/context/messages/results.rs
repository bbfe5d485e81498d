//! Results of the jobs of a message, within the limit of the field that brings them to the sender.

use std::collections::HashMap;

use meshwork_model::context::limits::MAX_FIELD;
use meshwork_model::context::{ContextJob, field};
use meshwork_model::secret::EnvVars;
use meshwork_model::state::Status;

use crate::context::messages::message::MessageView;
use crate::context::{ContextError, ContextHandle};

/// Fields of an ended job.
#[derive(Default)]
struct Outcome {
    status: Vec<u8>,
    error: Vec<u8>,
    result: Vec<u8>,
    /// True if the result and the error were too long to be read.
    too_large: bool,
}

fn is_there(outcome: &Outcome) -> bool {
    !outcome.status.is_empty() || outcome.too_large
}

fn replace(job: &mut ContextJob, name: &str) {
    job.result.clear();
    job.prerequisites.clear();
    job.dependends.clear();
    job.status = Status::Error;
    job.error = Some(format!(
        "result too large for a message: the record {name} has it"
    ));
}

fn length(job: &ContextJob) -> usize {
    // With the comma after it.
    serde_json::to_vec(job).map_or(0, |json| json.len() + 1)
}

/// Replaces the largest results until all fit into a field of `most` bytes. `names` are the records that have them. The
/// most jobs without results fit.
fn fit(jobs: &mut [ContextJob], names: &[Option<String>], most: usize) {
    let mut lengths: Vec<_> = jobs.iter().map(length).enumerate().collect();
    // With the brackets.
    let mut total = lengths.iter().map(|(_, length)| length).sum::<usize>() + 2;
    lengths.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    for (at, before) in lengths {
        if total <= most {
            return;
        }
        let name = names.get(at).and_then(Option::as_deref).unwrap_or_default();
        replace(&mut jobs[at], name);
        total = total + length(&jobs[at]) - before;
    }
}

impl ContextHandle {
    /// Returns the keys of the jobs that a message became, in its order; `None` for a text that names no job of this
    /// context. A plain client may write the list.
    pub(crate) fn jobs_of_message(&self, view: &MessageView) -> Vec<Option<String>> {
        let jobs = (0..view.message.job.len()).map(|at| view.materialised.get(at));
        jobs.map(|job| {
            job.filter(|job| self.keys().parse_job(job.as_bytes()).is_ok())
                .cloned()
        })
        .collect()
    }

    /// Returns the results of a message's jobs, with the sender's numbers, in at most `most` bytes of JSON. One that is too
    /// large is replaced by an error that names its record.
    pub(crate) async fn results(
        &self,
        view: &MessageView,
        names: Vec<Option<String>>,
        most: usize,
    ) -> Result<Vec<ContextJob>, ContextError> {
        let known: Vec<_> = names.iter().flatten().cloned().collect();
        let mut outcomes = self.outcomes(&known).await?;
        let ended = view.message.job.iter().zip(&names).map(|(sent, name)| {
            let outcome = name.as_ref().and_then(|name| outcomes.remove(name));
            self.result(
                sent,
                name.as_deref().unwrap_or_default(),
                outcome.filter(is_there),
            )
        });
        let mut jobs: Vec<_> = ended.collect();
        fit(&mut jobs, &names, most);
        Ok(jobs)
    }

    fn result(&self, sent: &ContextJob, name: &str, outcome: Option<Outcome>) -> ContextJob {
        // The script is known where it came from.
        let mut job = ContextJob {
            script: String::new(),
            env_vars: EnvVars::default(),
            status: Status::Error,
            ..sent.clone()
        };
        let Some(outcome) = outcome else {
            job.error = Some("the job was deleted".to_owned());
            return job;
        };
        if outcome.too_large {
            replace(&mut job, name);
            return job;
        }
        let fields = [
            (field::STATUS, outcome.status),
            (field::RESULT, outcome.result),
            (field::ERROR, outcome.error),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        match ContextJob::from_fields(self.id(), sent.key(), fields) {
            Ok(ran) => (job.status, job.result, job.error) = (ran.status, ran.result, ran.error),
            Err(error) => job.error = Some(error.to_string()),
        }
        job
    }

    /// Reads the ends of jobs, at most as much as fits into a field: the shortest results first.
    async fn outcomes(&self, names: &[String]) -> Result<HashMap<String, Outcome>, ContextError> {
        let (store, database) = (self.store(), self.database());
        let lengths = store
            .lengths(database, names, (field::RESULT, field::ERROR))
            .await?;
        let mut order: Vec<_> = names.iter().zip(lengths).collect();
        order.sort_by_key(|(_, length)| *length);
        let (mut left, mut short, mut all) = (MAX_FIELD, Vec::new(), HashMap::new());
        for (name, length) in order {
            match left.checked_sub(length) {
                Some(rest) => {
                    left = rest;
                    short.push(name.clone());
                }
                None => {
                    let too_large = true;
                    let outcome = Outcome {
                        too_large,
                        ..Outcome::default()
                    };
                    all.insert(name.clone(), outcome);
                }
            }
        }
        let states = store
            .pairs(database, &short, (field::STATUS, field::ERROR))
            .await?;
        let results = store
            .pairs(database, &short, (field::RESULT, field::ID))
            .await?;
        for ((name, (status, error)), (result, _)) in short.into_iter().zip(states).zip(results) {
            let outcome = Outcome {
                status,
                error,
                result,
                too_large: false,
            };
            all.insert(name, outcome);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use meshwork_model::keys::context::{ContextId, JobKey};

    use super::*;

    fn job(id: u32, result: usize) -> ContextJob {
        let context = ContextId::new(7).unwrap();
        let mut job = ContextJob::new(context, JobKey::new(1, id), "v".parse().unwrap(), "", 0);
        job.status = Status::Finished;
        job.result.insert("result".to_owned(), "x".repeat(result));
        job
    }

    #[test]
    fn the_largest_results_are_replaced_until_the_rest_fits() {
        let names: Vec<_> = (1..4).map(|id| Some(format!("job:1:{id}"))).collect();
        let all = || vec![job(1, 2_000), job(2, 5_000), job(3, 3_000)];
        let finished = |most| {
            let mut jobs = all();
            fit(&mut jobs, &names, most);
            assert!(serde_json::to_vec(&jobs).unwrap().len() <= most);
            let finished = jobs.iter().map(|job| job.status == Status::Finished);
            (finished.collect::<Vec<_>>(), jobs)
        };
        let whole = serde_json::to_vec(&all()).unwrap().len();
        assert_eq!(finished(whole + 1).0, [true, true, true]);
        let (left, jobs) = finished(whole - 1_000);
        assert_eq!(left, [true, false, true]);
        let error = jobs[1].error.as_deref().unwrap();
        assert!(
            error.starts_with("result too large") && error.contains("job:1:2"),
            "{error}"
        );
        assert!(jobs[1].result.is_empty());
        assert_eq!(finished(whole - 6_000).0, [true, false, false]);
    }
}
