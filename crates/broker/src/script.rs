//! The Lua scripts: one per verb, each after what of `lua/lib` it needs and the names of the namespace's
//! keys. What they do stands in their headers; how each is called, in the file of its verb.

mod call;
mod constants;
#[cfg(test)]
mod tests;
mod verb;

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use meshwork_model::bananas;
use meshwork_model::job::limits::{DEFAULT_TIMEOUT, MAX_TIMEOUT};
use meshwork_model::keys::bananas::Bananas;
use meshwork_model::keys::hero::{Hero, ScriptName};
use meshwork_model::keys::nooble::QueueManager;
use redis::Script;

use crate::Error;
use crate::conn::Conn;
pub(crate) use call::Call;
use constants::Constants;
pub use verb::{Schema, Verb};

/// What all scripts begin with, what nearly all begin with, and what those add that need it.
const SLOT: &str = include_str!("lua/lib/slot.lua");
const BASE: &str = include_str!("lua/lib/base.lua");
const TOLD: &str = include_str!("lua/lib/told.lua");
const SETTINGS: &str = include_str!("lua/lib/settings.lua");
const CHANGE: &str = include_str!("lua/lib/change.lua");
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
const FOREIGN: &str = include_str!("lua/lib/foreign.lua");
const FREE: &str = include_str!("lua/lib/free.lua");
const TAKE: &str = include_str!("lua/lib/take.lua");
const ADMIT: &str = include_str!("lua/lib/admit.lua");
const FINISH: &str = include_str!("lua/lib/finish.lua");
const END_RUN: &str = include_str!("lua/lib/end_run.lua");
const PUT: &str = include_str!("lua/lib/put.lua");
const ACCEPT: &str = include_str!("lua/lib/accept.lua");
const FEEDS: &str = include_str!("lua/lib/feeds.lua");
const ANNOUNCE: &str = include_str!("lua/lib/announce.lua");
const ANSWER: &str = include_str!("lua/lib/answer.lua");
const BANANAS_RECORD: &str = include_str!("lua/lib/bananas_record.lua");
const BANANAS: &str = include_str!("lua/lib/bananas.lua");
const NOOBLE: &str = include_str!("lua/lib/nooble.lua");
const NOOBLE_END: &str = include_str!("lua/lib/nooble_end.lua");
const RECHECK: &str = include_str!("lua/lib/recheck.lua");
const PLACES: &str = include_str!("lua/lib/places.lua");
const CANONICAL: &str = include_str!("lua/lib/canonical.lua");
const STALE: &str = include_str!("lua/lib/stale.lua");
const OLD: &str = include_str!("lua/lib/old.lua");
const UNLIST: &str = include_str!("lua/lib/unlist.lua");
const REPLACE: &str = include_str!("lua/lib/replace.lua");
const STOP: &str = include_str!("lua/lib/stop.lua");
const REQUEST: &str = include_str!("lua/lib/request.lua");
const FORGET: &str = include_str!("lua/lib/forget.lua");
/// What all need that end jobs or hand them on, after [`TOLD`].
const ENDING: &[&str] = &[
    SETTINGS, KEYED, DOUBLE, FORGET, ANNOUNCE, ANSWER, ENDS, LEAVE, BATCH,
];

/// What of `lua/lib` a script needs. A function costs a script more than most calls of it, since it is made
/// anew in each call of the script; so what only some jobs ask for is made when the first of them comes.
enum Libs {
    /// These, without [`BASE`].
    Bare(&'static [&'static str]),
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
const STORING: Libs = storing(&[PUT, ASKED, STORE]);

const fn storing(often: &'static [&'static str]) -> Libs {
    Libs::Rarely {
        often,
        seldom: &[WAITS, UNLIST, STOP, UNIQUE, WAKE, JOIN, ACCEPT],
        gives: &["accept", "join_all", "wake", "record", "stop", "forget"],
    }
}

/// What those need that see to jobs of Bananas.
const OF_BANANAS: &[&str] = &[BANANAS_RECORD, ANNOUNCE, BANANAS];

/// Verbs that must work although memory has run out, since they free it, take what waits, hand it back, or
/// keep what runs from being run twice.
const ALLOW_OOM: &str = "#!lua flags=allow-oom\n";

