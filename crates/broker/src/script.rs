//! The Lua scripts: one for each verb, assembled from the files that each names at its top, with the names of the
//! namespace's keys. Their headers document the contracts; the file of each verb has the call.

mod answer;
mod call;
mod constants;
mod expand;
mod files;
#[cfg(test)]
mod names;
pub(crate) mod rights;
#[cfg(test)]
mod tests;
mod verb;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use meshwork_model::bananas;
use meshwork_model::context::limits::MAX_AUDIT;
use meshwork_model::job::limits::{DEFAULT_TIMEOUT, MAX_TIMEOUT};
use meshwork_model::keys::bananas::BananasKeys;
use meshwork_model::keys::context::NodeKeys;
use meshwork_model::keys::hero::{JobKeys, ScriptName};
use meshwork_model::keys::nooble::NoobleKeys;
use meshwork_model::keys::table::KeyTable;
use meshwork_model::stored;
use redis::Script;

use crate::conn::Conn;
use crate::error::Error;
pub(crate) use answer::Answer;
pub(crate) use call::Call;
use constants::Constants;
use expand::{Flag, Top, expand};
use files::text;
pub use verb::{Protocol, Verb};

/// First line of each script. With it, a cluster's node refuses keys of two slots, and a server without memory
/// refuses the call before it has written anything.
const CHECKED: &str = "#!lua\n";
/// First line of scripts that run although the server's memory is full.
const ALLOW_OOM: &str = "#!lua flags=allow-oom\n";
/// First line of scripts that only read.
const NO_WRITES: &str = "#!lua flags=no-writes\n";

/// Time to live of a reply, in milliseconds (1 hour). A client can reconnect in this time, and forgotten replies do
/// not pile up.
pub(crate) const REPLY_TTL_MS: u64 = 3_600_000;
/// Approximate number of entries in the stream of events: 30,000 to a million events, in 5 to 40 MB.
const MOST_EVENTS: u64 = 30_000;
/// Interval of checks of a job that waits for an event that no script reports, in milliseconds.
const LOOK_EVERY_MS: u64 = 5_000;
/// Default time after which a job is checked that a legacy worker may have taken, in milliseconds.
const WATCH_AFTER_MS: u64 = 30_000;
/// Time to live of a cancellation for a running job's worker, in milliseconds. A live worker polls far more often.
const STOP_TTL_MS: u64 = 60_000;

impl Verb {
    /// Returns the script without the names of keys, which differ by namespace. If its files do not fit together, the
    /// script returns an error; a test prevents that.
    #[must_use]
    pub fn source(self, layout: Layout) -> &'static str {
        static MADE: [[OnceLock<String>; Verb::ALL.len()]; Layout::ALL.len()] =
            [const { [const { OnceLock::new() }; Verb::ALL.len()] }; Layout::ALL.len()];
        // The array is in the order of the declarations.
        MADE[layout as usize][self as usize].get_or_init(|| {
            expand(&self.file(), layout).unwrap_or_else(|fault| {
                let fault = fault.to_string().replace(['\\', '\'', '\n'], " ");
                format!("return redis.error_reply('ERR {fault}')")
            })
        })
    }

    /// Returns the first line of the script.
    fn flags(self) -> &'static str {
        let file = self.file();
        let top = text(&file).and_then(|text| Top::read(&file, text).ok());
        match top.and_then(|top| top.flag) {
            Some(Flag::AllowOom) => ALLOW_OOM,
            Some(Flag::NoWrites) => NO_WRITES,
            None => CHECKED,
        }
    }
}

/// Approximate number of dead letters in a queue of actions.
const MOST_DEAD: u64 = 10_000;
/// Time for which failed and lost runs of an action are counted, in milliseconds (1 day): far longer than the longest
/// backoff.
const TRIES_FOR_MS: u64 = 86_400_000;

