//! deploy: stores flows under their names, with their schedules; schedules of flows that are not deployed.

use meshwork_macros::boxed;
use meshwork_model::keys::context::ActorId;
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::Schedule;

use super::Flows;
use crate::script::Verb;
use crate::verb::schedule::{TRIES, busy, definition};
use crate::{Error, Put, Scheduled};

/// Greatest number of deployed flows in a list.
const MAX_DEPLOYED: usize = 1_000;

/// Result of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployed {
    /// The flow is stored; the number of deployments of its name.
    Stored(u64),
    /// Another schedule has the name of the flow, and no deployment wrote it.
    NameTaken,
    /// There is no such flow to remove.
    Missing,
}

/// A deployed flow, without its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Name of the flow.
    pub name: ScheduleName,
    /// Actor of the latest deployment.
    pub by: Option<ActorId>,
    /// Time of the latest deployment, in milliseconds since 1970.
    pub at: u64,
    /// Number of deployments of the name.
    pub deployments: u64,
}

impl Flows {
    /// Stores a flow under its name, with the schedule that starts it and the plan of these starts, if it has one. It
    /// replaces an earlier deployment with its schedule in one step.
    ///
    /// # Errors
    /// The schedule is invalid or would never run, or a call to the server fails.
    #[boxed]
    pub async fn deploy(
        &self,
        name: &ScheduleName,
        plan: &str,
        by: ActorId,
        schedule: Option<(&Schedule, &str)>,
    ) -> Result<Deployed, Error> {
        if let Some((schedule, _)) = schedule {
            schedule.check()?;
        }
        self.change_deployed(name, plan, by, schedule).await
    }

    /// Removes a deployed flow with its schedule.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn undeploy(&self, name: &ScheduleName, by: ActorId) -> Result<Deployed, Error> {
        self.change_deployed(name, "", by, None).await
    }

    async fn change_deployed(
        &self,
        name: &ScheduleName,
        plan: &str,
        by: ActorId,
        schedule: Option<(&Schedule, &str)>,
    ) -> Result<Deployed, Error> {
        for _ in 0..TRIES {
            let now = self.broker.now().await?;
            let there = self.broker.read_schedule(name).await?;
            if let Some(old) = &there
                && old.next.is_some_and(|next| next <= now)
                && old.schedule.is_ok()
            {
                self.broker.decide_first(old, now).await?;
                continue;
            }
            let flow = (name, plan, by);
            if let Some(done) = self.try_deploy(flow, schedule, there.as_ref(), now).await? {
                return Ok(done);
            }
        }
        Err(busy(name))
    }

    /// Deploys a flow, or removes one if the plan is empty, at the time `now`. `there` is its schedule as it was read. Returns
    /// `None` if the schedule has changed since.
    ///
    /// # Errors
    /// As [`Self::deploy`].
    #[boxed]
    pub async fn try_deploy(
        &self,
        (name, plan, by): (&ScheduleName, &str, ActorId),
        schedule: Option<(&Schedule, &str)>,
        there: Option<&Scheduled>,
        now: u64,
    ) -> Result<Option<Deployed>, Error> {
        let broker = &self.broker;
        let mut call = broker.scripts.call(Verb::FlowDeploy);
        call.push_key(self.keys.deployed_flow(name));
        call.push_key(self.keys.deployed_flows());
        call.push_key(broker.keys.schedule(name));
        call.push_arg(broker.clock.argument());
        call.push_arg(&*broker.who);
        call.push_arg(name.as_str());
        call.push_arg(by.0);
        call.push_arg(plan);
        call.push_arg(there.map_or("", |there| &there.version));
        call.push_arg(there.map_or("", |there| there.position_text()));
        match schedule {
            Some((schedule, plan)) => {
                let (next, fields) = definition(schedule, there, now)?;
                call.push_arg(next.argument());
                for (field, value) in fields {
                    call.push_arg(field);
                    call.push_arg(value);
                }
                for (field, value) in [("plan", plan), ("deployed", "1")] {
                    call.push_arg(field);
                    call.push_arg(value);
                }
            }
            None => call.push_arg("none"),
        }
        let answer: i64 = call.run(&broker.conn).await?;
        Ok(match answer {
            -1 => None,
            -2 => Some(Deployed::NameTaken),
            -3 => Some(Deployed::Missing),
            count => Some(Deployed::Stored(count.unsigned_abs())),
        })
    }

    /// Stores a schedule of a flow with its plan, as [`Broker::put_schedule`](crate::Broker::put_schedule) does.
    ///
    /// # Errors
    /// As there.
    #[boxed]
    pub async fn put_schedule(
        &self,
        schedule: &Schedule,
        plan: &str,
        replace: bool,
    ) -> Result<Put, Error> {
        // A schedule that somebody has replaced is no deployment's any more.
        let more: [(&str, &[u8]); 2] = [("plan", plan.as_bytes()), ("deployed", b"")];
        self.broker.put(schedule, &more, replace).await
    }

    /// Reads the plan of a deployed flow as JSON.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn deployed_plan(&self, name: &ScheduleName) -> Result<Option<String>, Error> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.keys.deployed_flow(name)).arg("plan");
        self.broker.ask("flow_read", &cmd).await
    }

    /// Lists the deployed flows, the latest deployment first; at most 1,000.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn deployments(&self) -> Result<Vec<Deployment>, Error> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.keys.deployed_flows()).arg(0);
        cmd.arg(MAX_DEPLOYED - 1).arg("REV");
        let names: Vec<String> = self.broker.ask("flow_read", &cmd).await?;
        let names = names.iter().filter_map(|name| name.parse().ok());
        let names: Vec<ScheduleName> = names.collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for name in &names {
            let fields = ["by", "at", "deployments"];
            pipe.cmd("HMGET")
                .arg(self.keys.deployed_flow(name))
                .arg(&fields);
        }
        let read: Vec<[Option<u64>; 3]> = self.broker.ask_all("flow_read", &pipe).await?;
        let both = names.into_iter().zip(read);
        let found = both.filter_map(|(name, [by, at, deployments])| {
            Some(Deployment {
                name,
                by: by.and_then(|by| by.try_into().ok()).map(ActorId),
                at: at.unwrap_or_default(),
                deployments: deployments?,
            })
        });
        Ok(found.collect())
    }
}
