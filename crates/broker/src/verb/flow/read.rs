//! Reads flows, large hashes page by page, and deletes what ended flows leave.

use meshwork_macros::boxed;
use std::collections::HashMap;

use meshwork_model::job::{Job, text};
use meshwork_model::keys::context::{FlowId, JobKey};
use meshwork_model::name::JobId;

use super::{Flows, MAX_MOVES};
use crate::verb::at_most;
use crate::{Deleted, Error};

/// Fields of a flow's record.
pub type FlowFields = HashMap<String, String>;
/// States of a flow's jobs by place in the plan, or their numbers by name.
pub type Nodes = HashMap<String, String>;

impl Flows {
    async fn hash(&self, key: &str) -> Result<HashMap<String, String>, Error> {
        let mut cmd = redis::cmd("HGETALL");
        cmd.arg(key);
        let fields: Vec<(Vec<u8>, Vec<u8>)> = self.broker.ask("flow_read", &cmd).await?;
        let fields = fields.into_iter();
        Ok(fields
            .map(|(name, value)| (text(name), text(value)))
            .collect())
    }

    /// Returns the record of a flow; empty if there is none.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn record(&self, id: FlowId) -> Result<FlowFields, Error> {
        self.hash(&self.keys.flow(id)).await
    }

    /// Returns the plan of a flow as JSON.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn plan(&self, id: FlowId) -> Result<Option<String>, Error> {
        let mut cmd = redis::cmd("GET");
        cmd.arg(self.part(id, "plan"));
        self.broker.ask("flow_read", &cmd).await
    }

    /// Returns the states of the jobs, by place.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn nodes(&self, id: FlowId) -> Result<Nodes, Error> {
        self.hash(&self.part(id, "nodes")).await
    }

    /// Returns the numbers of the jobs, by name.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn names(&self, id: FlowId) -> Result<Nodes, Error> {
        self.hash(&self.part(id, "names")).await
    }

    /// Returns some fields of each job, for at most [`MAX_MOVES`] jobs.
    ///
    /// # Errors
    /// There are more, or the call to the server fails.
    #[boxed]
    pub async fn job_fields(
        &self,
        jobs: &[JobKey],
        fields: &[&str],
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, Error> {
        let keys = jobs.iter().map(|job| self.keys.job(*job)).collect();
        self.fields(keys, fields).await
    }

    async fn fields(
        &self,
        keys: Vec<String>,
        fields: &[&str],
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, Error> {
        at_most("flow_read", MAX_MOVES, keys.len())?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for key in keys {
            pipe.cmd("HMGET").arg(key).arg(fields);
        }
        self.broker.ask_all("flow_read", &pipe).await
    }

    /// Returns at most `most` flows, the latest submission first.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn list(&self, from: usize, most: usize) -> Result<Vec<FlowId>, Error> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.keys.flows()).arg(from);
        cmd.arg(from + most.max(1) - 1).arg("REV");
        let ids: Vec<String> = self.broker.ask("flow_read", &cmd).await?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Returns some fields of each flow, for at most [`MAX_MOVES`] flows, in one round trip; `None` for a key of another type.
    ///
    /// # Errors
    /// There are more, or the call to the server fails.
    #[boxed]
    pub async fn flow_fields(
        &self,
        ids: &[FlowId],
        fields: &[&str],
    ) -> Result<Vec<Option<Vec<Option<Vec<u8>>>>>, Error> {
        at_most("flow_read", MAX_MOVES, ids.len())?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for id in ids {
            pipe.cmd("HMGET").arg(self.keys.flow(*id)).arg(fields);
        }
        let failed = |source| Error::Call {
            verb: "flow_read",
            source,
        };
        let read: Vec<redis::RedisResult<_>> = pipe
            .query_async(&mut self.broker.conn.clone())
            .await
            .map_err(failed)?;
        let one = |read: redis::RedisResult<_>| match read {
            Err(error) if error.code() == Some("WRONGTYPE") => Ok(None),
            read => read.map(Some).map_err(failed),
        };
        read.into_iter().map(one).collect()
    }

    /// Deletes a flow whose jobs are deleted.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn forget(&self, id: FlowId) -> Result<(), Error> {
        let mut pipe = redis::pipe();
        for set in [self.keys.flows_due(), self.keys.flows()] {
            pipe.cmd("ZREM").arg(set).arg(id.0).ignore();
        }
        let parts = ["plan", "names", "nodes"].map(|part| self.part(id, part));
        pipe.cmd("DEL").arg(&parts).arg(self.keys.flow(id)).ignore();
        let done: redis::RedisResult<()> = pipe.query_async(&mut self.broker.conn.clone()).await;
        done.map_err(|source| Error::Call {
            verb: "flow_delete",
            source,
        })
    }

    /// Deletes a job of a flow that has ended, or that expands a `foreach` again.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn delete_job(&self, job: &Job) -> Result<Deleted, Error> {
        self.broker.delete_any(job).await
    }

    /// Returns the id of a flow's job from its key.
    #[must_use]
    pub fn job_id(&self, job: JobKey) -> JobId {
        JobId::foreign(self.keys.job(job))
    }
}
