//! export_bananas: exports jobs that were imported from Bananas.

use meshwork_macros::boxed;
use meshwork_model::bananas::{Origin, Record, Return, Stands};
use meshwork_model::job::{Job, field, text};
use meshwork_model::keys::bananas::BananasKeys as Keys;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use super::import::MAX_OVER;
use super::push_draft;
use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{Fields, at_most, word};

/// An imported job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportItem {
    /// Its id.
    pub id: JobId,
    /// Number in the order of the import.
    pub number: u64,
    /// Origin and original record; `None` if they cannot be read.
    pub was: Option<(Origin, Record)>,
    /// State of the job; `None` if it runs, or has ended and is not a dead letter.
    pub stands: Option<Stands>,
    /// True if a worker runs the job.
    pub runs: bool,
    job: Job,
}

/// The result of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exported {
    /// The job is in Bananas again, and deleted here.
    Given,
    /// The job does not exist here any more.
    Gone,
    /// The job stays, because a worker runs it.
    Runs,
    /// The job stays, because it has changed since it was read.
    Changed,
    /// The job stays, because other jobs wait for it.
    Awaited,
    /// The job stays, because a key in Bananas has another type.
    Odd,
}

/// Fields that are read of each job.
const READ: [&str; 7] = [
    field::STATUS,
    field::ATTEMPT,
    field::ERROR,
    field::DEAD,
    field::QUEUE,
    field::BANANAS,
    field::RECORD,
];

impl Broker {
    /// Returns the number of imported jobs. Ended ones count until they are deleted.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn count_imported(&self) -> Result<usize, Error> {
        let mut count = redis::cmd("ZCARD");
        count.arg(self.keys.taken_over());
        self.ask("export_bananas", &count).await
    }

    /// Returns up to [`MAX_OVER`] imported jobs after a number, in the order of the import.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn imported(&self, behind: u64) -> Result<Vec<ExportItem>, Error> {
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range
            .arg(self.keys.taken_over())
            .arg(format!("({behind}"))
            .arg("+inf");
        range.arg("WITHSCORES").arg("LIMIT").arg(0).arg(MAX_OVER);
        let found: Vec<(Vec<u8>, f64)> = self.ask("export_bananas", &range).await?;
        let (mut records, mut times) = (redis::pipe(), redis::pipe());
        for (id, _) in &found {
            let key = self.keys.job_hash_key(&JobId::foreign(text(id.clone())));
            records.cmd("HMGET").arg(key).arg(&READ);
            times.cmd("ZSCORE").arg(self.keys.delayed()).arg(id);
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let conn = &mut self.conn.clone();
        let records: Vec<Vec<Option<Vec<u8>>>> = records.query_async(conn).await.map_err(failed)?;
        let times: Vec<Option<f64>> = times.query_async(conn).await.map_err(failed)?;
        let rows = found.into_iter().zip(records).zip(times);
        let read = rows.map(|(((id, number), values), due)| {
            over(JobId::foreign(text(id)), number as u64, &values, due)
        });
        Ok(read.collect())
    }

    /// Exports jobs to Bananas, each in one step: deletes the job here, and adds it there in the given form.
    /// Repeating the call changes nothing.
    ///
    /// # Errors
    /// There are more than [`MAX_OVER`], or the server refuses the call.
    #[boxed]
    pub async fn export(
        &self,
        keys: &Keys,
        jobs: &[(&ExportItem, Return)],
    ) -> Result<Vec<Exported>, Error> {
        at_most("export_bananas", MAX_OVER, jobs.len())?;
        let mut call = self.scripts.call(Verb::ExportBananas);
        call.push_arg(self.clock.argument());
        call.push_arg(&*self.who);
        for (over, to) in jobs {
            call.push_key(self.keys.job_hash_key(&over.id));
            call.push_key(self.queue_of(&over.job));
            call.push_key(keys.job(over.id.as_str()));
            call.push_key(to.place.key(keys));
            call.push_arg(over.id.as_str());
            call.push_arg(&over.job.status);
            call.push_arg(over.job.attempt);
            let due = over.stands.as_ref().and_then(|stands| stands.due_ms);
            call.push_arg(due.map(|ms| ms.to_string()).unwrap_or_default());
            call.push_arg(to.place.kind());
            call.push_arg(&to.time);
            push_draft(&mut call, Some(&to.record));
        }
        let answers: Vec<String> = call.run(&self.conn).await?;
        let known = [
            ("given", Exported::Given),
            ("gone", Exported::Gone),
            ("runs", Exported::Runs),
            ("changed", Exported::Changed),
            ("awaited", Exported::Awaited),
            ("odd", Exported::Odd),
        ];
        let answers = answers.into_iter();
        answers
            .map(|answer| word("export_bananas", answer, &known))
            .collect()
    }
}

fn over(id: JobId, number: u64, values: &[Option<Vec<u8>>], due: Option<f64>) -> ExportItem {
    let value = |name: &str| {
        let at = READ.iter().position(|read| *read == name)?;
        values.get(at)?.clone()
    };
    let origin = value(field::BANANAS).and_then(|origin| text(origin).parse().ok());
    let record = value(field::RECORD).and_then(|record| Record::read(&record).ok());
    let fields: Fields = READ
        .into_iter()
        .filter_map(|name| Some((name.into(), value(name)?)))
        .collect();
    let fields = fields.into_iter().map(|(name, value)| (text(name), value));
    let job = Job::from_fields(id.as_str(), fields);
    let status = job.status();
    let dead = status == Some(Status::Error) && job.dead.is_some();
    let waits = status == Some(Status::Dispatched);
    let stands = (dead || waits).then(|| Stands {
        attempts: job.attempt,
        error: job.error.clone(),
        due_ms: due.map(|ms| ms as u64),
        dead,
    });
    ExportItem {
        id,
        number,
        was: origin.zip(record),
        stands,
        runs: status == Some(Status::Started),
        job,
    }
}

fn failed(source: redis::RedisError) -> Error {
    Error::Call {
        verb: "taken_over",
        source,
    }
}