/// How long a reply waits to be fetched, in milliseconds (one hour): long enough for a client that
/// reconnects, short enough that forgotten ones do not pile up.
pub(crate) const REPLY_TTL_MS: u64 = 3_600_000;
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
    const fn libs(self) -> Libs {
        match self {
            Self::Enqueue | Self::Submit | Self::OpenBatch => STORING,
            Self::Tick => storing(&[PUT, ASKED, STORE, REPLACE]),
            Self::TakeOver => storing(&[PUT, ASKED, STORE, BANANAS_RECORD]),
            Self::GiveBack => Libs::Ending(&[UNLIST, BANANAS_RECORD]),
            Self::Schedule => Libs::All(&[WAKE]),
            Self::Claim => Libs::Rarely {
                often: &[TAKE],
                seldom: &[WAITS, GATE, WAKE, FREE, FOREIGN, ADMIT],
                gives: &["admit", "each"],
            },
            Self::Finish => Libs::Rarely {
                often: &[FINISH],
                seldom: &[END_RUN],
                gives: &["end_run", "tell_next"],
            },
            Self::Exchange => Libs::Rarely {
                often: &[TAKE, FINISH],
                seldom: &[WAITS, GATE, WAKE, FREE, FOREIGN, ADMIT, END_RUN],
                gives: &["admit", "each", "end_run", "tell_next"],
            },
            Self::Watch => Libs::Ending(&[WAITS, UNLIST, STALE, PLACES, CANONICAL, OLD]),
            Self::Fail | Self::Release | Self::Settle | Self::RunNow | Self::SealBatch => {
                Libs::Ending(&[])
            }
            Self::Reclaim => Libs::Ending(&[FEEDS]),
            Self::Configure => Libs::Ending(&[CHANGE, WAKE]),
            Self::Promote => Libs::Ending(&[RECHECK]),
            Self::Control => Libs::Ending(&[RECHECK, UNLIST, STOP]),
            Self::Cancel => Libs::Ending(&[UNLIST, STOP, REQUEST]),
            Self::Delete => Libs::Ending(&[UNLIST]),
            Self::Retry => Libs::Ending(&[UNLIST, STALE]),
            Self::Adopt => Libs::Ending(&[STALE]),
            Self::CancelBatch | Self::TendBatches => Libs::Ending(&[UNLIST, STOP, REQUEST, WALK]),
            Self::Prune => Libs::All(&[TOLD, FORGET]),
            Self::Migrate => Libs::All(&[TOLD]),
            Self::Renew | Self::Log | Self::Present | Self::Orphan | Self::Leave | Self::Due => {
                Libs::All(&[])
            }
            Self::BananasClaim => Libs::All(&[BANANAS_RECORD, ANNOUNCE, BANANAS, SETTINGS, GATE]),
            Self::BananasReclaim => Libs::All(&[BANANAS_RECORD, ANNOUNCE, BANANAS, FEEDS]),
            Self::BananasConfigure => Libs::All(&[CHANGE]),
            Self::BananasLeave
            | Self::BananasCrons
            | Self::BananasCron
            | Self::NoobleReceive
            | Self::NoobleRenew
            | Self::NoobleReclaim
            | Self::NoobleTrim
            | Self::NoobleLeave
            | Self::NoobleStep
            | Self::NoobleKeepAnswer => Libs::All(&[]),
            Self::NoobleFinish => Libs::Bare(&[NOOBLE_END]),
            Self::NoobleFail | Self::NoobleRelease => Libs::All(&[NOOBLE, NOOBLE_END]),
            Self::NooblePromote | Self::NoobleReplay => Libs::All(&[NOOBLE]),
            _ => Libs::All(OF_BANANAS),
        }
    }

    /// The script as it is sent, but for the names of keys, which are another namespace's elsewhere.
    #[must_use]
    pub fn source(self) -> String {
        let libs = match self.libs() {
            Libs::Bare(libs) => libs.concat(),
            Libs::All(libs) => format!("{BASE}{}", libs.concat()),
            Libs::Ending(libs) => format!("{BASE}{TOLD}{}{}", ENDING.concat(), libs.concat()),
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
                    "{BASE}{TOLD}local rare, made\n{often}local function make()\n{ending}{seldom}\
                     return {{{gives}}}\nend\nrare = function()\n  made = made or make()\n  \
                     return made\nend\n"
                )
            }
        };
        format!("{SLOT}{libs}{}", self.parts().1)
    }

    const fn flags(self) -> &'static str {
        match self {
            Self::Enqueue
            | Self::Submit
            | Self::OpenBatch
            | Self::Retry
            | Self::Adopt
            | Self::Log
            | Self::Schedule
            | Self::Tick
            | Self::TakeOver
            | Self::GiveBack
            | Self::BananasEnqueue
            | Self::BananasCron
            | Self::BananasFire
            | Self::BananasReplay
            | Self::NoobleReplay
            | Self::NoobleStep => "",
            _ => ALLOW_OOM,
        }
    }
}

