//! Stored schedules.

use std::collections::HashMap;

use meshwork_model::name::{JobId, ScheduleName};
use meshwork_model::schedule::{Schedule, Unreadable};

use crate::verb::{Fields, text};
use crate::{Broker, Error};

/// Number of names in a page.
const PAGE: usize = 100;

/// A schedule and its state. All times are in milliseconds since 1970.
#[derive(Debug, Clone)]
pub struct Scheduled {
    /// Its name.
    pub name: ScheduleName,
    /// The schedule, or the reason why it cannot be read.
    pub schedule: Result<Schedule, Unreadable>,
    /// Next slot; `None` while it is paused, and after its last slot.
    pub next: Option<u64>,
    /// Last decided slot.
    pub position: Option<u64>,
    /// True if it is paused.
    pub paused: bool,
    /// Job of the last slot that ran, or of a later manual run.
    pub last: Option<JobId>,
    /// Number of jobs that it has enqueued.
    pub runs: u64,
    /// Number of slots that were skipped because the previous job had not ended.
    pub skipped: u64,
    /// Number of slots whose job was refused.
    pub refused: u64,
    /// The last refusal: `keep ID` or `refuse ID` names the job with the unique name, `large BYTES` the size.
    pub refusal: Option<String>,
    /// Reason why its last slot could not be decided.
    pub trouble: Option<String>,
    /// Time of creation, in ISO 8601.
    pub created_at: String,
    /// Time of the last change, in ISO 8601.
    pub updated_at: String,
    pub(in crate::verb) version: String,
    pub(super) position_text: String,
}

/// A page of all schedules, in no order.
#[derive(Debug, Clone, Default)]
pub struct SchedulePage {
    /// The schedules.
    pub schedules: Vec<Scheduled>,
    /// Cursor of the next page; 0 after the last one.
    pub next: u64,
}

impl Scheduled {
    /// Returns the position as stored.
    pub(in crate::verb) fn position_text(&self) -> &str {
        &self.position_text
    }

    /// Returns the job with the unique name that refused the last refused slot.
    #[must_use]
    pub fn refused_by(&self) -> Option<&str> {
        let (word, id) = self.refusal.as_deref()?.split_once(' ')?;
        matches!(word, "keep" | "refuse").then_some(id)
    }

    fn new(name: ScheduleName, mut fields: HashMap<String, Vec<u8>>, next: Option<f64>) -> Self {
        let record = fields.remove("record").unwrap_or_default();
        let input = fields.remove("input");
        let schedule = Schedule::decode(&name, &record, input);
        let mut word = |field: &str| fields.remove(field).map(text);
        let position_text = word("position").unwrap_or_default();
        let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Self {
            schedule,
            // Infinity means never.
            next: next.filter(|next| next.is_finite()).map(|next| next as u64),
            position: position_text.parse().ok(),
            paused: word("paused").is_some(),
            last: word("last").map(JobId::foreign),
            runs: number(word("runs")).unwrap_or_default(),
            skipped: number(word("skipped")).unwrap_or_default(),
            refused: number(word("refused")).unwrap_or_default(),
            refusal: word("refusal"),
            trouble: word("trouble"),
            created_at: word("created_at").unwrap_or_default(),
            updated_at: word("updated_at").unwrap_or_default(),
            version: word("version").unwrap_or_default(),
            position_text,
            name,
        }
    }
}

impl Broker {
    /// Returns a schedule, if it exists.
    ///
    /// # Errors
    /// The server refuses the call.
    pub async fn read_schedule(&self, name: &ScheduleName) -> Result<Option<Scheduled>, Error> {
        let read = self.read_schedules(vec![name.clone()]).await?;
        Ok(read.into_iter().next())
    }

    /// Returns a page of all schedules, in no order. Begin at 0 and continue with `next` until it is 0.
    ///
    /// # Errors
    /// The server refuses a call.
    pub async fn schedules(&self, from: u64) -> Result<SchedulePage, Error> {
        let scan = redis::cmd("ZSCAN")
            .arg(self.keys.schedules())
            .arg(from)
            .arg("COUNT")
            .arg(PAGE)
            .to_owned();
        let (next, found): (u64, Vec<(Vec<u8>, f64)>) = self.ask("schedules", &scan).await?;
        // Invalid names of other programs are skipped.
        let names = found.into_iter().map(|(name, _)| text(name).parse().ok());
        let schedules = self.read_schedules(names.flatten().collect()).await?;
        Ok(SchedulePage { schedules, next })
    }

    /// Returns those of the schedules that exist.
    async fn read_schedules(&self, names: Vec<ScheduleName>) -> Result<Vec<Scheduled>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        // A key may have another type, if other programs use it.
        pipe.ignore_errors();
        for name in &names {
            pipe.cmd("HGETALL").arg(self.keys.schedule(name));
            pipe.cmd("ZSCORE")
                .arg(self.keys.schedules())
                .arg(name.as_str());
        }
        let failed = |source| Error::Call {
            verb: "schedule",
            source,
        };
        let answers: Vec<redis::RedisResult<redis::Value>> = pipe
            .query_async(&mut self.conn.clone())
            .await
            .map_err(failed)?;
        let mut schedules = Vec::new();
        for (name, answer) in names.into_iter().zip(answers.chunks(2)) {
            let [Ok(fields), Ok(next)] = answer else {
                continue;
            };
            let fields: Fields =
                redis::from_redis_value(fields.clone()).map_err(|error| failed(error.into()))?;
            let fields: HashMap<_, _> = fields
                .into_iter()
                .map(|(name, value)| (text(name), value))
                .collect();
            let next =
                redis::from_redis_value(next.clone()).map_err(|error| failed(error.into()))?;
            if fields.contains_key("version") {
                schedules.push(Scheduled::new(name, fields, next));
            }
        }
        Ok(schedules)
    }
}
