//! The Lua scripts: one per verb, each after what of `lua/lib` it needs and the names of the namespace's
//! keys. What they do stands in their headers; how each is called, in the file of its verb.

mod constants;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use meshwork_model::bananas;
use meshwork_model::job::limits::{DEFAULT_TIMEOUT, MAX_TIMEOUT};
use meshwork_model::keys::bananas::Bananas;
use meshwork_model::keys::hero::{Hero, ScriptName};
use redis::Script;

use crate::Error;
use crate::conn::Conn;
use constants::Constants;

/// A script's name; the same word names the Rust function, the file and the conformance cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is described by the function of its name")]
pub enum Verb {
    Enqueue,
    Claim,
    Renew,
    Log,
    Finish,
    Exchange,
    Fail,
    Release,
    Reclaim,
    Promote,
    Settle,
    Watch,
    Adopt,
    Prune,
    Control,
    Migrate,
    Present,
    Leave,
    Cancel,
    Retry,
    Delete,
    Schedule,
    Due,
    Tick,
    OpenBatch,
    SealBatch,
    CancelBatch,
    TendBatches,
    Configure,
    RunNow,
    BananasEnqueue,
    BananasClaim,
    BananasRenew,
    BananasFinish,
    BananasFail,
    BananasRelease,
    BananasMove,
    BananasReclaim,
    BananasDue,
    BananasPromote,
    BananasStrays,
    BananasAdopt,
    BananasLeave,
    BananasCrons,
    BananasCron,
    BananasFire,
}

/// What all scripts begin with, and what those add that need it.
const BASE: &str = include_str!("lua/lib/base.lua");
const TOLD: &str = include_str!("lua/lib/told.lua");
const SETTINGS: &str = include_str!("lua/lib/settings.lua");
const KEYED: &str = include_str!("lua/lib/keyed.lua");
const DOUBLE: &str = include_str!("lua/lib/double.lua");
const ENDS: &str = include_str!("lua/lib/ends.lua");
const LEAVE: &str = include_str!("lua/lib/leave.lua");
const BATCH: &str = include_str!("lua/lib/batch.lua");
const JOIN: &str = include_str!("lua/lib/join.lua");
const WALK: &str = include_str!("lua/lib/walk.lua");
const WAITS: &str = include_str!("lua/lib/waits.lua");
const UNIQUE: &str = include_str!("lua/lib/unique.lua");
const STORE: &str = include_str!("lua/lib/store.lua");
const ASKED: &str = include_str!("lua/lib/asked.lua");
const WAKE: &str = include_str!("lua/lib/wake.lua");
const GATE: &str = include_str!("lua/lib/gate.lua");
const FREE: &str = include_str!("lua/lib/free.lua");
const TAKE: &str = include_str!("lua/lib/take.lua");
const ADMIT: &str = include_str!("lua/lib/admit.lua");
const FINISH: &str = include_str!("lua/lib/finish.lua");
const END_RUN: &str = include_str!("lua/lib/end_run.lua");
const PUT: &str = include_str!("lua/lib/put.lua");
const ACCEPT: &str = include_str!("lua/lib/accept.lua");
const FEEDS: &str = include_str!("lua/lib/feeds.lua");
const BANANAS: &str = include_str!("lua/lib/bananas.lua");
const RECHECK: &str = include_str!("lua/lib/recheck.lua");
const PLACES: &str = include_str!("lua/lib/places.lua");
const OLD: &str = include_str!("lua/lib/old.lua");
const UNLIST: &str = include_str!("lua/lib/unlist.lua");
const STOP: &str = include_str!("lua/lib/stop.lua");
const FORGET: &str = include_str!("lua/lib/forget.lua");
/// What all need that end jobs or hand them on, after [`TOLD`].
const ENDING: &[&str] = &[SETTINGS, KEYED, DOUBLE, FORGET, ENDS, LEAVE, BATCH];

