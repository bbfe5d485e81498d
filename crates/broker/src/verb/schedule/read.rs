//! Schedules as they lie there.

use std::collections::HashMap;

use meshwork_model::name::{JobId, ScheduleName};
use meshwork_model::schedule::{Schedule, Unreadable};

use crate::verb::{Fields, text};
use crate::{Broker, Error};

/// How many names one page of the list asks for.
const PAGE: usize = 100;

/// A schedule and how far it is. All times are in milliseconds since 1970.
#[derive(Debug, Clone)]
pub struct Scheduled {
    /// Its name.
    pub name: ScheduleName,
    /// What it is, or why that cannot be read.
    pub schedule: Result<Schedule, Unreadable>,
    /// When it is due; none while it rests, and after its last slot.
    pub next: Option<u64>,
    /// The last slot that was decided.
    pub position: Option<u64>,
    /// Whether it rests.
    pub paused: bool,
    /// The job of the last slot that ran, or the one that it was asked to run since.
    pub last: Option<JobId>,
    /// How many jobs it has started.
    pub runs: u64,
    /// How many slots were left out since the last job had not ended.
    pub skipped: u64,
    /// Why its last slot could not be decided.
    pub trouble: Option<String>,
    /// When it was first stored, in ISO 8601.
    pub created_at: String,
    /// When it was last changed, in ISO 8601.
    pub updated_at: String,
    pub(in crate::verb) version: String,
    pub(super) position_text: String,
}

/// A page of all schedules, in no order.
#[derive(Debug, Clone, Default)]
pub struct SchedulePage {
    /// These.
    pub schedules: Vec<Scheduled>,
    /// Where the next page begins; 0 after the last one.
    pub next: u64,
}

impl Scheduled {
    /// The position as it is written.
    pub(in crate::verb) fn position_text(&self) -> &str {
        &self.position_text
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
            // Infinity is no time.
            next: next.filter(|next| next.is_finite()).map(|next| next as u64),
            position: position_text.parse().ok(),
            paused: word("paused").is_some(),
            last: word("last").map(JobId::foreign),
            runs: number(word("runs")).unwrap_or_default(),
            skipped: number(word("skipped")).unwrap_or_default(),
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
    /// A schedule, if it is there.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn read_schedule(&self, name: &ScheduleName) -> Result<Option<Scheduled>, Error> {
        let read = self.read_schedules(vec![name.clone()]).await?;
        Ok(read.into_iter().next())
    }

    /// A page of all schedules, in no order; begin at 0, go on at `next` until it is 0.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn schedules(&self, from: u64) -> Result<SchedulePage, Error> {
        let scan = redis::cmd("ZSCAN")
            .arg(self.keys.schedules())
            .arg(from)
            .arg("COUNT")
            .arg(PAGE)
            .to_owned();
        let (next, found): (u64, Vec<(Vec<u8>, f64)>) = self.ask("schedules", &scan).await?;
        // What somebody else put there has no name of ours.
        let names = found.into_iter().map(|(name, _)| text(name).parse().ok());
        let schedules = self.read_schedules(names.flatten().collect()).await?;
        Ok(SchedulePage { schedules, next })
    }

    /// Those of them that are there.
    async fn read_schedules(&self, names: Vec<ScheduleName>) -> Result<Vec<Scheduled>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        // A key of ours that somebody else uses for something else.
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
