//! fire_flow: decides the slots of schedules of flows, which only contexts have. The script stores the flow of a slot with
//! its plan; a step of the flow stores its jobs.

use std::collections::BTreeMap;

use meshwork_model::flow::Plan;
use meshwork_model::name::{JobId, ScheduleName, ScriptType};
use meshwork_model::schedule::{MAX_SLOTS, SLOT_VARIABLE, Schedule};
use meshwork_model::time::iso;
use serde_json::json;

use super::Scheduled;
use super::slots::{FiredSlots, Read, ScheduleRun};
use crate::broker::Broker;
use crate::error::Error;
use crate::flow::Flows;
use crate::script::Verb;
use crate::verb::text;

/// Longest reason that is stored with a schedule, in characters.
const MAX_REASON: usize = 400;

/// A due schedule of flows, as it was read.
#[derive(Debug)]
pub(super) struct FlowDue {
    pub(super) flows: Flows,
    pub(super) schedule: Schedule,
    pub(super) version: String,
    pub(super) position: String,
}

/// A call of the script.
struct Decision<'a> {
    position: &'a str,
    to: String,
    next: String,
    trouble: String,
    /// Mark of the slot, and its time; `None`: no slot is due.
    slot: Option<(String, u64)>,
}

/// Returns the verbs of flows if the schedule starts flows.
pub(super) fn schedule_of_flows(broker: &Broker, schedule: &Schedule) -> Option<Flows> {
    let of_flows = schedule.template().route.script_type.as_str() == ScriptType::FLOW;
    Flows::of(broker).filter(|_| of_flows)
}

impl Broker {
    /// Returns a due schedule of flows; `None` if it is one of jobs, or cannot be read.
    pub(super) fn flow_schedule(&self, read: &Read) -> Option<FlowDue> {
        let name: ScheduleName = text(read.name.clone()).parse().ok()?;
        let schedule = Schedule::decode(&name, &read.record, None).ok()?;
        Some(FlowDue {
            flows: schedule_of_flows(self, &schedule)?,
            schedule,
            version: text(read.version.clone()),
            position: text(read.position.clone()),
        })
    }

    /// Decides the due slots of a schedule of flows. Returns the time of the next slot, if there is one.
    pub(super) async fn fire_flow(
        &self,
        due: &FlowDue,
        now: u64,
        fired: &mut FiredSlots,
    ) -> Result<Option<u64>, Error> {
        let position = due.position.parse().unwrap_or(now);
        let plan = due.schedule.plan(position, now, MAX_SLOTS);
        let next = plan.next.map_or_else(String::new, |at| at.to_string());
        let last = plan.slots.len().saturating_sub(1);
        let flow = due.flows.scheduled_plan(&due.schedule.name).await?;
        let mut before = due.position.clone();
        let slots = plan.slots.iter().map(|slot| Some(*slot));
        let slots: Vec<_> = match plan.slots.is_empty() {
            true => vec![None],
            false => slots.collect(),
        };
        for (at, slot) in slots.into_iter().enumerate() {
            // The schedule stays due until its last slot.
            let (to, next) = match slot {
                Some(slot) if at < last => (slot.to_string(), "=".to_owned()),
                _ => (plan.position.to_string(), next.clone()),
            };
            let decision = Decision {
                position: &before,
                to: to.clone(),
                next,
                trouble: flow.as_ref().err().cloned().unwrap_or_default(),
                slot: slot.map(|slot| (format!("slot {slot}"), slot)),
            };
            let flow = flow.as_ref().ok();
            let answer = due.decide(decision, flow).await?;
            match answer.as_str() {
                "skipped" => fired.skipped += 1,
                "decided" => {}
                "changed" => return Ok(plan.next),
                "stays" => {
                    let why = due.flows.trouble(&due.schedule.name).await?;
                    fired.troubles.push((due.schedule.name.clone(), why));
                    return Ok(plan.next);
                }
                _ => fired.stored += 1,
            }
            before = to;
        }
        Ok(plan.next)
    }
}

