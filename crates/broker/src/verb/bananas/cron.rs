//! cron: schedules of Bananas' jobs.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::bananas::{ClientVariant, Cron, InvalidCron, read_time, seconds};
use meshwork_model::name::{JobId, ScheduleName};

use super::{Bananas, push_draft};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{text, word};

/// Time to live of Meshwork's lock of a schedule. A scheduler of Bananas tries to lock it once a second.
const LOCKED_FOR: Duration = Duration::from_secs(2);
/// Next slot of a schedule that is never due again.
const NEVER: &str = "9999-12-31T23:59:59Z";

/// The result of storing a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutCron {
    /// The schedule is new.
    Added,
    /// The schedule replaced one with the same name.
    Replaced,
    /// A schedule with this name exists; nothing was changed.
    Exists,
    /// The greatest number of schedules is reached; nothing was changed.
    Full,
}

/// A stored schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCron {
    /// Its name.
    pub name: ScheduleName,
    /// The schedule, or the reason why it cannot be read.
    pub cron: Result<Cron, InvalidCron>,
    /// Next slot, in milliseconds since 1970; `None` means at once, because the state is unknown.
    pub next: Option<u64>,
    /// Time of the last run, unchanged.
    pub last_run: String,
    /// Number of runs.
    pub runs: u64,
    stored: String,
    next_text: String,
}

/// All schedules, and the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crons {
    /// Time by the server's clock, in milliseconds since 1970.
    pub now: u64,
    /// The schedules, in no order.
    pub all: Vec<StoredCron>,
}

impl Crons {
    /// Returns the schedules that are due.
    pub fn due(&self) -> impl Iterator<Item = &StoredCron> {
        self.all
            .iter()
            .filter(|kept| kept.next.is_none_or(|next| next <= self.now))
    }
}

type Row = (Vec<u8>, Vec<u8>, String, String, String);

impl Bananas {
    /// Stores a schedule. Its first slot is the next one from now.
    ///
    /// # Errors
    /// Its job is invalid, it has no slot, or the server refuses the call.
    #[boxed]
    pub async fn put_cron(&self, cron: &Cron, replace: bool) -> Result<PutCron, Error> {
        let first = cron.first(self.crons().await?.now)?;
        let answer: String = self
            .call(Verb::BananasPutSchedule)
            .arg(cron.name.as_str())
            .arg(cron.encode()?)
            .arg(seconds(first))
            .arg(u8::from(replace))
            .run(&self.conn)
            .await?;
        let known = [
            ("kept", PutCron::Added),
            ("replaced", PutCron::Replaced),
            ("exists", PutCron::Exists),
            ("full", PutCron::Full),
        ];
        word("cron", answer, &known)
    }

    /// Deletes a schedule. Returns false if there is none of this name.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn delete_cron(&self, name: &ScheduleName) -> Result<bool, Error> {
        let answer: String = self
            .call(Verb::BananasPutSchedule)
            .arg(name.as_str())
            .arg("")
            .run(&self.conn)
            .await?;
        word("cron", answer, &[("forgotten", true), ("missing", false)])
    }

    /// Returns all schedules.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn crons(&self) -> Result<Crons, Error> {
        let mut answer = self.call(Verb::BananasSchedules).answer(&self.conn).await?;
        let (now, rows): (u64, Vec<Row>) = (answer.next("now")?, answer.next("schedules")?);
        // Invalid names are skipped.
        let kept = |(name, stored, next_text, last_run, runs): Row| {
            let name: ScheduleName = text(name).parse().ok()?;
            let stored = text(stored);
            let id = JobId::foreign(String::new());
            Some(StoredCron {
                cron: Cron::decode(&name, &stored, id),
                next: read_time(&next_text),
                last_run,
                runs: runs.parse().unwrap_or_default(),
                name,
                stored,
                next_text,
            })
        };
        let all = rows.into_iter().filter_map(kept).collect();
        Ok(Crons { now, all })
    }

    /// Enqueues the job of a schedule's slot that is due at `now`, with the id `id`, to the list to which `variant`
    /// pushes. Returns false if another scheduler has fired the slot or has locked it, or if the schedule cannot be
    /// read.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn fire_schedule(
        &self,
        kept: &StoredCron,
        now: u64,
        id: JobId,
        variant: ClientVariant,
    ) -> Result<bool, Error> {
        let Ok(cron) = &kept.cron else {
            return Ok(false);
        };
        let next = cron.timing.next(now).map_or(NEVER.to_owned(), seconds);
        let token = id.to_string();
        let job = cron.job_as(id);
        let mut call = self
            .call(Verb::BananasFireSchedule)
            .key(job.list(variant, &self.keys))
            .arg(cron.name.as_str())
            .arg(&kept.stored)
            .arg(&kept.next_text)
            .arg(next)
            .arg(token)
            .arg(LOCKED_FOR.as_millis() as u64)
            .arg(job.id.as_str());
        push_draft(&mut call, Some(&job.record(variant)?));
        let answer: String = call.run(&self.conn).await?;
        let known = [("fired", true), ("changed", false), ("locked", false)];
        word("fire", answer, &known)
    }
}

impl From<InvalidCron> for Error {
    fn from(invalid: InvalidCron) -> Self {
        Self::InvalidCron(invalid)
    }
}
