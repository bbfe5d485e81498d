//! Flows of a context, as one actor. Each call checks a permission, and each change is in the audit trail.

use meshwork_broker::flow::{Answered, Approval, FlowFields};
use meshwork_flow::run::RetryFrom;
use meshwork_macros::boxed;
use meshwork_model::access::{Object, Operation};
use meshwork_model::flow::{Plan, Work};
use meshwork_model::keys::context::{ActorId, FlowId, JobKey};

use super::{FlowClient, FlowError, node, view};
use crate::Client;
use crate::context::{Acting, Caller, ContextHandle};

/// Flows of a context for the holder of a key, who can answer approvals only in their own name.
///
/// The [example `flow`](https://github.com/meshwork/meshwork/blob/main/crates/meshwork/examples/flow.rs) submits one and reads its output.
#[derive(Debug, Clone)]
pub struct FlowSession {
    pub(super) client: FlowClient,
    pub(super) context: ContextHandle,
    pub(super) me: Caller,
}

impl ContextHandle {
    /// Returns the flows of this context for `me`, who needs the permission to read them.
    ///
    /// # Errors
    /// [`FlowError::Context`] if `me` may not read flows, or a call to the server fails.
    pub async fn flows(&self, me: &impl Acting) -> Result<FlowSession, FlowError> {
        let client = self.client(me, Object::Flow, Operation::Read).await?;
        FlowSession::over(&client, self, me)
    }
}

impl FlowSession {
    /// Returns the flows of `context` over a client of it, for `me`, whose permission to read flows was checked.
    ///
    /// # Errors
    /// [`FlowError::NoContext`] if the client has no context.
    pub fn over(
        client: &Client,
        context: &ContextHandle,
        me: &impl Acting,
    ) -> Result<Self, FlowError> {
        Ok(Self {
            client: FlowClient::new(client.broker())?,
            context: context.clone(),
            me: Caller::of(me),
        })
    }

    /// Returns the client for reads.
    #[must_use]
    pub const fn client(&self) -> &FlowClient {
        &self.client
    }

    pub(super) async fn allow(
        &self,
        object: Object,
        operation: Operation,
    ) -> Result<(), FlowError> {
        self.context
            .allow_caller(&self.me, object, operation)
            .await?;
        Ok(())
    }

    /// Returns true if an actor may run jobs of this context.
    ///
    /// # Errors
    /// The actor may not read the context, or a call to the server fails.
    #[boxed]
    pub async fn has_executor(&self) -> Result<bool, FlowError> {
        let context = self.context.show(&self.me).await?;
        Ok(!context.executors.is_empty())
    }

    /// Submits a flow. Inputs are in the plan ([`set_inputs`](crate::flow::set_inputs)).
    ///
    /// # Errors
    /// As for [`FlowClient::submit`], or the actor is no admin.
    #[boxed]
    pub async fn submit(&self, plan: &Plan) -> Result<FlowId, FlowError> {
        self.allow(Object::Flow, Operation::Create).await?;
        self.client.submit(plan, self.me.id()).await
    }

    /// Asks a flow to stop, as [`FlowClient::cancel`] does.
    ///
    /// # Errors
    /// As for [`FlowClient::cancel`], or the actor is no admin.
    #[boxed]
    pub async fn cancel(&self, id: FlowId, compensate: bool) -> Result<bool, FlowError> {
        self.allow(Object::Flow, Operation::Cancel).await?;
        self.client.cancel(id, compensate).await
    }

    /// Runs jobs of an ended flow again, as [`FlowClient::retry`] does. The actor counts as a submitter from then on.
    ///
    /// # Errors
    /// As for [`FlowClient::retry`], or the actor is no admin.
    #[boxed]
    pub async fn retry(&self, id: FlowId, from: &[RetryFrom]) -> Result<(), FlowError> {
        self.allow(Object::Flow, Operation::Cancel).await?;
        self.client.retry(id, self.me.id(), from).await
    }

