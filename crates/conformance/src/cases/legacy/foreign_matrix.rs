//! Hero's record with each field missing, of the wrong type, in the wrong encoding or with unknown values, for every
//! verb.

use meshwork_broker::{Cancelled, Completed, Deleted, Released, Retried, RunNow};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::options::exchange;
use crate::cases::harness::world::{WORKER, ids};
use crate::cases::maintenance::control::ask;
use crate::cases::orphans::track_orphans::osis;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    each_record_is_claimed_or_refused_by_name,
    each_record_that_runs_is_reported,
    each_record_is_looked_at,
    each_record_is_stopped_and_deleted,
    each_record_is_looked_after,
];

/// Id of the job.
const ID: &str = "j";

/// Fields that Hero writes.
const RECORD: [(&str, &[u8]); 17] = [
    ("id", b"j"),
    ("caller_id", b"alice"),
    ("worker_id", b"osis_runner_1"),
    ("actor_id", b"osis_runner_1"),
    ("context_id", b"home"),
    ("script", b"40 + 2"),
    ("script_type", b"OSIS"),
    ("timeout", b"30"),
    ("retries", b"1"),
    ("concurrent", b"false"),
    ("log_path", b"/var/log/j"),
    ("created_at", b"2025-07-29T10:00:00Z"),
    ("updated_at", b"2025-07-29T10:00:00Z"),
    ("status", b"dispatched"),
    ("env_vars", br#"{"A":"1"}"#),
    ("prerequisites", b"[]"),
    ("dependencies", b"[]"),
];

/// Values in place of a field's value, besides none at all: no text, and wrong types and words.
const ODD: [&[u8]; 9] = [
    b"",
    b"\xff\xfe",
    b"-1",
    b"1e400",
    b"true",
    b"null",
    b"{\"a\":[1]}",
    b"[1,",
    b"a b",
];

/// Expected state of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    /// The record is no job.
    None,
    /// The job runs.
    Job,
    /// The job waits for prerequisites.
    Waits,
    /// The job is a dead letter; its error contains this text.
    Dead(&'static str),
}

/// Returns the expected state.
fn is(field: &str, value: Option<&[u8]>) -> Is {
    match (field, value) {
        ("status", None) => Is::None,
        ("status", Some(b"")) => Is::Job,
        ("status", Some(_)) => Is::Dead("its status is `"),
        ("script", None | Some(b"")) => Is::Dead("it has no script"),
        ("prerequisites" | "dependencies", Some(value)) => match value {
            b"" | b"null" => Is::Job,
            // Plain ids. Bytes that are no text name a job as well.
            b"-1" | b"1e400" | b"true" | b"\xff\xfe" => Is::Waits,
            _ if field == "dependencies" => Is::Dead("`dependencies` is no list of job ids"),
            _ => Is::Dead("`prerequisites` is no list of job ids"),
        },
        _ => Is::Job,
    }
}

/// A record with one field changed.
struct Odd {
    field: &'static str,
    value: Option<&'static [u8]>,
    is: Is,
}

impl Odd {
    fn name(&self) -> String {
        let value = self.value.map(String::from_utf8_lossy);
        format!("{} = {value:?}", self.field)
    }

    /// Stores the record and pushes its id, into an empty store.
    async fn put(&self, world: &World) -> Outcome {
        world.raw::<()>(&["FLUSHDB"]).await?;
        let mut set = redis::cmd("HSET");
        set.arg(world.key(ID));
        for (name, value) in RECORD {
            match self.value {
                _ if name != self.field => set.arg(name).arg(value),
                Some(value) => set.arg(name).arg(value),
                None => &mut set,
            };
        }
        set.query_async::<()>(&mut world.conn().clone()).await?;
        world.push(ID).await
    }

    /// Compares values, and names the record in a failure.
    fn check<T: PartialEq + std::fmt::Debug>(&self, is: T, should: T) -> Outcome {
        same!((self.name(), is), (self.name(), should));
        Ok(())
    }
}

fn records() -> Vec<Odd> {
    let values = || ODD.into_iter().map(Some).chain([None]);
    let all = RECORD
        .iter()
        .flat_map(|(field, _)| values().map(|value| (*field, value)));
    all.map(|(field, value)| Odd {
        field,
        value,
        is: is(field, value),
    })
    .collect()
}

/// Returns the status of the record.
async fn status(world: &World) -> Result<Option<String>, Failure> {
    world.field(ID, "status").await
}

/// Returns the whole record.
async fn bytes(world: &World) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Failure> {
    world.raw(&["HGETALL", &world.key(ID)]).await
}

/// The result is in the record, and no other key is left.
async fn each_record_is_claimed_or_refused_by_name(world: &World) -> Outcome {
    let all = records();
    check!(all.len() == RECORD.len() * (ODD.len() + 1));
    for odd in all {
        odd.put(world).await?;
        let before = bytes(world).await?;
        let taken = world.claim(WORKER, &[world.queue()], 5).await?;
        odd.check(taken.jobs.len(), usize::from(odd.is == Is::Job))?;
        odd.check(taken.dropped, usize::from(odd.is != Is::Job))?;
        odd.check(world.waiting().await?.len(), 0)?;
        odd.check(world.lease(ID).await?.is_some(), odd.is == Is::Job)?;
        let dead: Option<f64> = world.raw(&["ZSCORE", &world.keys().dead(), ID]).await?;
        odd.check(dead.is_some(), matches!(odd.is, Is::Dead(_)))?;
        let replies: usize = world.raw(&["LLEN", &world.reply(ID)]).await?;
        match odd.is {
            Is::None => {
                odd.check(bytes(world).await?, before)?;
                odd.check(world.events().await?.len(), 1)?;
            }
            Is::Job => odd.check(status(world).await?.as_deref(), Some("started"))?,
            Is::Waits => odd.check(world.read(ID).await?.waiting, 1)?,
            Is::Dead(why) => {
                let error = world.read(ID).await?.error.unwrap_or_default();
                odd.check(error.contains(why), true)?;
                odd.check(replies, 1)?;
            }
        }
    }
    Ok(())
}

/// Every end of the run can be reported.
async fn each_record_that_runs_is_reported(world: &World) -> Outcome {
    for odd in records().into_iter().filter(|odd| odd.is == Is::Job) {
        for way in ["finish", "exchange", "fail", "release", "lose"] {
            odd.put(world).await?;
            let claimed = world.take_one().await?;
            let held = std::slice::from_ref(&claimed);
            odd.check(world.renew(WORKER, held).await?.len(), 0)?;
            let should = match way {
                "finish" => {
                    odd.check(world.finish(&claimed, "42").await?, Completed::Finished)?;
                    "finished"
                }
                "fail" => {
                    world.fail(&claimed, FailureKind::Permanent).await?;
                    "error"
                }
                "release" => {
                    odd.check(world.broker.release(&claimed).await?, Released::Released)?;
                    "dispatched"
                }
                "lose" => {
                    odd.check(world.lose_all().await?.requeued, vec![ID.to_owned()])?;
                    "dispatched"
                }
                _ => {
                    let said = exchange(world, &[&claimed], 1).await?;
                    odd.check(said.finished, vec![Completed::Finished])?;
                    "finished"
                }
            };
            odd.check(status(world).await?.as_deref(), Some(should))?;
            odd.check(world.lease(ID).await?, None)?;
            let again = ids(&world.take(5).await?).len();
            odd.check(again, usize::from(should == "dispatched"))?;
        }
    }
    Ok(())
}

/// A read changes nothing, and a hash that is no job is not returned.
async fn each_record_is_looked_at(world: &World) -> Outcome {
    let id = [JobId::foreign(ID.to_owned())];
    for odd in records() {
        odd.put(world).await?;
        let before = world.all().await?;
        let there = odd.is != Is::None;
        odd.check(world.broker.inspect(&id[0]).await?.is_some(), there)?;
        odd.check(world.broker.summaries(&id).await?[0].is_some(), there)?;
        odd.check(world.broker.outcomes(&id).await?[0].is_some(), there)?;
        odd.check(world.broker.list(0).await?.jobs.len(), usize::from(there))?;
        world.broker.statuses(&id).await?;
        world.unchanged(&before).await?;
    }
    Ok(())
}

/// Any client can cancel and delete the job.
async fn each_record_is_stopped_and_deleted(world: &World) -> Outcome {
    for odd in records() {
        let there = odd.is != Is::None;
        let job = Job::from_fields(ID, [("script_type".to_owned(), b"osis".to_vec())]);
        for force in [false, true] {
            odd.put(world).await?;
            let said = world.broker.cancel(&job, "stop", force).await?;
            let should = if there {
                Cancelled::Cancelled
            } else {
                Cancelled::Missing
            };
            odd.check(said, should)?;
            odd.check(world.field(ID, "error").await?.is_some(), there)?;
            odd.check(world.waiting().await?.len(), usize::from(!there))?;
        }
        let queued = if there {
            Retried::Queued
        } else {
            Retried::Missing
        };
        odd.check(world.broker.retry(&job).await?, queued)?;
        odd.put(world).await?;
        let unfinished = if there {
            Retried::Unfinished
        } else {
            Retried::Missing
        };
        odd.check(world.broker.retry(&job).await?, unfinished)?;
        let ready = if there {
            RunNow::Ready
        } else {
            RunNow::Missing
        };
        odd.check(world.broker.run_now(&job).await?, ready)?;
        let deleted = if there {
            Deleted::Deleted
        } else {
            Deleted::Missing
        };
        odd.check(world.broker.delete(&job).await?, deleted)?;
        let left: usize = world.raw(&["EXISTS", &world.key(ID)]).await?;
        odd.check(left, usize::from(!there))?;
    }
    Ok(())
}

/// Maintenance handles each record without effects on other jobs, and none of its calls fails.
async fn each_record_is_looked_after(world: &World) -> Outcome {
    let control = world.keys().control_queue_type(&"osis".parse()?);
    for odd in records() {
        odd.put(world).await?;
        let there = odd.is != Is::None;
        world.broker.track_orphans(&[osis(ID)?]).await?;
        for set in [
            world.keys().watch(),
            world.keys().delayed(),
            world.keys().ended(),
        ] {
            world.raw::<()>(&["ZADD", &set, "1", ID]).await?;
        }
        world.broker.check_orphans().await?;
        world.broker.promote().await?;
        world.broker.resolve_dependents().await?;
        world.broker.reclaim().await?;
        world.raw::<()>(&["LPUSH", &control, ID]).await?;
        ask(world, "w9", &[]).await?;
        odd.check(status(world).await?.as_deref() == Some("error"), there)?;
        let left: usize = world.raw(&["EXISTS", &world.key(ID)]).await?;
        odd.check(left, 1)?;
    }
    Ok(())
}
