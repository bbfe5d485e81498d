//! schedule: stores, changes and reads schedules. `fire_schedules` runs their slots.
//!
//! A schedule is a hash: `record` and `input` are the definition, `version` identifies it, and `position` is the last
//! decided slot. Every change names the version and position that it is based on, so that changes and decided slots
//! never mix.

pub(crate) mod fire;
mod fire_flow;
mod read;
mod slots;

use meshwork_macros::boxed;
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::Schedule;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;

pub use read::{SchedulePage, Scheduled};
pub use slots::{FiredSlots, ScheduleRun};

/// Number of tries of a change while others change the same schedule. Each try decides up to 100 slots, and a
/// catch-up has at most 1,000.
pub(in crate::verb) const TRIES: usize = 30;

/// The result of storing a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The schedule is new.
    Added,
    /// The schedule replaced one with the same name.
    Replaced,
    /// A schedule with this name exists; it was not changed.
    Exists,
}

/// Next slot of a changed schedule.
#[derive(Debug, Clone, Copy)]
pub(in crate::verb) enum Next {
    At(u64),
    Never,
    Gone,
}

impl Next {
    /// Returns the argument of the scripts that write a schedule.
    pub(in crate::verb) fn argument(self) -> String {
        match self {
            Self::At(ms) => ms.to_string(),
            Self::Never => String::new(),
            Self::Gone => "gone".to_owned(),
        }
    }
}

