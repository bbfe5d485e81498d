//! Schedules of flows: the times at which flows start, and the plan of these starts.

use meshwork_model::flow::{FlowSchedule, Plan};
use meshwork_model::job::NewJob;
use meshwork_model::keys::context::{ActorId, ContextId};
use meshwork_model::name::{JobId, ScheduleName, ScriptType};
use meshwork_model::route::Route;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::Timing;

use crate::inputs::{Given, set_inputs};

/// Times at which flows start, and rules for missed and overlapping slots.
#[derive(Debug, Clone)]
pub struct FlowTimes {
    /// Times.
    pub timing: Timing,
    /// Rule for missed slots.
    pub catch_up: CatchUp,
    /// Rule for a slot whose predecessor has not ended.
    pub overlap: Overlap,
}

impl FlowTimes {
    /// Returns these times, with default rules.
    #[must_use]
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
        }
    }

    /// Returns the schedule of a flow; its template names the flow and the actor who starts it.
    #[must_use]
    pub fn schedule(
        &self,
        name: &ScheduleName,
        plan: &Plan,
        (actor, context): (ActorId, ContextId),
    ) -> Schedule {
        let id = JobId::foreign(name.to_string());
        let route = Route::to(ScriptType::foreign(ScriptType::FLOW.to_owned()));
        let mut template = NewJob::new(id, route, plan.name.clone());
        template.caller_id = actor.to_string();
        template.context_id = context.to_string();
        let mut schedule = Schedule::new(name.clone(), self.timing.clone(), template);
        schedule.catch_up = self.catch_up;
        schedule.overlap = self.overlap;
        schedule
    }
}

/// Returns the plan as a flow starts with it: without its schedule and its spread queue.
pub fn submitted(plan: &Plan) -> Plan {
    Plan {
        schedule: None,
        spread: None,
        ..plan.clone()
    }
}

/// The schedule of a file.
pub trait Starts {
    /// Returns the times, and the plan with the inputs of its starts.
    ///
    /// # Errors
    /// A text cannot be read, or an input is missing.
    fn started(&self, plan: &Plan) -> Result<(FlowTimes, Plan), String>;
}

impl Starts for FlowSchedule {
    fn started(&self, plan: &Plan) -> Result<(FlowTimes, Plan), String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let mut timing = Timing::new(self.rhythm.parse().map_err(|error| said(&error))?);
        if let Some(zone) = &self.zone {
            timing.zone = zone.parse().map_err(|error| said(&error))?;
        }
        let mut times = FlowTimes::new(timing);
        if let Some(word) = &self.overlap {
            times.overlap = word.parse().map_err(|error| said(&error))?;
        }
        if let Some(word) = &self.catch_up {
            times.catch_up = word.parse().map_err(|error| said(&error))?;
        }
        if matches!(times.catch_up, CatchUp::All(_)) && times.overlap != Overlap::Allow {
            return Err("`catch_up: all` needs `overlap: allow`".to_owned());
        }
        let mut plan = submitted(plan);
        let given = self.inputs.clone().into_iter();
        let given = given.map(|(name, value)| (name, Given::Json(value)));
        set_inputs(&mut plan, given).map_err(|error| error.to_string())?;
        Ok((times, plan))
    }
}
