//! Schedules as JSON.

use meshwork_broker::Scheduled;
use meshwork_model::schedule::Schedule;
use meshwork_model::time::iso;
use serde::{Deserialize, Serialize};

/// Schedule as JSON. Unreadable fields are null, and the reason is in `trouble`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleView {
    /// Name of the schedule.
    pub name: String,
    /// Rhythm: a cron expression, or an interval.
    pub rhythm: Option<String>,
    /// Time zone of the rhythm.
    pub zone: Option<String>,
    /// First time at which it may fire (RFC 3339).
    pub start_at: Option<String>,
    /// Time after which it does not fire (RFC 3339).
    pub end_at: Option<String>,
    /// Rule for slots that were missed.
    pub catch_up: Option<String>,
    /// Rule for a slot whose previous job has not ended.
    pub overlap: Option<String>,
    /// Type of its jobs.
    #[serde(rename = "type")]
    pub script_type: Option<String>,
    /// True if it is paused.
    pub paused: bool,
    /// Next slot (RFC 3339).
    pub next_at: Option<String>,
    /// The next five slots as local times of the zone, with its offset; none while it is paused.
    pub upcoming: Vec<String>,
    /// Last slot that was decided (RFC 3339).
    pub decided_until: Option<String>,
    /// Last job.
    pub last_job: Option<String>,
    /// Number of jobs that it enqueued.
    pub runs: u64,
    /// Number of slots that were skipped because the previous job had not ended.
    pub skipped: u64,
    /// Number of slots whose job was refused.
    pub refused: u64,
    /// Job that has the unique name for which the last one was refused.
    pub refused_by: Option<String>,
    /// Reason of the last refusal.
    #[serde(default)]
    pub refusal: Option<String>,
    /// Reason why its last slot could not be decided, or why it cannot be read.
    pub trouble: Option<String>,
    /// Time of creation, as in the record.
    pub created_at: String,
    /// Time of the last change, as in the record.
    pub updated_at: String,
}

/// Number of slots in [`ScheduleView::upcoming`].
const UPCOMING: usize = 5;

fn upcoming(schedule: &Schedule, next: Option<u64>) -> Vec<String> {
    let Some(before) = next.and_then(|next| next.checked_sub(1)) else {
        return Vec::new();
    };
    let timing = &schedule.timing;
    let slots = timing.upcoming(before).take(UPCOMING);
    slots.map(|slot| timing.zone.show(slot)).collect()
}

/// Returns the reason of the last refusal.
fn refusal(there: &Scheduled) -> Option<String> {
    let refusal = there.refusal.as_deref()?;
    Some(match (there.refused_by(), refusal.strip_prefix("large ")) {
        (Some(id), _) => format!("job {id} has the unique name"),
        (None, Some(bytes)) => format!("the payload of {bytes} bytes is too large for the queue"),
        (None, None) => refusal.to_owned(),
    })
}

impl From<&Scheduled> for ScheduleView {
    fn from(there: &Scheduled) -> Self {
        let schedule = there.schedule.as_ref().ok();
        let timing = schedule.map(|schedule| &schedule.timing);
        let of = |of: fn(&Schedule) -> String| schedule.map(of);
        let unreadable = there.schedule.as_ref().err().map(ToString::to_string);
        Self {
            name: there.name.to_string(),
            rhythm: of(|it| it.timing.rhythm.to_string()),
            zone: of(|it| it.timing.zone.to_string()),
            start_at: timing.and_then(|timing| timing.start).map(iso),
            end_at: timing.and_then(|timing| timing.end).map(iso),
            catch_up: of(|it| it.catch_up.to_string()),
            overlap: of(|it| it.overlap.to_string()),
            script_type: of(|it| it.template().route.script_type.to_string()),
            paused: there.paused,
            next_at: there.next.map(iso),
            upcoming: schedule.map_or_else(Vec::new, |it| upcoming(it, there.next)),
            decided_until: there.position.map(iso),
            last_job: there.last.as_ref().map(ToString::to_string),
            runs: there.runs,
            skipped: there.skipped,
            refused: there.refused,
            refused_by: there.refused_by().map(ToOwned::to_owned),
            refusal: refusal(there),
            trouble: unreadable.or_else(|| there.trouble.clone()),
            created_at: there.created_at.clone(),
            updated_at: there.updated_at.clone(),
        }
    }
}