/// Fields of a schedule, with their values.
pub(in crate::verb) type Fields = [(&'static str, Vec<u8>); 3];

/// Returns the next slot and the fields of a schedule that replaces `there` now.
pub(in crate::verb) fn definition(
    schedule: &Schedule,
    there: Option<&Scheduled>,
    now: u64,
) -> Result<(Next, Fields), Error> {
    let name = &schedule.name;
    let from = decided(now, there);
    let over = || Error::ScheduleOver { name: name.clone() };
    let next = Next::At(schedule.timing.next(from).ok_or_else(over)?);
    let rests = there.is_some_and(|there| there.paused);
    let next = if rests { Next::Never } else { next };
    let input = schedule.input().unwrap_or_default();
    let fields = [
        ("record", schedule.encode().into_bytes()),
        // An empty value deletes a field: scripts cannot tell an empty input from none.
        ("input", input.to_vec()),
        ("position", from.to_string().into_bytes()),
    ];
    Ok((next, fields))
}

impl Broker {
    /// Stores a schedule. With `replace` one of the same name may exist. Its slots up to now follow the old
    /// definition, and those from now on the new one; none is lost and none runs twice. A paused schedule stays
    /// paused.
    ///
    /// # Errors
    /// The schedule is invalid or would never run: nothing was written. Its slots up to now cannot be decided, or the
    /// server refuses a call.
    #[boxed]
    pub async fn put_schedule(&self, schedule: &Schedule, replace: bool) -> Result<Put, Error> {
        self.put(schedule, &[], replace).await
    }

    /// Same as [`Self::put_schedule`], with further fields of the record.
    pub(in crate::verb) async fn put(
        &self,
        schedule: &Schedule,
        more: &[(&str, &[u8])],
        replace: bool,
    ) -> Result<Put, Error> {
        schedule.check()?;
        let name = &schedule.name;
        for _ in 0..TRIES {
            let now = self.now().await?;
            let there = self.read_schedule(name).await?;
            if let Some(old) = &there {
                if !replace {
                    return Ok(Put::Exists);
                }
                if old.next.is_some_and(|next| next <= now) && old.schedule.is_ok() {
                    self.decide_first(old, now).await?;
                    continue;
                }
            }
            let (next, fields) = definition(schedule, there.as_ref(), now)?;
            let fields = fields.iter().map(|(name, value)| (*name, &value[..]));
            let fields: Vec<_> = fields.chain(more.iter().copied()).collect();
            if self.write(name, there.as_ref(), next, &fields).await? {
                return Ok(there.map_or(Put::Added, |_| Put::Replaced));
            }
        }
        Err(busy(name))
    }

    /// Pauses a schedule: no slot runs until it is resumed. Returns whether it exists.
    ///
    /// # Errors
    /// Other clients change it all the time, or the server refuses a call.
    #[boxed]
    pub async fn pause_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(there) = self.read_schedule(name).await? else {
                return Ok(false);
            };
            if self
                .write(name, Some(&there), Next::Never, &[("paused", b"1")])
                .await?
            {
                return Ok(true);
            }
        }
        Err(busy(name))
    }

    /// Resumes a paused schedule with the first slot from now on; missed slots do not run. Returns whether it exists.
    /// One that is not paused is not changed.
    ///
    /// # Errors
    /// It cannot be read, other clients change it all the time, or the server refuses a call.
    #[boxed]
    pub async fn resume_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(there) = self.read_schedule(name).await? else {
                return Ok(false);
            };
            let readable = there.schedule.as_ref();
            let schedule = readable.map_err(|error| Error::ScheduleBusy {
                name: name.clone(),
                why: error.to_string(),
            })?;
            if !there.paused {
                if there.indexed {
                    return Ok(true);
                }
                // Its slots since its position are due.
                let next = Next::At(self.now().await?);
                if self.write(name, Some(&there), next, &[]).await? {
                    return Ok(true);
                }
                continue;
            }
            let from = decided(self.now().await?, Some(&there));
            let next = schedule.timing.next(from).map_or(Next::Never, Next::At);
            let from = from.to_string();
            let fields: [(&str, &[u8]); 2] = [("paused", b""), ("position", from.as_bytes())];
            if self.write(name, Some(&there), next, &fields).await? {
                return Ok(true);
            }
        }
        Err(busy(name))
    }

    /// Deletes a schedule; jobs that it has enqueued stay. Returns whether it existed.
    ///
    /// # Errors
    /// Other clients change it all the time, or the server refuses a call.
    #[boxed]
    pub async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(there) = self.read_schedule(name).await? else {
                return Ok(false);
            };
            if self.write(name, Some(&there), Next::Gone, &[]).await? {
                return Ok(true);
            }
        }
        Err(busy(name))
    }

    /// Decides due slots of a schedule before it changes.
    pub(in crate::verb) async fn decide_first(
        &self,
        old: &Scheduled,
        now: u64,
    ) -> Result<(), Error> {
        let before = old.position;
        self.fire_one(old, now).await?;
        let after = self.read_schedule(&old.name).await?;
        match after.filter(|after| after.position == before) {
            Some(Scheduled {
                trouble: Some(why), ..
            }) => Err(Error::ScheduleBusy {
                name: old.name.clone(),
                why,
            }),
            _ => Ok(()),
        }
    }

    /// Writes fields of a schedule, if it is unchanged. Returns whether it was.
    async fn write(
        &self,
        name: &ScheduleName,
        there: Option<&Scheduled>,
        next: Next,
        fields: &[(&str, &[u8])],
    ) -> Result<bool, Error> {
        let mut call = self
            .scripts
            .call(Verb::PutSchedule)
            .key(self.keys.schedule(name))
            .arg(self.clock.argument())
            .arg(name.as_str())
            .arg(there.map_or("", |there| &there.version))
            .arg(there.map_or("", |there| &there.position_text))
            .arg(next.argument());
        for (field, value) in fields {
            call.push_arg(*field);
            call.push_arg(*value);
        }
        let written: u8 = call.run(&self.conn).await?;
        Ok(written == 1)
    }
}

/// Returns the time up to which slots count as decided in a schedule that changes now. A clock that went back must
/// not repeat slots.
fn decided(now: u64, there: Option<&Scheduled>) -> u64 {
    now.max(there.and_then(|there| there.position).unwrap_or(0))
}

pub(in crate::verb) fn busy(name: &ScheduleName) -> Error {
    Error::ScheduleBusy {
        name: name.clone(),
        why: "others change it all the time".to_owned(),
    }
}
