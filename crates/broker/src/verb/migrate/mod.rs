//! migrate: the migration of a type from legacy lists to canonical queues, phase by phase (Hero's protocol, sections
//! 4 and 7). [`survey`] finds what remains to migrate; the other scripts do the work of a phase.

mod clients;
mod record;
mod survey;

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::keys::hero::LegacyList;
use meshwork_model::migration::{Migration, Phase};
use meshwork_model::name::ScriptType;
use meshwork_model::time::duration_of;

pub use clients::Waiting;
pub(super) use record::{Kept, Migrations, Open};
pub use survey::{Found, LegacyQueue, Survey, TypeSurvey};

use super::word;
use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;

/// Prefix of the settings' fields.
const FIELD: &str = "migration:";

/// Number of tries of a change that other clients change meanwhile.
const TRIES: usize = 3;

/// The reason why a migration does not advance. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A call failed.
    #[error(transparent)]
    Broker(#[from] Error),
    /// The migration has begun already, with another list or age.
    #[error(
        "the migration of `{script_type}` is in phase {phase} already, with {list} and an age of {}: \
         continue with `canonical-first` or `finish`, or end it with `abort` and start again",
        duration_of(*age)
    )]
    Begun {
        /// The type.
        script_type: String,
        /// Current phase.
        phase: Phase,
        /// Its list.
        list: String,
        /// Its age.
        age: Duration,
    },
    /// The migration has not begun.
    #[error("`{script_type}` does not migrate: begin with `start`")]
    NotBegun {
        /// The type.
        script_type: String,
    },
    /// A phase was skipped.
    #[error(
        "the migration of `{script_type}` is in phase dual: run `canonical-first` first, so that our \
         workers take from the old lists too"
    )]
    TooEarly {
        /// The type.
        script_type: String,
    },
    /// Another type has this list. The type of a job without one could not be determined.
    #[error("{list} is the old list of `{other}` already: each type needs one of its own")]
    Shared {
        /// The list.
        list: String,
        /// Type of the list.
        other: String,
    },
    /// The migration is not complete.
    #[error("the migration of `{script_type}` is not through: {}", .left.join("; "))]
    Left {
        /// The type.
        script_type: String,
        /// Remaining items.
        left: Vec<String>,
    },
    /// Another client changes the migration at the same time.
    #[error("the migration of `{script_type}` was changed meanwhile: read its status again")]
    Changed {
        /// The type.
        script_type: String,
    },
}

/// The result of finishing a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The migration is complete.
    Done,
    /// Legacy lists have only copies of jobs on canonical queues. Meshwork now pushes nothing to legacy lists; the
    /// migration can end when workers have claimed these jobs.
    Closing(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Set,
    Changed,
    Left,
}

impl Broker {
    /// Starts a migration: new jobs of the type are also pushed to `list`. Repeating the call changes nothing.
    ///
    /// # Errors
    /// The migration has begun differently, the list belongs to another type, or the server refuses the call.
    #[boxed]
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

    /// Lets Meshwork's workers also claim from legacy lists, after the canonical queues. A migration in phase
    /// `closing` returns to this phase.
    ///
    /// # Errors
    /// The migration has not begun, or the server refuses the call.
    #[boxed]
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

    /// Finishes the migration, if nothing remains: no entry on a legacy list, no open job there or at a legacy
    /// worker, and no foreign client that waits on a list. The lists of such clients are not known; `whoever_waits`
    /// ignores these clients.
    ///
    /// # Errors
    /// Something remains, it is too early, or the server refuses the call.
    #[boxed]
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

    /// Aborts the migration: nothing more is pushed to legacy lists, and Meshwork's workers do not claim from them.
    /// Jobs on both sides are safe, because their records name the legacy list that acts as their lock.
    ///
    /// # Errors
    /// The migration has not begun, or the server refuses the call.
    #[boxed]
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

    /// Stores the migration, if it is unchanged and the lists are empty. Detects the success of a call whose answer
    /// was lost.
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

/// Items that remain of a migration.
struct Left {
    all: Vec<String>,
    /// True if the remaining items are copies, which disappear once nothing more is pushed twice.
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
        "open jobs that are or were on an old list too",
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
        "open jobs of an unknown type",
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
