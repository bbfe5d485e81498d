//! Stored schedules.

use meshwork_macros::boxed;
use std::collections::HashMap;

use meshwork_model::name::{JobId, ScheduleName};
use meshwork_model::schedule::{Schedule, Unreadable};

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::inspect::jobs::{SCAN_COUNT, failed, glob_literal, texts};
use crate::verb::{Fields, MAX_ITEMS, text};

/// Number of names in a page.
const PAGE: usize = 100;
/// Bit of a cursor in the scan of all keys, which no cursor of a server has.
const LOST: u64 = 1 << 63;

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
    /// False if the set of all schedules lacks it.
    pub(crate) indexed: bool,
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
            indexed: next.is_some(),
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
    #[boxed]
    pub async fn read_schedule(&self, name: &ScheduleName) -> Result<Option<Scheduled>, Error> {
        let read = self.read_schedules(vec![name.clone()]).await?;
        Ok(read.into_iter().next())
    }

    /// Returns a page of all schedules, in no order. Begin at 0 and continue with `next` until it is 0. The last pages are
    /// a scan of all keys for schedules that the set of all schedules lacks.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn schedules(&self, from: u64) -> Result<SchedulePage, Error> {
        let (names, next) = self.schedule_names(from).await?;
        let schedules = self.read_schedules(names).await?;
        Ok(SchedulePage { schedules, next })
    }

    /// Returns a page of the names of all schedules, and the cursor of the next page. Invalid names of other programs
    /// are skipped.
    pub(in crate::verb) async fn schedule_names(
        &self,
        from: u64,
    ) -> Result<(Vec<ScheduleName>, u64), Error> {
        if from & LOST != 0 {
            let (names, next) = self.lost_schedules(from & !LOST).await?;
            return Ok((names, if next == 0 { 0 } else { next | LOST }));
        }
        let scan = redis::cmd("ZSCAN")
            .arg(self.keys.schedules())
            .arg(from)
            .arg("COUNT")
            .arg(PAGE)
            .to_owned();
        let (next, found): (u64, Vec<(Vec<u8>, f64)>) = self.ask("schedules", &scan).await?;
        let names = found.into_iter().map(|(name, _)| text(name).parse().ok());
        Ok((
            names.flatten().collect(),
            if next == 0 { LOST } else { next },
        ))
    }

    /// Returns the names of a page of all keys that are schedules which the set of all schedules lacks, and the cursor
    /// of the next page.
    async fn lost_schedules(&self, from: u64) -> Result<(Vec<ScheduleName>, u64), Error> {
        let prefix = self.keys.schedule_prefix();
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH");
        scan.arg(format!("{}*", glob_literal(&prefix)));
        scan.arg("COUNT").arg(SCAN_COUNT);
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("schedules", &scan).await?;
        let name = |key: String| key.strip_prefix(&prefix)?.parse().ok();
        let names = texts(keys).filter_map(name).collect();
        Ok((self.not_indexed(names).await?, next))
    }

    /// Returns those of the names that the set of all schedules lacks.
    async fn not_indexed(&self, names: Vec<ScheduleName>) -> Result<Vec<ScheduleName>, Error> {
        if names.is_empty() {
            return Ok(names);
        }
        let mut pipe = redis::pipe();
        for name in &names {
            pipe.cmd("ZSCORE")
                .arg(self.keys.schedules())
                .arg(name.as_str());
        }
        let conn = &mut self.conn.clone();
        let scores: Vec<Option<f64>> = pipe.query_async(conn).await.map_err(failed)?;
        let both = names.into_iter().zip(scores);
        Ok(both
            .filter(|(_, score)| score.is_none())
            .map(|(name, _)| name)
            .collect())
    }

    /// Adds schedules to the set of all schedules if it lacks them: each is due now, unless it is paused. Returns their
    /// number.
    pub(in crate::verb) async fn restore_schedules(
        &self,
        names: Vec<ScheduleName>,
        now: u64,
    ) -> Result<usize, Error> {
        let lost = self.not_indexed(names).await?;
        let lost = self.read_schedules(lost).await?;
        let mut restored = 0;
        for there in lost.iter().filter(|there| !there.version.is_empty()) {
            let mut add = redis::cmd("ZADD");
            add.arg(self.keys.schedules()).arg("NX");
            if there.paused {
                add.arg("+inf");
            } else {
                add.arg(now);
            }
            restored += self
                .ask::<usize>("sweep", add.arg(there.name.as_str()))
                .await?;
        }
        Ok(restored)
    }

    /// Returns names in the set of all schedules whose records are gone, among the first thousand.
    pub(crate) async fn schedules_without_record(&self) -> Result<Vec<String>, Error> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.keys.schedules()).arg(0).arg(MAX_ITEMS - 1);
        let names: Vec<Vec<u8>> = self.ask("schedules", &range).await?;
        let mut exists = redis::pipe();
        let names: Vec<_> = texts(names).collect();
        for name in &names {
            exists
                .cmd("EXISTS")
                .arg(format!("{}{name}", self.keys.schedule_prefix()));
        }
        if names.is_empty() {
            return Ok(names);
        }
        let exist: Vec<bool> = self.ask_all("schedules", &exists).await?;
        let gone = names.into_iter().zip(exist).filter(|(_, exists)| !exists);
        Ok(gone.map(|(name, _)| name).collect())
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
        let answers: Vec<redis::RedisResult<redis::Value>> = self.ask_all("inspect", &pipe).await?;
        let mut schedules = Vec::new();
        for (name, answer) in names.into_iter().zip(answers.chunks(2)) {
            let [fields, next] = answer else {
                continue;
            };
            let next = redis::from_redis_value(next.clone().map_err(failed)?);
            let next = next.map_err(|error| failed(error.into()))?;
            let fields = match fields {
                Err(error) if error.code() == Some("WRONGTYPE") => {
                    let other = Unreadable::other_type(name.clone());
                    let mut there = Scheduled::new(name, HashMap::new(), next);
                    there.schedule = Err(other);
                    schedules.push(there);
                    continue;
                }
                fields => fields.clone().map_err(failed)?,
            };
            let fields: Fields =
                redis::from_redis_value(fields).map_err(|error| failed(error.into()))?;
            let fields: HashMap<_, _> = fields
                .into_iter()
                .map(|(name, value)| (text(name), value))
                .collect();
            if fields.contains_key("version") {
                schedules.push(Scheduled::new(name, fields, next));
            }
        }
        Ok(schedules)
    }
}