/// What of `lua/lib` a script needs. A function costs a script more than most calls of it, since it is made
/// anew in each call of the script; so what only some jobs ask for is made when the first of them comes.
enum Libs {
    /// These.
    All(&'static [&'static str]),
    /// [`TOLD`], [`ENDING`] and these.
    Ending(&'static [&'static str]),
    /// [`TOLD`] and `often`; and `rare()` makes [`ENDING`] and `seldom`, of which it gives these functions.
    Rarely {
        often: &'static [&'static str],
        seldom: &'static [&'static str],
        gives: &'static [&'static str],
    },
}

/// What those need that store jobs.
const STORING: Libs = Libs::Rarely {
    often: &[PUT, ASKED, STORE],
    seldom: &[WAITS, UNLIST, STOP, UNIQUE, WAKE, JOIN, ACCEPT],
    gives: &["accept", "join_all", "wake", "record", "stop", "forget"],
};

/// Verbs that must work although memory has run out, since they free it, take what waits, hand it back, or
/// keep what runs from being run twice.
const ALLOW_OOM: &str = "#!lua flags=allow-oom\n";

/// How long a reply waits to be fetched, in milliseconds (one hour): long enough for a client that
/// reconnects, short enough that forgotten ones do not pile up.
const REPLY_TTL_MS: u64 = 3_600_000;
/// Entries of events kept, more or less: 30,000 to a million events, in 5 to 40 MB.
const MOST_EVENTS: u64 = 30_000;
/// Between two looks at a job that waits for something no script tells of, in milliseconds.
const LOOK_EVERY_MS: u64 = 5_000;
/// After how long one looks at a job that an old worker may have taken, in milliseconds, where its type's
/// migration does not say.
const WATCH_AFTER_MS: u64 = 30_000;
/// How long a request to stop waits for the worker that runs the job, in milliseconds: far longer than
/// between two looks of a live worker.
const STOP_TTL_MS: u64 = 60_000;

impl Verb {
    /// All verbs, in the order of a job's life.
    pub const ALL: [Self; 46] = [
        Self::Enqueue,
        Self::Claim,
        Self::Renew,
        Self::Log,
        Self::Finish,
        Self::Exchange,
        Self::Fail,
        Self::Release,
        Self::Reclaim,
        Self::Promote,
        Self::Settle,
        Self::Watch,
        Self::Adopt,
        Self::Prune,
        Self::Control,
        Self::Migrate,
        Self::Present,
        Self::Leave,
        Self::Cancel,
        Self::Retry,
        Self::Delete,
        Self::Schedule,
        Self::Due,
        Self::Tick,
        Self::OpenBatch,
        Self::SealBatch,
        Self::CancelBatch,
        Self::TendBatches,
        Self::Configure,
        Self::RunNow,
        Self::BananasEnqueue,
        Self::BananasClaim,
        Self::BananasRenew,
        Self::BananasFinish,
        Self::BananasFail,
        Self::BananasRelease,
        Self::BananasMove,
        Self::BananasReclaim,
        Self::BananasDue,
        Self::BananasPromote,
        Self::BananasStrays,
        Self::BananasAdopt,
        Self::BananasLeave,
        Self::BananasCrons,
        Self::BananasCron,
        Self::BananasFire,
    ];