/// Layout of jobs in the store. The same scripts serve all layouts, with other constants and a few other files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A namespace of Hero.
    Hero,
    /// A context.
    Context,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 2] = [Self::Hero, Self::Context];

    /// Returns the layout of these keys.
    fn of(keys: &JobKeys) -> Self {
        match keys {
            JobKeys::Hero(_) => Self::Hero,
            JobKeys::Context(..) => Self::Context,
        }
    }

    /// Returns the constants that differ by layout: the status of a job that waits for prerequisites, the field of
    /// its output, and whether legacy clients use other reply lists.
    fn words(self) -> [(&'static str, &'static str); 3] {
        match self {
            Self::Hero => [
                ("WAITING", "'dispatched'"),
                ("OUTPUT", "'output'"),
                ("LEGACY", "true"),
            ],
            Self::Context => [
                ("WAITING", "'waiting_for_prerequisites'"),
                ("OUTPUT", "'result'"),
                ("LEGACY", "false"),
            ],
        }
    }

    /// Returns the lists of fields that every record has: `CLAIMED_FIELDS`, their names; `PLAIN_FIELDS`, their number
    /// with id and status; `NEW_FIELDS`, each name of a value of the client with its argument, from `from` on;
    /// `VALUES`, the number of these values.
    fn fields(self) -> [(&'static str, String); 4] {
        let stored::FieldLists { values, claimed } = match self {
            Self::Hero => &stored::HERO,
            Self::Context => &stored::CONTEXT,
        };
        let names: Vec<_> = claimed.iter().map(|name| format!("'{name}'")).collect();
        let new = values.iter().enumerate();
        let new: Vec<_> = new
            .map(|(at, name)| format!("'{name}', ARGV[from + {at}]"))
            .collect();
        [
            ("CLAIMED_FIELDS", names.join(", ")),
            ("PLAIN_FIELDS", (claimed.len() + 2).to_string()),
            ("NEW_FIELDS", new.join(", ")),
            ("VALUES", values.len().to_string()),
        ]
    }

    /// Returns whether the layout needs a script of Hero's. Contexts have neither migrations nor imported jobs of
    /// Bananas. Flows belong to contexts.
    fn has(self, verb: Verb) -> bool {
        let of_flows = matches!(
            verb,
            Verb::FlowSubmit
                | Verb::FlowClaim
                | Verb::FlowCommit
                | Verb::FlowStop
                | Verb::FlowRetry
                | Verb::FlowAnswer
                | Verb::FlowSweep
                | Verb::FlowDeploy
                | Verb::FlowFire
        );
        match self {
            Self::Hero => !of_flows,
            Self::Context => !matches!(
                verb,
                Verb::Migrate | Verb::ImportBananas | Verb::ExportBananas
            ),
        }
    }
}

/// All scripts: the originals, or altered ones.
#[derive(Debug, Clone, Default)]
pub struct Scripts(Option<Arc<[[String; Verb::ALL.len()]]>>);

impl Scripts {
    /// Returns the scripts of all layouts, each altered by `alter`. Tests break scripts in this way, and expect a
    /// failure.
    #[must_use]
    pub fn altered(alter: impl Fn(Verb, &str) -> String) -> Self {
        let of = |layout| Verb::ALL.map(|verb| alter(verb, verb.source(layout)));
        Self(Some(Layout::ALL.map(of).into()))
    }

    fn source(&self, verb: Verb, layout: Layout) -> &str {
        match &self.0 {
            Some(altered) => &altered[layout as usize][verb as usize],
            None => verb.source(layout),
        }
    }

    /// Returns the scripts for the keys of one namespace, or of one context.
    pub(crate) fn named(&self, keys: &JobKeys) -> Named {
        let layout = Layout::of(keys);
        let constants = constants(keys.script_names(), layout);
        self.of(Protocol::Hero, layout, constants, Some(keys.table()))
    }

    /// Returns the scripts for jobs of Bananas.
    pub(crate) fn named_bananas(&self, keys: &BananasKeys) -> Named {
        let constants = constants(keys.script_names(), Layout::Hero);
        self.of(Protocol::Bananas, Layout::Hero, constants, None)
    }

    /// Returns the scripts for actions of Nooble4.
    pub(crate) fn named_nooble(&self, names: &NoobleKeys) -> Named {
        let constants = constants(names.script_names(), Layout::Hero);
        self.of(Protocol::Nooble, Layout::Hero, constants, None)
    }

