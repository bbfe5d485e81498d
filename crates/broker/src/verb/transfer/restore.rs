//! restore: stores the content of an export.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_model::export::{Bytes, StoredJob, StoredRecord};
use meshwork_model::job::field;
use meshwork_model::name::{BatchId, JobId};
use meshwork_model::time::parse_iso;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::{MAX_ITEMS, at_most};

impl Broker {
    /// Stores a setting, unless it exists. Returns the number of stored settings.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn import_setting(&self, name: &str, value: &Bytes) -> Result<usize, Error> {
        let mut set = redis::cmd("HSETNX");
        set.arg(self.keys.config()).arg(name).arg(&value.0);
        self.ask("restore", &set).await
    }

    /// Stores jobs whose ids do not exist. Those that wait in a queue are queued later, by [`Broker::import_queue`].
    /// Returns the number of stored jobs. The call may be repeated.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the call to the server fails.
    #[boxed]
    pub async fn import_jobs(&self, jobs: &[StoredJob]) -> Result<usize, Error> {
        at_most("restore", MAX_ITEMS, jobs.len())?;
        let mut call = self.restore_call("jobs");
        for job in jobs {
            call.push_key(self.keys.job_hash_key(&JobId::foreign(job.id.clone())));
            call.push_arg(&job.id);
            for score in [&job.delayed, &job.dead, &job.ended] {
                call.push_arg(score.as_deref().unwrap_or_default());
            }
            call.push_arg(job.fields.len() * 2);
            push_fields(&mut call, &job.fields);
            let created = job.fields.get(field::CREATED_AT);
            let created = created.and_then(|at| parse_iso(std::str::from_utf8(&at.0).ok()?));
            call.push_arg(created.map_or_else(String::new, |ms| ms.to_string()));
        }
        call.run(&self.conn).await
    }

    /// Queues imported jobs that are in no queue, in order. Returns their number.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the call to the server fails.
    #[boxed]
    pub async fn import_queue(&self, queue: &str, ids: &[String]) -> Result<usize, Error> {
        at_most("restore", MAX_ITEMS, ids.len())?;
        let mut call = self.restore_call("queue").key(queue);
        for id in ids {
            call.push_key(self.keys.job_hash_key(&JobId::foreign(id.clone())));
            call.push_arg(id);
        }
        call.run(&self.conn).await
    }

    /// Stores the open jobs of a batch that does not exist yet.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the call to the server fails.
    #[boxed]
    pub async fn import_members(&self, batch: &str, ids: &[String]) -> Result<usize, Error> {
        let batch = BatchId::foreign(batch.to_owned());
        self.import_ids("members", &batch, self.keys.members(&batch), ids)
            .await
    }

    /// Stores the first jobs of a batch that does not exist yet.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the call to the server fails.
    #[boxed]
    pub async fn import_joined(&self, batch: &str, ids: &[String]) -> Result<usize, Error> {
        let batch = BatchId::foreign(batch.to_owned());
        self.import_ids("joined", &batch, self.keys.joined(&batch), ids)
            .await
    }

    async fn import_ids(
        &self,
        kind: &str,
        batch: &BatchId,
        key: String,
        ids: &[String],
    ) -> Result<usize, Error> {
        at_most("restore", MAX_ITEMS, ids.len())?;
        let mut call = self.restore_call(kind).key(self.keys.batch(batch)).key(key);
        for id in ids {
            call.push_arg(id);
        }
        call.run(&self.conn).await
    }

    /// Stores a batch, unless it exists. Returns the number of stored batches.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn import_batch(&self, batch: &StoredRecord) -> Result<usize, Error> {
        let key = self.keys.batch(&BatchId::foreign(batch.name.clone()));
        let (set, score) = match &batch.ended {
            Some(ended) => (self.keys.batches_ended(), Some(ended)),
            None => (self.keys.batches_open(), batch.due.as_ref()),
        };
        self.import_record(key, set, batch, score).await
    }

    /// Stores a schedule, unless it exists. Returns the number of stored schedules.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn import_schedule(&self, schedule: &StoredRecord) -> Result<usize, Error> {
        let key = format!("{}{}", self.keys.schedule_prefix(), schedule.name);
        let set = self.keys.schedules();
        self.import_record(key, set, schedule, schedule.due.as_ref())
            .await
    }

    async fn import_record(
        &self,
        key: String,
        set: String,
        record: &StoredRecord,
        score: Option<&String>,
    ) -> Result<usize, Error> {
        let mut call = self
            .restore_call("record")
            .key(key)
            .key(set)
            .arg(&record.name);
        call.push_arg(score.map_or("", String::as_str));
        push_fields(&mut call, &record.fields);
        call.run(&self.conn).await
    }

    fn restore_call(&self, kind: &str) -> Call<'_> {
        let call = self.scripts.call(Verb::Restore);
        call.arg(self.clock.argument()).arg(&*self.who).arg(kind)
    }
}

fn push_fields(call: &mut Call<'_>, fields: &BTreeMap<String, Bytes>) {
    for (name, value) in fields {
        call.push_arg(name);
        call.push_arg(value.0.as_slice());
    }
}