/// Dead letters of one queue of actions kept, more or less.
const MOST_DEAD: u64 = 10_000;
/// How long failed and lost runs of an action are remembered, in milliseconds (one day): far longer than the
/// longest pause between two.
const TRIES_FOR_MS: u64 = 86_400_000;

/// All scripts.
#[derive(Debug, Clone)]
pub struct Scripts(Arc<[String]>);

impl Default for Scripts {
    fn default() -> Self {
        static ALL: LazyLock<Scripts> = LazyLock::new(|| Scripts::altered(|_, source| source));
        ALL.clone()
    }
}

impl Scripts {
    /// The scripts, each as `alter` makes it: tests break them on purpose and expect to be told.
    #[must_use]
    pub fn altered(alter: impl Fn(Verb, String) -> String) -> Self {
        Self(Verb::ALL.map(|verb| alter(verb, verb.source())).into())
    }

    /// The scripts for the keys of one namespace.
    pub(crate) fn named(&self, keys: &Hero) -> Named {
        self.of(Schema::Hero, constants(keys.script_names()))
    }

    /// Those for jobs of Bananas.
    pub(crate) fn named_bananas(&self, keys: &Bananas) -> Named {
        self.of(Schema::Bananas, constants(keys.script_names()))
    }

    /// Those for actions of Nooble4.
    pub(crate) fn named_nooble(&self, names: &QueueManager) -> Named {
        self.of(Schema::Nooble, constants(names.script_names()))
    }

    fn of(&self, schema: Schema, constants: Constants) -> Named {
        Named(Arc::new(Making {
            schema,
            constants,
            sources: self.clone(),
            made: std::array::from_fn(|_| OnceLock::new()),
        }))
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
        ("MOST_DEAD", MOST_DEAD),
        ("TRIES_FOR", TRIES_FOR_MS),
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

/// The scripts of one namespace, to be sent by their digest. Each is made when it is first needed: who only submits
/// needs three of fifty.
#[derive(Debug, Clone)]
pub(crate) struct Named(Arc<Making>);

#[derive(Debug)]
struct Making {
    schema: Schema,
    constants: Constants,
    sources: Scripts,
    made: [OnceLock<Script>; Verb::ALL.len()],
}

impl Named {
    /// Gives all scripts to the server, so that none has to be sent when it is first needed.
    pub(crate) async fn load(&self, conn: &Conn) -> Result<(), Error> {
        let all = Verb::ALL.into_iter();
        for verb in all.filter(|verb| verb.schema() == self.0.schema) {
            let loaded = self.get(verb).load_async(&mut conn.clone()).await;
            loaded.map_err(|source| Error::Call {
                verb: "load",
                source,
            })?;
        }
        Ok(())
    }

    fn get(&self, verb: Verb) -> &Script {
        let Making {
            schema,
            constants,
            sources,
            made,
        } = &*self.0;
        debug_assert_eq!(verb.schema(), *schema, "{verb:?} is of another schema");
        // They stand in the order in which they are declared.
        made[verb as usize].get_or_init(|| {
            let source = constants.put_into(&sources.0[verb as usize]);
            Script::new(&format!("{}{source}", verb.flags()))
        })
    }
}