impl FlowDue {
    async fn decide(&self, decision: Decision<'_>, plan: Option<&Plan>) -> Result<String, Error> {
        let broker = self.flows.broker();
        let template = self.schedule.template();
        let mut call = broker.scripts.call(Verb::FlowFire);
        call.push_key(broker.keys.schedule(&self.schedule.name));
        call.push_arg(broker.clock.argument());
        call.push_arg(&*broker.who);
        for word in [
            self.schedule.name.as_str(),
            &self.version,
            decision.position,
            &decision.to,
            &decision.next,
            self.schedule.overlap.as_str(),
            &decision.trouble,
        ] {
            call.push_arg(word);
        }
        let (mark, plan) = match (decision.slot, plan) {
            (Some((mark, slot)), Some(plan)) => (mark, Some(with_slot(plan, slot))),
            _ => (String::new(), None),
        };
        call.push_arg(mark);
        call.push_arg(
            plan.as_ref()
                .map_or_else(String::new, |plan| json!(plan).to_string()),
        );
        let name = plan.as_ref().map_or("", |plan| &plan.name).to_owned();
        let context = self.flows.keys().context().to_string();
        for (field, value) in [
            ("caller_id", template.caller_id.clone()),
            ("context_id", context),
            ("mw_name", name),
            ("env_vars", plan.as_ref().map_or_else(String::new, env_vars)),
            ("result", "{}".to_owned()),
        ] {
            call.push_arg(field);
            call.push_arg(value);
        }
        call.run(&broker.conn).await
    }
}

/// Returns the plan with the slot in its environment.
fn with_slot(plan: &Plan, slot: u64) -> Plan {
    let mut plan = plan.clone();
    plan.env
        .insert(SLOT_VARIABLE.to_owned(), iso(slot).as_str().into());
    plan
}

/// Returns the environment for the record of a flow.
pub(crate) fn env_vars(plan: &Plan) -> String {
    let env = plan.env.iter().map(|(name, text)| (name, &text.text));
    json!(env.collect::<BTreeMap<_, _>>()).to_string()
}

impl Flows {
    /// Runs the flow of a schedule now. Returns `None` if the schedule has changed.
    pub(super) async fn run_schedule(
        self,
        there: &Scheduled,
        schedule: &Schedule,
        mark: &str,
        now: u64,
    ) -> Result<Option<ScheduleRun>, Error> {
        let plan = match self.scheduled_plan(&schedule.name).await? {
            Ok(plan) => plan,
            Err(why) => return Ok(Some(ScheduleRun::Refused(why))),
        };
        let due = FlowDue {
            flows: self,
            schedule: schedule.clone(),
            version: there.version.clone(),
            position: there.position_text().to_owned(),
        };
        let decision = Decision {
            position: &due.position,
            to: due.position.clone(),
            next: "=".to_owned(),
            trouble: String::new(),
            slot: Some((mark.to_owned(), now)),
        };
        let answer = due.decide(decision, Some(&plan)).await?;
        Ok(match answer.as_str() {
            "changed" => None,
            "skipped" => Some(ScheduleRun::Skipped),
            "stays" => Some(ScheduleRun::Refused(
                due.flows.trouble(&schedule.name).await?,
            )),
            flow => Some(ScheduleRun::Stored(JobId::foreign(flow.to_owned()))),
        })
    }

    /// Reads the plan of a schedule, or the reason why no flow can start.
    async fn scheduled_plan(&self, name: &ScheduleName) -> Result<Result<Plan, String>, Error> {
        let plan = self.schedule_field(name, "plan").await?.unwrap_or_default();
        let read = serde_json::from_str(&plan);
        Ok(read.map_err(|error| {
            let why = format!("its plan cannot be read: {error}");
            why.chars().take(MAX_REASON).collect()
        }))
    }

    async fn trouble(&self, name: &ScheduleName) -> Result<String, Error> {
        Ok(self
            .schedule_field(name, "trouble")
            .await?
            .unwrap_or_default())
    }

    async fn schedule_field(
        &self,
        name: &ScheduleName,
        field: &str,
    ) -> Result<Option<String>, Error> {
        let key = self.broker().keys.schedule(name);
        let mut cmd = redis::cmd("HGET");
        cmd.arg(key).arg(field);
        let value: Option<Vec<u8>> = self.broker().ask("schedules", &cmd).await?;
        Ok(value.map(text))
    }
}
