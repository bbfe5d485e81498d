//! add_child: stores a flow in calls of a bounded size, each of which may be repeated.

use meshwork_model::job::NewJob;
use meshwork_model::keys::context::{ActorId, FlowId, JobKey};
use meshwork_model::stored;

use super::{Flows, MAX_MOVES};
use crate::script::{Call, Verb};
use crate::verb::{at_most, word};
use crate::{Broker, Error};

/// A flow that is to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewFlow<'a> {
    /// Its number.
    pub id: FlowId,
    /// A text that no other submission has: a repeated call is known by it.
    pub mark: &'a str,
    /// The actor who submits it; its jobs are his.
    pub caller: ActorId,
}

/// A job of a flow, as it is stored.
#[derive(Debug, Clone)]
pub struct FlowJob {
    /// Its place: the number of the job in the plan; for an item a dot and the index follow.
    pub node: String,
    /// Its name: `parse`, `parse[3]`.
    pub name: String,
    /// The generation.
    pub generation: u32,
    /// It waits for others.
    pub waits: bool,
    /// Its script and route. Its id is given by the store.
    pub job: NewJob,
    /// Fields that only jobs of flows have.
    pub more: Vec<(&'static str, Vec<u8>)>,
}

/// The outcome of a call that stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It is stored.
    Stored,
    /// Another flow has the number.
    Taken,
    /// Many numbers in a row had been chosen by others: repeat the call.
    Again,
    /// All numbers of jobs are used up.
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

    /// Stores the record and the plan of a flow without jobs.
    ///
    /// # Errors
    /// The call to the server fails.
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

    /// Stores jobs of a flow, [`MAX_MOVES`] at most; those that are there stay as they are.
    ///
    /// # Errors
    /// If a job cannot be stored: nothing was written then. If the server does not take the call.
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

    /// Begins a flow whose jobs are stored.
    ///
    /// # Errors
    /// The call to the server fails.
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
        self.stored(call).await
    }

    async fn stored(&self, call: Call<'_>) -> Result<Stored, Error> {
        let answer = call.run(&self.broker.conn).await?;
        word("flow_submit", answer, &WORDS)
    }

    /// The beginning of the keys of an actor's jobs.
    pub(super) fn job_prefix(&self, caller: ActorId) -> String {
        format!("{}job:{caller}:", self.keys.prefix())
    }

    /// The id that a job of a flow is given before its number is known.
    #[must_use]
    pub fn unnumbered(&self, caller: ActorId) -> meshwork_model::name::JobId {
        meshwork_model::name::JobId::foreign(self.keys.job(JobKey { caller, id: 0 }))
    }
}

/// A job as `flow_store.lua` takes it.
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
