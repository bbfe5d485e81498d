//! submit: stores a flow in calls of a bounded size, each of which may be repeated.

use meshwork_macros::boxed;
use meshwork_model::job::NewJob;
use meshwork_model::keys::context::{ActorId, FlowId, JobKey};
use meshwork_model::stored;

use super::{Flows, MAX_MOVES};
use crate::broker::Broker;
use crate::conn::Conn;
use crate::error::Error;
use crate::script::{Call, Verb};
use crate::verb::{at_most, word};

/// A flow to store.
#[derive(Debug, Clone, Copy)]
pub struct NewFlow<'a> {
    /// Number of the flow.
    pub id: FlowId,
    /// Unique text of the submission, by which a repeated call is recognised.
    pub mark: &'a str,
    /// Actor who submits the flow, and the caller of its jobs.
    pub caller: ActorId,
}

/// A job of a flow, in the form in which it is stored.
#[derive(Debug, Clone)]
pub struct FlowJob {
    /// Place: the number of the job in the plan, and for an item a dot and its index.
    pub node: String,
    /// Name: `parse`, `parse[3]`.
    pub name: String,
    /// Generation.
    pub generation: u32,
    /// True if the job has prerequisites that have not ended.
    pub waits: bool,
    /// Script and route. The store assigns the id.
    pub job: NewJob,
    /// Fields that only jobs of flows have.
    pub more: Vec<(&'static str, Vec<u8>)>,
}

/// Outcome of a call that stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The flow or its jobs are stored.
    Stored,
    /// Another flow has the number.
    Taken,
    /// Others had taken many numbers in a row: repeat the call.
    Again,
    /// No number is left for a new job.
    None,
}

const WORDS: [(&str, Stored); 4] = [
    ("stored", Stored::Stored),
    ("taken", Stored::Taken),
    ("again", Stored::Again),
    ("none", Stored::None),
];

impl Flows {
    fn submitting(&self, new: NewFlow<'_>, what: &str) -> Call<'_> {
        let call = self.broker.scripts.call(Verb::FlowSubmit);
        let call = call.key(self.keys.flow(new.id));
        let parts = ["plan", "names", "nodes"].map(|part| self.part(new.id, part));
        let call = parts.into_iter().fold(call, Call::key);
        let call = call.arg(self.broker.clock.argument());
        let call = call.arg(&*self.broker.who).arg(new.id.0).arg(what);
        call.arg(new.mark)
    }

    /// Stores the record and the plan of a flow, without jobs.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn open(
        &self,
        new: NewFlow<'_>,
        plan: &str,
        fields: &[(&str, String)],
    ) -> Result<Stored, Error> {
        let mut call = self.submitting(new, "open").arg(plan);
        let numbers = [
            ("id", new.id.to_string()),
            ("caller_id", new.caller.to_string()),
            ("context_id", self.keys.context().to_string()),
        ];
        for (name, value) in numbers.iter().chain(fields) {
            call.push_arg(*name);
            call.push_arg(value);
        }
        self.stored(call).await
    }

    /// Stores jobs of a flow, at most [`MAX_MOVES`]. Existing ones do not change.
    ///
    /// # Errors
    /// A job cannot be stored, and nothing was written then; or the call to the server fails.
    #[boxed]
    pub async fn add(&self, new: NewFlow<'_>, jobs: &[FlowJob]) -> Result<Stored, Error> {
        at_most("flow_submit", MAX_MOVES, jobs.len())?;
        let mut call = self.submitting(new, "add").arg(self.job_prefix(new.caller));
        for job in jobs {
            job.job.check()?;
            let parts = parts(&self.broker, job);
            for part in parts {
                call.push_arg(part);
            }
        }
        self.stored(call).await
    }

    /// Starts a flow whose jobs are stored. With [`Broker::acknowledge`] it succeeds when replicas have all of it.
    ///
    /// # Errors
    /// [`Error::NotReplicated`], after the start; or the call to the server fails.
    #[boxed]
    pub async fn seal(
        &self,
        new: NewFlow<'_>,
        timeout_ms: Option<u64>,
        fields: &[(&str, String)],
    ) -> Result<Stored, Error> {
        let timeout = timeout_ms.map(|ms| ms.to_string()).unwrap_or_default();
        let mut call = self.submitting(new, "seal").arg(timeout);
        for (name, value) in fields {
            call.push_arg(*name);
            call.push_arg(value);
        }
        let Some(confirmed) = &self.broker.confirmed else {
            return self.stored(call).await;
        };
        let seal = async |conn: &Conn| call.run::<String>(conn).await;
        let (key, what) = (self.keys.flow(new.id), || format!("flow {} is", new.id));
        let sealed = confirmed.write_at(&key, &self.broker.conn, seal, what);
        word("flow_submit", sealed.await?, &WORDS)
    }

    async fn stored(&self, call: Call<'_>) -> Result<Stored, Error> {
        let answer = call.run(&self.broker.conn).await?;
        word("flow_submit", answer, &WORDS)
    }

    /// Returns the prefix of the keys of an actor's jobs.
    pub(super) fn job_prefix(&self, caller: ActorId) -> String {
        format!("{}job:{caller}:", self.keys.prefix())
    }

    /// Returns the provisional id of a flow's job, before its number is known.
    #[must_use]
    pub fn unnumbered(&self, caller: ActorId) -> meshwork_model::name::JobId {
        meshwork_model::name::JobId::foreign(self.keys.job(JobKey { caller, id: 0 }))
    }
}

/// Adds a job to a call, in the form of `flow_store.lua`.
pub(super) fn parts(broker: &Broker, job: &FlowJob) -> Vec<Vec<u8>> {
    let keys = broker.keys();
    let status = match job.waits {
        true => "waiting_for_prerequisites",
        false => "dispatched",
    };
    let mut parts: Vec<Vec<u8>> = vec![
        job.node.clone().into(),
        job.generation.to_string().into(),
        job.name.clone().into(),
        job.job.route.script_type.as_str().into(),
        status.into(),
    ];
    parts.extend(stored::values(keys, &job.job));
    let mut fields = stored::options(keys, &job.job);
    fields.extend(job.more.iter().cloned());
    parts.push((fields.len() * 2).to_string().into());
    for (name, value) in fields {
        parts.push(name.into());
        parts.push(value);
    }
    parts
}