    /// Returns the scripts for records and messages of contexts.
    pub(crate) fn named_context(&self) -> Named {
        let constants = constants(NodeKeys::script_names(), Layout::Hero);
        self.of(Protocol::Context, Layout::Hero, constants, None)
    }

    fn of(
        &self,
        schema: Protocol,
        layout: Layout,
        constants: Constants,
        table: Option<KeyTable>,
    ) -> Named {
        Named(Arc::new(Making {
            schema,
            layout,
            constants,
            table,
            sources: self.clone(),
            made: std::array::from_fn(|_| OnceLock::new()),
        }))
    }
}

/// Returns the names of keys and the limits that scripts use. A namespace has no quotes in it.
fn constants(keys: Vec<ScriptName>, layout: Layout) -> Constants {
    let tagged = keys.iter().any(|(_, key)| key.contains('{'));
    // Other systems' keys have no place for the latest time.
    let missing = ["CLOCK", "EVENTS"].map(|name| (name, "false".to_owned()));
    let missing: Vec<_> = missing
        .into_iter()
        .filter(|(name, _)| keys.iter().all(|(known, _)| known != name))
        .collect();
    let keys = keys
        .into_iter()
        .map(|(name, key)| (name, format!("'{key}'")));
    let bounds = [
        ("REPLY_TTL", REPLY_TTL_MS),
        ("MOST_AUDIT", MAX_AUDIT.into()),
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
    let words = layout.words().into_iter();
    let words = words.map(|(name, literal)| (name, literal.to_owned()));
    let words = words.chain(layout.fields());
    Constants::new(keys.chain(missing).chain(bounds).chain(tagged).chain(words))
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The scripts of one namespace, called by digest. Each is assembled at its first use: a client that only submits
/// needs three of fifty.
#[derive(Debug, Clone)]
pub(crate) struct Named(Arc<Making>);

#[derive(Debug)]
struct Making {
    schema: Protocol,
    layout: Layout,
    constants: Constants,
    /// Types of the keys, if the scripts use any that a call does not name.
    table: Option<KeyTable>,
    sources: Scripts,
    made: [OnceLock<Made>; Verb::ALL.len()],
}

/// An assembled script.
#[derive(Debug)]
struct Made {
    script: Script,
    /// True if it only reads.
    reads: bool,
}

impl Named {
    /// Loads the scripts that the server does not know, so that their first calls need not send them.
    pub(crate) async fn load(&self, conn: &Conn) -> Result<(), Error> {
        let Making { schema, layout, .. } = &*self.0;
        let all = Verb::ALL.into_iter();
        let all = all.filter(|verb| verb.protocol() == *schema && layout.has(*verb));
        let all: Vec<_> = all.map(|verb| &self.get(verb).script).collect();
        let mut exists = redis::cmd("SCRIPT");
        exists.arg("EXISTS");
        for script in &all {
            exists.arg(script.get_hash());
        }
        // A user without the right to look loads all.
        let known: Vec<bool> = exists
            .query_async(&mut conn.clone())
            .await
            .unwrap_or_default();
        let mut pipe = redis::pipe();
        for (at, script) in all.into_iter().enumerate() {
            if known.get(at) != Some(&true) {
                pipe.load_script(script).ignore();
            }
        }
        if pipe.is_empty() {
            return Ok(());
        }
        let loaded = pipe.query_async(&mut conn.clone()).await;
        loaded.map_err(|source| Error::Call {
            verb: "load",
            source,
        })
    }

    fn get(&self, verb: Verb) -> &Made {
        let Making {
            schema,
            layout,
            constants,
            sources,
            made,
            ..
        } = &*self.0;
        debug_assert_eq!(verb.protocol(), *schema, "{verb:?} is of another schema");
        made[verb as usize].get_or_init(|| {
            let source = constants.put_into(sources.source(verb, *layout));
            let flags = verb.flags();
            Made {
                script: Script::new(&format!("{flags}{source}")),
                reads: flags == NO_WRITES,
            }
        })
    }
}
