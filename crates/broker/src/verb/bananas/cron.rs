//! cron: jobs that are asked for again and again.

use std::time::Duration;

use meshwork_model::bananas::{Cron, InvalidCron, Peer, read_time, seconds};
use meshwork_model::name::{JobId, ScheduleName};

use super::{Bananas, push_draft};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{text, word};

/// How long the lock of a schedule stays that we took: a scheduler of Bananas looks once a second, and takes the lock
/// at once.
const LOCKED_FOR: Duration = Duration::from_secs(2);
/// The next slot of what is never due again.
const NEVER: &str = "9999-12-31T23:59:59Z";

/// What became of a schedule that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is new.
    Added,
    /// It stands in the place of another one of that name.
    Replaced,
    /// There is one of that name; nothing was changed.
    Exists,
    /// There are as many as there may be; nothing was changed.
    Full,
}

/// A schedule as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCron {
    /// Its name.
    pub name: ScheduleName,
    /// What it is, or why it cannot be read.
    pub cron: Result<Cron, InvalidCron>,
    /// When it is due next, in milliseconds since 1970; at once if nothing is known of it.
    pub next: Option<u64>,
    /// When it ran last, as it was written.
    pub last_run: String,
    /// How often it ran.
    pub runs: u64,
    stored: String,
    next_text: String,
}

/// All schedules, and the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crons {
    /// By the server's clock, in milliseconds since 1970.
    pub now: u64,
    /// The schedules, in no order.
    pub all: Vec<KeptCron>,
}

impl Crons {
    /// Those whose time has come.
    pub fn due(&self) -> impl Iterator<Item = &KeptCron> {
        self.all
            .iter()
            .filter(|kept| kept.next.is_none_or(|next| next <= self.now))
    }
}

type Row = (Vec<u8>, Vec<u8>, String, String, String);

impl Bananas {
    /// Keeps a schedule, whose first slot is the next one from now on.
    ///
    /// # Errors
    /// If its job could not be run, it is never due, or the server does not take the call.
    pub async fn keep_cron(&self, cron: &Cron, replace: bool) -> Result<Kept, Error> {
        let first = cron.first(self.crons().await?.now)?;
        let answer: String = self
            .call(Verb::BananasCron)
            .arg(cron.name.as_str())
            .arg(cron.encode()?)
            .arg(seconds(first))
            .arg(u8::from(replace))
            .run(&self.conn)
            .await?;
        let known = [
            ("kept", Kept::Added),
            ("replaced", Kept::Replaced),
            ("exists", Kept::Exists),
            ("full", Kept::Full),
        ];
        word("cron", answer, &known)
    }

    /// Forgets a schedule. False if there is none of that name.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn forget_cron(&self, name: &ScheduleName) -> Result<bool, Error> {
        let answer: String = self
            .call(Verb::BananasCron)
            .arg(name.as_str())
            .arg("")
            .run(&self.conn)
            .await?;
        word("cron", answer, &[("forgotten", true), ("missing", false)])
    }

    /// All schedules.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn crons(&self) -> Result<Crons, Error> {
        let mut answer = self.call(Verb::BananasCrons).answer(&self.conn).await?;
        let (now, rows): (u64, Vec<Row>) = (answer.next("now")?, answer.next("schedules")?);
        // A name that is none is nobody's schedule.
        let kept = |(name, stored, next_text, last_run, runs): Row| {
            let name: ScheduleName = text(name).parse().ok()?;
            let stored = text(stored);
            let id = JobId::foreign(String::new());
            Some(KeptCron {
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

    /// Runs the slot of a schedule that is due at `now`, with a job of the id `id` for the list to which `peer` pushes.
    /// False if another worker of ours or a scheduler of Bananas has done so or is about to, or it is no schedule.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn fire(
        &self,
        kept: &KeptCron,
        now: u64,
        id: JobId,
        peer: Peer,
    ) -> Result<bool, Error> {
        let Ok(cron) = &kept.cron else {
            return Ok(false);
        };
        let next = cron.timing.next(now).map_or(NEVER.to_owned(), seconds);
        let token = id.to_string();
        let job = cron.job_as(id);
        let mut call = self
            .call(Verb::BananasFire)
            .key(job.list(peer, &self.keys))
            .arg(cron.name.as_str())
            .arg(&kept.stored)
            .arg(&kept.next_text)
            .arg(next)
            .arg(token)
            .arg(LOCKED_FOR.as_millis() as u64)
            .arg(job.id.as_str());
        push_draft(&mut call, Some(&job.record(peer)?));
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