    /// The verb as a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.parts().0
    }

    /// Whether it is about jobs of Bananas.
    #[must_use]
    pub const fn is_bananas(self) -> bool {
        self as usize >= Self::BananasEnqueue as usize
    }

    const fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::Enqueue => ("enqueue", include_str!("lua/enqueue.lua")),
            Self::Claim => ("claim", include_str!("lua/claim.lua")),
            Self::Renew => ("renew", include_str!("lua/renew.lua")),
            Self::Log => ("log", include_str!("lua/log.lua")),
            Self::Finish => ("finish", include_str!("lua/finish.lua")),
            Self::Exchange => ("exchange", include_str!("lua/exchange.lua")),
            Self::Fail => ("fail", include_str!("lua/fail.lua")),
            Self::Release => ("release", include_str!("lua/release.lua")),
            Self::Reclaim => ("reclaim", include_str!("lua/reclaim.lua")),
            Self::Promote => ("promote", include_str!("lua/promote.lua")),
            Self::Settle => ("settle", include_str!("lua/settle.lua")),
            Self::Watch => ("watch", include_str!("lua/watch.lua")),
            Self::Adopt => ("adopt", include_str!("lua/adopt.lua")),
            Self::Prune => ("prune", include_str!("lua/prune.lua")),
            Self::Control => ("control", include_str!("lua/control.lua")),
            Self::Migrate => ("migrate", include_str!("lua/migrate.lua")),
            Self::Present => ("present", include_str!("lua/present.lua")),
            Self::Leave => ("leave", include_str!("lua/leave.lua")),
            Self::Cancel => ("cancel", include_str!("lua/cancel.lua")),
            Self::Retry => ("retry", include_str!("lua/retry.lua")),
            Self::Delete => ("delete", include_str!("lua/delete.lua")),
            Self::Schedule => ("schedule", include_str!("lua/schedule.lua")),
            Self::Due => ("due", include_str!("lua/due.lua")),
            Self::Tick => ("tick", include_str!("lua/tick.lua")),
            Self::OpenBatch => ("open_batch", include_str!("lua/open_batch.lua")),
            Self::SealBatch => ("seal_batch", include_str!("lua/seal_batch.lua")),
            Self::CancelBatch => ("cancel_batch", include_str!("lua/cancel_batch.lua")),
            Self::TendBatches => ("tend_batches", include_str!("lua/tend_batches.lua")),
            Self::Configure => ("configure", include_str!("lua/configure.lua")),
            Self::RunNow => ("run_now", include_str!("lua/run_now.lua")),
            Self::BananasEnqueue => ("bananas_enqueue", include_str!("lua/bananas/enqueue.lua")),
            Self::BananasClaim => ("bananas_claim", include_str!("lua/bananas/claim.lua")),
            Self::BananasRenew => ("bananas_renew", include_str!("lua/bananas/renew.lua")),
            Self::BananasFinish => ("bananas_finish", include_str!("lua/bananas/finish.lua")),
            Self::BananasFail => ("bananas_fail", include_str!("lua/bananas/fail.lua")),
            Self::BananasRelease => ("bananas_release", include_str!("lua/bananas/release.lua")),
            Self::BananasMove => ("bananas_move", include_str!("lua/bananas/move.lua")),
            Self::BananasReclaim => ("bananas_reclaim", include_str!("lua/bananas/reclaim.lua")),
            Self::BananasDue => ("bananas_due", include_str!("lua/bananas/due.lua")),
            Self::BananasPromote => ("bananas_promote", include_str!("lua/bananas/promote.lua")),
            Self::BananasStrays => ("bananas_strays", include_str!("lua/bananas/strays.lua")),
            Self::BananasAdopt => ("bananas_adopt", include_str!("lua/bananas/adopt.lua")),
            Self::BananasLeave => ("bananas_leave", include_str!("lua/leave.lua")),
            Self::BananasCrons => ("bananas_crons", include_str!("lua/bananas/crons.lua")),
            Self::BananasCron => ("bananas_cron", include_str!("lua/bananas/cron.lua")),
            Self::BananasFire => ("bananas_fire", include_str!("lua/bananas/fire.lua")),
        }
    }

    const fn libs(self) -> Libs {
        match self {
            Self::Enqueue | Self::OpenBatch | Self::Tick => STORING,
            Self::Schedule => Libs::All(&[WAKE]),
            Self::Claim => Libs::Rarely {
                often: &[TAKE],
                seldom: &[WAITS, GATE, FREE, ADMIT],
                gives: &["admit", "each"],
            },
            Self::Finish => Libs::Rarely {
                often: &[FINISH],
                seldom: &[END_RUN],
                gives: &["end_run", "tell_next"],
            },
            Self::Exchange => Libs::Rarely {
                often: &[TAKE, FINISH],
                seldom: &[WAITS, GATE, FREE, ADMIT, END_RUN],
                gives: &["admit", "each", "end_run", "tell_next"],
            },
            Self::Watch => Libs::Ending(&[WAITS, UNLIST, PLACES, OLD]),
            Self::Fail
            | Self::Release
            | Self::Settle
            | Self::Adopt
            | Self::RunNow
            | Self::SealBatch => Libs::Ending(&[]),
            Self::Reclaim => Libs::Ending(&[FEEDS]),
            Self::Configure => Libs::Ending(&[WAKE]),
            Self::Promote => Libs::Ending(&[RECHECK]),
            Self::Control => Libs::Ending(&[RECHECK, UNLIST, STOP]),
            Self::Cancel => Libs::Ending(&[UNLIST, STOP]),
            Self::Delete | Self::Retry => Libs::Ending(&[UNLIST]),
            Self::CancelBatch | Self::TendBatches => Libs::Ending(&[UNLIST, STOP, WALK]),
            Self::Prune => Libs::All(&[TOLD, FORGET]),
            Self::Migrate => Libs::All(&[TOLD]),
            Self::Renew | Self::Log | Self::Present | Self::Leave | Self::Due => Libs::All(&[]),
            Self::BananasReclaim => Libs::All(&[BANANAS, FEEDS]),
            Self::BananasLeave | Self::BananasCrons | Self::BananasCron => Libs::All(&[]),
            _ => Libs::All(&[BANANAS]),
        }
    }

    /// The script as it is sent, but for the names of keys, which are another namespace's elsewhere.
    #[must_use]
    pub fn source(self) -> String {
        let libs = match self.libs() {
            Libs::All(libs) => libs.concat(),
            Libs::Ending(libs) => format!("{TOLD}{}{}", ENDING.concat(), libs.concat()),
            Libs::Rarely {
                often,
                seldom,
                gives,
            } => {
                let (often, ending, seldom) = (often.concat(), ENDING.concat(), seldom.concat());
                let gives: Vec<_> = gives
                    .iter()
                    .map(|name| format!("{name} = {name}"))
                    .collect();
                let gives = gives.join(", ");
                format!(
                    "{TOLD}local rare, made\n{often}local function make()\n{ending}{seldom}\
                     return {{{gives}}}\nend\nrare = function()\n  made = made or make()\n  \
                     return made\nend\n"
                )
            }
        };
        format!("{BASE}{libs}{}", self.parts().1)
    }

    const fn flags(self) -> &'static str {
        match self {
            Self::Enqueue
            | Self::OpenBatch
            | Self::Retry
            | Self::Adopt
            | Self::Log
            | Self::Schedule
            | Self::Tick
            | Self::BananasEnqueue
            | Self::BananasCron
            | Self::BananasFire => "",
            _ => ALLOW_OOM,
        }
    }
}

