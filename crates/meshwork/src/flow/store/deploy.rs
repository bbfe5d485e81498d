//! Deployed flows and schedules of flows, for an actor.

use meshwork_broker::flow::{Deployed, Deployment};
use meshwork_broker::{Put, Scheduled};
use meshwork_flow::times::{self, FlowTimes, Starts as _};
use meshwork_macros::boxed;
use meshwork_model::access::{Object, Operation};
use meshwork_model::flow::Plan;
use meshwork_model::name::ScheduleName;
use serde_json::json;

use super::{FlowClient, FlowError, FlowSession, view};
use crate::Client;

impl FlowClient {
    /// Returns the plan of a deployed flow; `None` if no flow of this name is deployed.
    ///
    /// # Errors
    /// The plan is damaged, or a call to the server fails.
    #[boxed]
    pub async fn deployed(&self, name: &ScheduleName) -> Result<Option<Plan>, FlowError> {
        let text = self.flows.deployed_plan(name).await?;
        text.map(|text| view::read_plan(&text)).transpose()
    }

    /// Returns the deployed flows, the latest deployment first; at most 1,000.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn deployments(&self) -> Result<Vec<Deployment>, FlowError> {
        Ok(self.flows.deployments().await?)
    }

    /// Returns a schedule of this context, if it exists.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn scheduled(&self, name: &ScheduleName) -> Result<Option<Scheduled>, FlowError> {
        Ok(self.flows.broker().read_schedule(name).await?)
    }
}

impl FlowSession {
    /// Stores a flow under its name, in place of an earlier one, with its schedule. Flows that run are not changed.
    /// Returns the number of deployments of the name.
    ///
    /// # Errors
    /// A job cannot be stored, the schedule would never run or its name is in use, the plan names a spread queue, the actor
    /// is no admin, or a call to the server fails. Nothing is changed then.
    #[boxed]
    pub async fn deploy(&self, plan: &Plan) -> Result<u64, FlowError> {
        self.allow(Object::Flow, Operation::Create).await?;
        let flows = &self.client.flows;
        let name = name(plan)?;
        in_one_context(plan)?;
        self.client.jobs(plan, self.me.id())?;
        let of = (self.me.id(), self.client.context());
        let schedule = match &plan.schedule {
            Some(given) => {
                let (times, plan) = given.started(plan).map_err(FlowError::Plan)?;
                Some((times.schedule(&name, &plan, of), json!(plan).to_string()))
            }
            None => None,
        };
        let schedule = schedule
            .as_ref()
            .map(|(schedule, plan)| (schedule, &plan[..]));
        let text = json!(plan).to_string();
        match flows.deploy(&name, &text, self.me.id(), schedule).await? {
            Deployed::Stored(count) => Ok(count),
            _ => Err(FlowError::ScheduleTaken(name)),
        }
    }

    /// Removes a deployed flow with its schedule. Flows that run are not changed.
    ///
    /// # Errors
    /// No flow of this name is deployed, the actor is no admin, or a call to the server fails.
    #[boxed]
    pub async fn undeploy(&self, name: &ScheduleName) -> Result<(), FlowError> {
        self.allow(Object::Flow, Operation::Delete).await?;
        match self.client.flows.undeploy(name, self.me.id()).await? {
            Deployed::Missing => Err(FlowError::NotDeployed(name.clone())),
            _ => Ok(()),
        }
    }

    /// Stores a schedule that starts a flow with this plan, which has its inputs. With `replace`, one of the same name may
    /// exist. Returns true if it did.
    ///
    /// # Errors
    /// A job cannot be stored, the schedule would never run or exists, the plan names a spread queue, the actor is no admin,
    /// or a call to the server fails.
    #[boxed]
    pub async fn add_schedule(
        &self,
        name: &ScheduleName,
        plan: &Plan,
        times: &FlowTimes,
        replace: bool,
    ) -> Result<bool, FlowError> {
        self.allow(Object::Flow, Operation::Create).await?;
        in_one_context(plan)?;
        self.client.jobs(plan, self.me.id())?;
        let plan = times::submitted(plan);
        let of = (self.me.id(), self.client.context());
        let schedule = times.schedule(name, &plan, of);
        let text = json!(plan).to_string();
        let flows = &self.client.flows;
        match flows.put_schedule(&schedule, &text, replace).await? {
            Put::Exists => Err(FlowError::ScheduleExists(name.clone())),
            put => {
                let key = flows.broker().keys().schedule(name);
                self.context.noted(&self.me, "schedule", &key).await?;
                Ok(put == Put::Replaced)
            }
        }
    }

    /// Returns a client that reads and changes the schedules of this context. The audit trail has an entry for `change`, the
    /// word of a change and the name of its schedule.
    ///
    /// # Errors
    /// The actor may not do this, or a call to the server fails.
    #[boxed]
    pub async fn schedules(&self, change: Option<(&str, &str)>) -> Result<Client, FlowError> {
        if let Some((word, name)) = change {
            self.allow(Object::Flow, Operation::Update).await?;
            let object = format!("schedule {name}");
            self.context.noted(&self.me, word, &object).await?;
        }
        Ok(Client::new(self.client.flows.broker().clone()))
    }
}

/// Refuses a plan that chooses its context.
fn in_one_context(plan: &Plan) -> Result<(), FlowError> {
    match &plan.spread {
        Some(name) => Err(FlowError::Spread(name.clone())),
        None => Ok(()),
    }
}

/// Returns the name of a flow, as a key.
fn name(plan: &Plan) -> Result<ScheduleName, FlowError> {
    let name = plan.name.parse();
    name.map_err(|error: meshwork_model::name::NameError| FlowError::Plan(error.to_string()))
}
