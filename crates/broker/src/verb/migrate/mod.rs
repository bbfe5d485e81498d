//! migrate: the way of a type from the old lists to the canonical queues, phase by phase (Hero's protocol, sections
//! 4 and 7). [`survey`] sees what is left of the old ways; what is done in a phase, the other scripts do.

mod clients;
mod record;
mod survey;

use std::time::Duration;

use meshwork_model::keys::hero::LegacyList;
use meshwork_model::migration::{Migration, Phase};
use meshwork_model::name::ScriptType;

pub use clients::Waiting;
pub(super) use record::{Migrations, Open};
pub use survey::{Found, LegacyQueue, Survey, TypeSurvey};

use super::word;
use crate::script::Verb;
use crate::{Broker, Error};

/// What the fields of settings begin with.
const FIELD: &str = "migration:";

/// How often a change is tried again that somebody else was faster with.
const TRIES: usize = 3;

/// Why a migration does not go on. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The server.
    #[error(transparent)]
    Broker(#[from] Error),
    /// It has begun already, with another list or age.
    #[error(
        "the migration of `{script_type}` is in phase {phase} already, with {list} and an age of {age:?}: \
         go on with `canonical-first` or `finish`, or give it up with `abort` and start again"
    )]
    Begun {
        /// The type.
        script_type: String,
        /// How far it is.
        phase: Phase,
        /// Its list.
        list: String,
        /// Its age.
        age: Duration,
    },
    /// It has not begun.
    #[error("`{script_type}` does not migrate: begin with `start`")]
    NotBegun {
        /// The type.
        script_type: String,
    },
    /// A phase was left out.
    #[error(
        "the migration of `{script_type}` is in phase dual: say `canonical-first` first, so that our \
         workers take from the old lists too"
    )]
    TooEarly {
        /// The type.
        script_type: String,
    },
    /// Two types on one list: whose a job without a type is, nobody could tell.
    #[error("{list} is the old list of `{other}` already: each type needs one of its own")]
    Shared {
        /// The list.
        list: String,
        /// Whose it is.
        other: String,
    },
    /// Not all is through.
    #[error("the migration of `{script_type}` is not through: {}", .left.join("; "))]
    Left {
        /// The type.
        script_type: String,
        /// What was seen.
        left: Vec<String>,
    },
    /// Somebody else changes it at the same time.
    #[error(
        "the migration of `{script_type}` was changed by somebody else: look at its status again"
    )]
    Changed {
        /// The type.
        script_type: String,
    },
}

/// What became of a migration that was to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It is through.
    Done,
    /// Only copies of jobs that stand on canonical queues are left on the old lists. From now on nothing of
    /// ours is pushed there any more; when workers have come to these jobs, it can end.
    Closing(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Set,
    Changed,
    Left,
}

impl Broker {
    /// Begins: jobs of the type that are enqueued from now on are pushed to `list` too. Saying the same
    /// again changes nothing.
    ///
    /// # Errors
    /// If it has begun otherwise, the list is another type's, or the server does not take the call.
    pub async fn start_migration(
        &self,
        script_type: &ScriptType,
        list: LegacyList,
        age: Duration,
    ) -> Result<Migration, MigrateError> {
        let phase = Phase::Dual;
        let to = Migration { phase, list, age };
        for (other, set) in self.migrations().await? {
            if other == script_type.as_str() {
                let (list, age) = (set.list.as_str().to_owned(), set.age);
                return match set == to {
                    true => Ok(to),
                    false => Err(MigrateError::Begun {
                        script_type: other,
                        phase: set.phase,
                        list,
                        age,
                    }),
                };
            }
            if set.list == to.list && !to.list.is_per_worker() {
                let list = to.list.as_str().to_owned();
                return Err(MigrateError::Shared { list, other });
            }
        }
        self.settle_on(script_type, None, Some(&to), &[]).await?;
        Ok(to)
    }

    /// Lets our workers take from the old lists too, after the canonical queues. Out of phase `closing` it
    /// goes back to this one.
    ///
    /// # Errors
    /// If it has not begun, or the server does not take the call.
    pub async fn canonical_first(
        &self,
        script_type: &ScriptType,
    ) -> Result<Migration, MigrateError> {
        let from = self.migration(script_type).await?;
        let phase = Phase::Canonical;
        let to = Migration {
            phase,
            ..from.clone()
        };
        if to != from {
            self.settle_on(script_type, Some(&from), Some(&to), &[])
                .await?;
        }
        Ok(to)
    }

