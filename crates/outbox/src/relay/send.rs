//! Enqueues the jobs of held rows, and sorts the answers.

use std::collections::HashMap;

use meshwork::{Enqueued, JobId, JobRequest};
use meshwork_model::job::NewJob;
use meshwork_model::name::NameError;
use meshwork_model::spec::JobSpec;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Relay;
use crate::database::{Held, Sent};
use crate::{Database, Error};

/// Attempts after which a row is set aside whose prerequisite does not exist. Its row may be committed later.
const PREREQUISITE_ATTEMPTS: i32 = 10;
/// Pause before a second attempt for a row that the store refused, in milliseconds. It doubles with each attempt.
const PAUSE_MS: i64 = 1000;
/// Longest such pause, in milliseconds.
const MAX_PAUSE_MS: i64 = 60_000;

/// Returns the pause after this number of attempts.
fn pause(attempts: i32) -> i64 {
    let doublings = attempts.saturating_sub(1).clamp(0, 16);
    (PAUSE_MS << doublings).min(MAX_PAUSE_MS)
}

impl<D: Database> Relay<D> {
    /// Enqueues the jobs. An error means that some may be stored.
    pub(crate) async fn send(&self, mut held: Vec<Held>) -> Result<Sent, Error> {
        let mut sent = Sent::default();
        self.resolve_earlier(&mut held, &mut sent).await?;
        let mut jobs = Vec::with_capacity(held.len());
        for Held { claimed, job } in held {
            match read(&claimed.id, &job) {
                Ok(job) => jobs.push((job, claimed.attempts.saturating_add(1))),
                Err(error) => sent.refuse(&claimed.id, error, None, false),
            }
        }
        let (all, attempts): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        let broker = self.client.broker();
        match broker.enqueue(&all).await {
            Ok(answers) => {
                for ((job, attempts), answer) in all.iter().zip(attempts).zip(answers) {
                    self.sort(job, attempts, answer, &mut sent).await?;
                }
            }
            Err(error) if error.is_temporary() => return Err(meshwork::Error::from(error).into()),
            // One of the jobs may be the cause, and must not hold up the others.
            Err(_) => {
                for (job, attempts) in all.iter().zip(attempts) {
                    match broker.enqueue(std::slice::from_ref(job)).await {
                        Ok(answers) => {
                            for answer in answers {
                                self.sort(job, attempts, answer, &mut sent).await?;
                            }
                        }
                        Err(error) if error.is_temporary() => {
                            return Err(meshwork::Error::from(error).into());
                        }
                        Err(error) => {
                            let (id, pause) = (job.id.as_str(), pause(attempts));
                            sent.refuse(id, error.to_string(), Some(pause), true);
                        }
                    }
                }
            }
        }
        Ok(sent)
    }

    /// Takes out the rows that an earlier attempt may have stored, if retention may have deleted their jobs since. A row
    /// whose job exists is stored; each other is set aside, since a second job could be added.
    async fn resolve_earlier(&self, held: &mut Vec<Held>, sent: &mut Sent) -> Result<(), Error> {
        if held.iter().all(|row| row.claimed.earlier_ms.is_none()) {
            return Ok(());
        }
        // Read again, since this decides.
        let retained = self.retained().await?;
        let is_safe = |row: &mut Held| {
            let earlier = row.claimed.earlier_ms;
            earlier.is_none_or(|earlier| retained.reaches(earlier))
        };
        let doubtful: Vec<_> = held.extract_if(.., |row| !is_safe(row)).collect();
        let ids = doubtful
            .iter()
            .map(|row| JobId::foreign(row.claimed.id.clone()));
        let ids: Vec<_> = ids.collect();
        let found = self.client.broker().summaries(&ids).await;
        let found = found.map_err(meshwork::Error::from)?;
        for (row, found) in doubtful.into_iter().zip(found) {
            let id = row.claimed.id;
            match found {
                Some(_) => sent.stored.push(id),
                None => sent.refuse(&id, UNCERTAIN.to_owned(), None, true),
            }
        }
        Ok(())
    }

    /// Sorts the answer about one job.
    async fn sort(
        &self,
        job: &NewJob,
        attempts: i32,
        answer: Enqueued,
        sent: &mut Sent,
    ) -> Result<(), Error> {
        let Some(refusal) = self.client.rejection(job, &answer).await? else {
            sent.stored.push(job.id.to_string());
            return Ok(());
        };
        let passes = match answer {
            Enqueued::Full | Enqueued::Draining => true,
            Enqueued::Unknown(_) => attempts < PREREQUISITE_ATTEMPTS,
            _ => false,
        };
        let pause = passes.then(|| pause(attempts));
        sent.refuse(job.id.as_str(), refusal.to_string(), pause, false);
        Ok(())
    }
}

/// Error of a row whose job was perhaps stored, has perhaps run, and was perhaps deleted by retention.
const UNCERTAIN: &str = "an earlier attempt may have enqueued this job, and the store no longer has jobs of that time: \
                         look for its effect, then `meshwork outbox retry` or `meshwork outbox delete` it";

/// The job of a row as `meshwork job schema` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Specified {
    spec: JobSpec,
}

/// Reads the job of a row.
pub(crate) fn read(id: &str, text: &str) -> Result<NewJob, String> {
    let id: JobId = id.parse().map_err(|error: NameError| error.to_string())?;
    let fields = serde_json::from_str::<HashMap<&str, IgnoredAny>>(text);
    if fields.is_ok_and(|fields| fields.contains_key("spec")) {
        return specified(id, text);
    }
    let job = NewJob::from_json(id, text).map_err(|error| error.to_string())?;
    job.check().map_err(|error| error.to_string())?;
    Ok(job)
}

fn specified(id: JobId, text: &str) -> Result<NewJob, String> {
    let Specified { spec } = meshwork_model::read::from_json(text.as_bytes())?;
    let request = JobRequest::from_spec(spec).map_err(|error| format!("spec.{error}"))?;
    request.id(id).build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use meshwork_model::job::When;

    use super::*;

    #[test]
    fn a_row_may_have_a_job_as_the_schema_describes_it() {
        let row = r#"{"spec": {"type": "mail", "payload": {"to": "ada"}, "retries": 3, "timeout": "90s", "delay": "1m"}}"#;
        let job = read("a", row).unwrap();
        assert_eq!(
            (job.id.as_str(), job.script.as_str()),
            ("a", r#"{"to": "ada"}"#)
        );
        assert_eq!(
            (job.retries, job.timeout, job.when),
            (3, 90, Some(When::In(60_000)))
        );
        for (row, fault) in [
            (r#"{"spec": {"payload": 1}}"#, "spec.type"),
            (
                r#"{"spec": {"type": "mail", "payload": 1, "retry": 3}}"#,
                "retries",
            ),
            (
                r#"{"spec": {"type": "mail", "payload": 1}, "type": "mail"}"#,
                "type",
            ),
            (
                r#"{"spec": {"type": "mail", "payload": 1, "at": "soon"}}"#,
                "spec.at",
            ),
        ] {
            let refused = read("a", row).unwrap_err();
            assert!(refused.contains(fault), "{row}: {refused}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses: Vec<_> = [1, 2, 3, 6, 7, i32::MAX].map(pause).to_vec();
        assert_eq!(pauses, [1000, 2000, 4000, 32_000, 60_000, 60_000]);
    }
}