    /// Deletes a flow that has ended, with its jobs.
    ///
    /// # Errors
    /// As for [`FlowClient::delete`], or the actor is no admin.
    #[boxed]
    pub async fn delete(&self, id: FlowId) -> Result<(), FlowError> {
        self.allow(Object::Flow, Operation::Delete).await?;
        let record = self.client.ended(id).await?;
        let key = self.context.keys().flow(id);
        // The entry comes first, so that an interrupted call cannot delete without an entry.
        self.context.noted(&self.me, "delete", &key).await?;
        self.client.delete_ended(id, &record).await
    }

    /// Answers an approval. The first answer counts. If the approval names approvers, only these actors may answer,
    /// with a role in the context; otherwise only admins may. With `four_eyes`, no submitter of the flow may answer,
    /// nor an actor who retried it.
    ///
    /// # Errors
    /// The flow has no such approval; the approval is not open yet; the flow has ended; the actor may not answer; or a
    /// call to the server fails.
    #[boxed]
    pub async fn answer(&self, id: FlowId, job: &str, yes: bool) -> Result<(), FlowError> {
        let flows = &self.client.flows;
        let plan = view::plan(flows, id).await?;
        let no_approval = || FlowError::NoApproval(id, job.to_owned());
        let place = plan.jobs.iter().position(|node| node.name.as_str() == job);
        let place = place.ok_or_else(no_approval)?;
        let Work::Approve(approve) = &plan.jobs[place].work else {
            return Err(no_approval());
        };
        let node = node::place(place, None);
        // Read before the record: a later retry changes the generation, so the script refuses the answer.
        let nodes = flows.nodes(id).await?;
        let state = nodes.get(&node).map(String::as_str);
        let generation = state.and_then(node::parse).map(|(_, it)| it);
        let record = flows.record(id).await?;
        self.may_answer(job, approve, &record).await?;
        let names = flows.names(id).await?;
        let number = names.get(job).and_then(|text| text.parse().ok());
        let (Some(caller), Some(number), Some(generation)) =
            (number_of(&record), number, generation)
        else {
            return Err(no_approval());
        };
        let approval = Approval {
            flow: id,
            job: &flows.job_id(JobKey { caller, id: number }),
            node: &node,
            generation,
            name: job,
        };
        match flows.answer(approval, self.me.id(), yes).await? {
            Answered::Answered => Ok(()),
            Answered::Ended(answer) => {
                let job = job.to_owned();
                Err(FlowError::Answered { job, answer })
            }
            Answered::Late => Err(FlowError::Late(job.to_owned())),
            Answered::Waiting => Err(FlowError::NotAsked(job.to_owned())),
            Answered::Missing => Err(no_approval()),
        }
    }

    async fn may_answer(
        &self,
        job: &str,
        approve: &meshwork_model::flow::Approve,
        record: &FlowFields,
    ) -> Result<(), FlowError> {
        let me = self.me.id();
        let refused = if approve.approvers.contains(&me.0) {
            self.allow(Object::OwnApproval, Operation::Answer).await?;
            None
        } else if approve.approvers.is_empty() {
            self.allow(Object::Approval, Operation::Answer).await?;
            None
        } else {
            Some(FlowError::NoApprover(job.to_owned(), me))
        };
        let four_eyes = || FlowError::FourEyes(job.to_owned(), me);
        let same = approve.four_eyes && has_started(record, me);
        let Some(why) = refused.or_else(|| same.then(four_eyes)) else {
            return Ok(());
        };
        let author = format!("actor {me}");
        let text = format!("{}: {why}", self.me);
        self.context.count_refused(&author, &text).await?;
        Err(why)
    }
}

fn number_of(record: &FlowFields) -> Option<ActorId> {
    record.get("caller_id")?.parse().ok()
}

/// Returns true for an actor who has submitted or retried the flow, and for a flow that names no submitter.
fn has_started(record: &FlowFields, actor: ActorId) -> bool {
    let retried = record.get("mw_retried_by").map_or("", String::as_str);
    let mut retried = retried
        .split(' ')
        .filter_map(|text| text.parse::<ActorId>().ok());
    number_of(record).is_none_or(|caller| caller == actor) || retried.any(|by| by == actor)
}