    /// Ends it, if nothing is left of the old ways: no entry on an old list, no open job that stands on one
    /// or is in the hands of an old worker, and no client of another make that waits on a list. Which list
    /// such a client waits on cannot be seen; `whoever_waits` ends it in spite of them.
    ///
    /// # Errors
    /// If something is left, it is too early, or the server does not take the call.
    pub async fn finish_migration(
        &self,
        script_type: &ScriptType,
        whoever_waits: bool,
    ) -> Result<Ended, MigrateError> {
        let from = self.migration(script_type).await?;
        let name = script_type.as_str();
        if from.phase == Phase::Dual {
            let script_type = name.to_owned();
            return Err(MigrateError::TooEarly { script_type });
        }
        let survey = self.survey().await?;
        let of = survey.of(name).cloned().unwrap_or_default();
        let left = left(&survey, &of, whoever_waits);
        if left.only_copies && from.phase == Phase::Canonical {
            let phase = Phase::Closing;
            let to = Migration {
                phase,
                ..from.clone()
            };
            self.settle_on(script_type, Some(&from), Some(&to), &[])
                .await?;
            return Ok(Ended::Closing(left.all));
        }
        if !left.all.is_empty() {
            let script_type = name.to_owned();
            let left = left.all;
            return Err(MigrateError::Left { script_type, left });
        }
        let lists: Vec<_> = of.old.iter().map(|old| old.list.clone()).collect();
        self.settle_on(script_type, Some(&from), None, &lists)
            .await?;
        Ok(Ended::Done)
    }

    /// Gives it up: nothing is pushed to old lists any more, and our workers leave them alone. Jobs that
    /// stand on both sides stay safe, since which list is their lock is in their records.
    ///
    /// # Errors
    /// If it has not begun, or the server does not take the call.
    pub async fn abort_migration(
        &self,
        script_type: &ScriptType,
    ) -> Result<Migration, MigrateError> {
        let from = self.migration(script_type).await?;
        self.settle_on(script_type, Some(&from), None, &[]).await?;
        Ok(from)
    }

    async fn migration(&self, script_type: &ScriptType) -> Result<Migration, MigrateError> {
        let found = self.migrations().await?.remove(script_type.as_str());
        found.ok_or_else(|| MigrateError::NotBegun {
            script_type: script_type.to_string(),
        })
    }

    /// Sets it, if it is still as it was and the lists are empty. An answer that got lost is found out.
    async fn settle_on(
        &self,
        script_type: &ScriptType,
        from: Option<&Migration>,
        to: Option<&Migration>,
        empty: &[String],
    ) -> Result<(), MigrateError> {
        let text = |set: Option<&Migration>| set.map(ToString::to_string).unwrap_or_default();
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let mut call = self.scripts.call(Verb::Migrate);
            for list in empty {
                call.push_key(list);
            }
            let called = call
                .arg(self.clock.argument())
                .arg(&*self.who)
                .arg(script_type.as_str())
                .arg(text(from))
                .arg(text(to))
                .run(&self.conn)
                .await;
            let known = [
                ("set", Answer::Set),
                ("changed", Answer::Changed),
                ("left", Answer::Left),
            ];
            let answer = match called {
                Err(error) if error.is_temporary() && tries > 0 => continue,
                called => word("migrate", called?, &known)?,
            };
            let name = script_type.to_string();
            let is = self.migrations().await?.remove(&name);
            return match answer {
                Answer::Changed if is.as_ref() != to => {
                    Err(MigrateError::Changed { script_type: name })
                }
                Answer::Left => Err(MigrateError::Left {
                    script_type: name,
                    left: vec!["something was pushed to an old list just now".to_owned()],
                }),
                _ => Ok(()),
            };
        }
    }
}

/// What keeps a migration from ending.
struct Left {
    all: Vec<String>,
    /// Whether there is something, and it goes away by itself when nothing more is pushed twice.
    only_copies: bool,
}

fn left(survey: &Survey, of: &TypeSurvey, whoever_waits: bool) -> Left {
    let mut copies = Vec::new();
    let mut others = Vec::new();
    for old in of.old.iter().filter(|old| old.waiting > 0) {
        let LegacyQueue { list, waiting, .. } = old;
        match old.alone() {
            0 => copies.push(format!("{waiting} entries on {list}, all copies")),
            alone => others.push(format!("{waiting} entries on {list}, {alone} no copies")),
        }
    }
    let count = |found: &Found, what: &str, into: &mut Vec<String>| {
        if let Some(first) = &found.first {
            into.push(format!("{} {what} (such as {first})", found.count));
        }
    };
    count(
        &of.marked,
        "open jobs that stand or stood on an old list too",
        &mut copies,
    );
    count(
        &of.running,
        "jobs that a worker without leases runs or left",
        &mut others,
    );
    count(
        &of.adrift,
        "waiting jobs of other clients on no canonical queue",
        &mut others,
    );
    count(
        &survey.unroutable,
        "open jobs whose type cannot be told",
        &mut others,
    );
    match &survey.listeners {
        Some(waiting) if !whoever_waits => others.extend(waiting.iter().map(|waiting| {
            let Waiting {
                addr,
                name,
                command,
            } = waiting;
            format!("client {addr} `{name}` waits on a list ({command})")
        })),
        None if !whoever_waits => others.push(
            "the server does not let this user see (CLIENT LIST) who else waits on lists"
                .to_owned(),
        ),
        _ => {}
    }
    let only_copies = others.is_empty() && !copies.is_empty();
    others.extend(copies);
    Left {
        all: others,
        only_copies,
    }
}