/// All scripts.
#[derive(Debug, Clone)]
pub struct Scripts(Vec<(Verb, String)>);

impl Default for Scripts {
    fn default() -> Self {
        Self::altered(|_, source| source)
    }
}

impl Scripts {
    /// The scripts, each as `alter` makes it: tests break them on purpose and expect to be told.
    #[must_use]
    pub fn altered(alter: impl Fn(Verb, String) -> String) -> Self {
        Self(
            Verb::ALL
                .map(|verb| (verb, alter(verb, verb.source())))
                .into(),
        )
    }

    /// The scripts for the keys of one namespace.
    pub(crate) fn named(&self, keys: &Hero) -> Named {
        self.of(false, constants(keys.script_names()))
    }

    /// Those for jobs of Bananas.
    pub(crate) fn named_bananas(&self, keys: &Bananas) -> Named {
        self.of(true, constants(keys.script_names()))
    }

    fn of(&self, bananas: bool, constants: Constants) -> Named {
        let scripts = self
            .0
            .iter()
            .filter(|(verb, _)| verb.is_bananas() == bananas);
        let script = |(verb, source): &(Verb, String)| {
            let text = format!("{}{}", verb.flags(), constants.put_into(source));
            (*verb, Script::new(&text))
        };
        Named(scripts.map(script).collect())
    }
}

