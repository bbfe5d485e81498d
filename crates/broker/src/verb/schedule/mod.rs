//! schedule: keep schedules, change them, look at them. That their slots run is the matter of `tick`.
//!
//! A schedule is a hash: `record` and `input` are the definition, `version` tells one definition from the next,
//! `position` is the last slot that was decided. Whoever changes anything says which version and position it
//! has seen, so a change and a slot that is decided never mix.

mod read;

use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::Schedule;

use crate::script::Verb;
use crate::{Broker, Error};

pub use read::{SchedulePage, Scheduled};

/// How often a change is tried again while others change the same schedule. Each try decides up to 100 slots,
/// and at most 1,000 can be caught up with.
const TRIES: usize = 30;

/// What became of a schedule that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is new.
    Added,
    /// It took the place of another one of its name.
    Replaced,
    /// There is one of its name, which was left as it is.
    Exists,
}

/// When a changed schedule is due.
#[derive(Debug, Clone, Copy)]
enum Next {
    At(u64),
    Never,
    Gone,
}

impl Broker {
    /// Stores a schedule. With `replace` one of the same name may be there: its slots up to now are decided by
    /// what it was, those from now on by what it is; none is lost and none runs twice. One that rests goes on
    /// resting.
    ///
    /// # Errors
    /// If it is invalid or would never run: nothing was written then. If its slots up to now cannot be
    /// decided, or the server does not take a call.
    pub async fn put_schedule(&self, schedule: &Schedule, replace: bool) -> Result<Put, Error> {
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
            let from = decided(now, there.as_ref());
            let over = || Error::ScheduleOver { name: name.clone() };
            let next = Next::At(schedule.timing.next(from).ok_or_else(over)?);
            let rests = there.as_ref().is_some_and(|there| there.paused);
            let next = if rests { Next::Never } else { next };
            let (record, from) = (schedule.encode(), from.to_string());
            let fields: [(&str, &[u8]); 3] = [
                ("record", record.as_bytes()),
                // An empty value takes a field away: to a script, no input and an empty one are the same.
                ("input", schedule.input().unwrap_or_default()),
                ("position", from.as_bytes()),
            ];
            if self.write(name, there.as_ref(), next, &fields).await? {
                return Ok(there.map_or(Put::Added, |_| Put::Replaced));
            }
        }
        Err(busy(name))
    }

    /// Lets a schedule rest: none of its slots runs until it goes on. Whether it was there.
    ///
    /// # Errors
    /// If others change it all the time, or the server does not take a call.
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

    /// Lets a paused schedule go on with the first slot from now on; what it has missed is not caught up with.
    /// Whether it was there; one that does not rest is left as it is.
    ///
    /// # Errors
    /// If it cannot be read, others change it all the time, or the server does not take a call.
    pub async fn resume_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(there) = self.read_schedule(name).await? else {
                return Ok(false);
            };
            if !there.paused {
                return Ok(true);
            }
            let from = decided(self.now().await?, Some(&there));
            let next = there
                .schedule
                .as_ref()
                .map_err(|error| Error::ScheduleBusy {
                    name: name.clone(),
                    why: error.to_string(),
                })?;
            let next = next.timing.next(from).map_or(Next::Never, Next::At);
            let from = from.to_string();
            let fields: [(&str, &[u8]); 2] = [("paused", b""), ("position", from.as_bytes())];
            if self.write(name, Some(&there), next, &fields).await? {
                return Ok(true);
            }
        }
        Err(busy(name))
    }

    /// Forgets a schedule; jobs that it has started stay. Whether it was there.
    ///
    /// # Errors
    /// If others change it all the time, or the server does not take a call.
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

    /// Decides slots of a schedule that are due before it becomes another.
    async fn decide_first(&self, old: &Scheduled, now: u64) -> Result<(), Error> {
        let before = old.position;
        self.tick_one(old, now).await?;
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

    /// Writes fields of a schedule that is as it was read. Whether it still was.
    async fn write(
        &self,
        name: &ScheduleName,
        there: Option<&Scheduled>,
        next: Next,
        fields: &[(&str, &[u8])],
    ) -> Result<bool, Error> {
        let mut call = self
            .scripts
            .call(Verb::Schedule)
            .key(self.keys.schedule(name))
            .arg(self.clock.argument())
            .arg(name.as_str())
            .arg(there.map_or("", |there| &there.version))
            .arg(there.map_or("", |there| &there.position_text))
            .arg(match next {
                Next::At(ms) => ms.to_string(),
                Next::Never => String::new(),
                Next::Gone => "gone".to_owned(),
            });
        for (field, value) in fields {
            call.push_arg(*field);
            call.push_arg(*value);
        }
        let written: u8 = call.run(&self.conn).await?;
        Ok(written == 1)
    }
}

/// Up to when slots count as decided in a schedule that changes now: a clock that went back brings none again.
fn decided(now: u64, there: Option<&Scheduled>) -> u64 {
    now.max(there.and_then(|there| there.position).unwrap_or(0))
}

fn busy(name: &ScheduleName) -> Error {
    Error::ScheduleBusy {
        name: name.clone(),
        why: "others change it all the time".to_owned(),
    }
}