/// The names of keys and the bounds, as the scripts know them. A namespace holds no quotes.
fn constants(keys: Vec<ScriptName>) -> Constants {
    let tagged = keys.iter().any(|(_, key)| key.contains('{'));
    let keys = keys
        .into_iter()
        .map(|(name, key)| (name, format!("'{key}'")));
    let bounds = [
        ("REPLY_TTL", REPLY_TTL_MS),
        ("MOST_EVENTS", MOST_EVENTS),
        ("LOOK_EVERY", LOOK_EVERY_MS),
        ("WATCH_AFTER", WATCH_AFTER_MS),
        ("STOP_TTL", STOP_TTL_MS),
        ("DEFAULT_TIMEOUT", DEFAULT_TIMEOUT),
        ("MAX_TIMEOUT", MAX_TIMEOUT),
        ("COMPLETED_FOR", ms(bananas::COMPLETED_FOR)),
        ("DEAD_FOR", ms(bananas::DEAD_FOR)),
        ("RESULT_FOR", ms(bananas::RESULT_FOR)),
        ("FAILURE_FOR", ms(bananas::FAILURE_FOR)),
    ];
    let bounds = bounds
        .into_iter()
        .map(|(name, bound)| (name, bound.to_string()));
    // On a cluster, a namespace has a hash tag.
    let tagged = [("TAGGED", tagged.to_string())];
    Constants::new(keys.chain(bounds).chain(tagged))
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The scripts of one namespace, ready to be sent by their digest.
#[derive(Debug, Clone)]
pub(crate) struct Named(Arc<[(Verb, Script)]>);

impl Named {
    /// Gives all scripts to the server, so that none has to be sent when it is first needed.
    pub(crate) async fn load(&self, conn: &Conn) -> Result<(), Error> {
        for (_, script) in &*self.0 {
            let loaded = script.load_async(&mut conn.clone()).await;
            loaded.map_err(|source| Error::Call {
                verb: "load",
                source,
            })?;
        }
        Ok(())
    }

    fn get(&self, verb: Verb) -> &Script {
        // Those of one schema stand side by side.
        &self.0[verb as usize - self.0[0].0 as usize].1
    }
}

/// A call of one script.
pub(crate) struct Call<'a> {
    verb: Verb,
    invocation: redis::ScriptInvocation<'a>,
}

impl Named {
    pub(crate) fn call(&self, verb: Verb) -> Call<'_> {
        Call {
            verb,
            invocation: self.get(verb).prepare_invoke(),
        }
    }
}

impl Call<'_> {
    pub(crate) fn key(mut self, key: impl redis::ToRedisArgs) -> Self {
        self.invocation.key(key);
        self
    }

    pub(crate) fn arg(mut self, arg: impl redis::ToRedisArgs) -> Self {
        self.invocation.arg(arg);
        self
    }

    pub(crate) fn push_key(&mut self, key: impl redis::ToRedisArgs) {
        self.invocation.key(key);
    }

    pub(crate) fn push_arg(&mut self, arg: impl redis::ToRedisArgs) {
        self.invocation.arg(arg);
    }

    pub(crate) async fn run<T: redis::FromRedisValue>(self, conn: &Conn) -> Result<T, Error> {
        let Self { verb, invocation } = self;
        invocation
            .invoke_async(&mut conn.clone())
            .await
            .map_err(|source| Error::Call {
                verb: verb.name(),
                source,
            })
    }
}
