//! The Lua scripts: one per verb, made of the files that each names at its top, with the names of the namespace's
//! keys. What they do stands in their headers; how each is called, in the file of its verb.

mod answer;
mod call;
mod constants;
mod expand;
mod files;
#[cfg(test)]
mod names;
#[cfg(test)]
mod tests;
mod verb;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use meshwork_model::bananas;
use meshwork_model::job::limits::{DEFAULT_TIMEOUT, MAX_TIMEOUT};
use meshwork_model::keys::bananas::Bananas;
use meshwork_model::keys::context::NodeKeys;
use meshwork_model::keys::hero::{Hero, ScriptName};
use meshwork_model::keys::nooble::QueueManager;
use redis::Script;

use crate::Error;
use crate::conn::Conn;
pub(crate) use answer::Answer;
pub(crate) use call::Call;
use constants::Constants;
use expand::{Top, expand};
use files::text;
pub use verb::{Schema, Verb};

/// How each script begins: by this line a node of a cluster refuses keys of two slots, and a server without memory
/// refuses the call before it has written anything.
const CHECKED: &str = "#!lua\n";
/// How one begins that runs although the server's memory is full.
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
    /// The script as it is sent, but for the names of keys, which are another namespace's elsewhere. One whose files do
    /// not fit together, which a test finds, says so when it is called.
    #[must_use]
    pub fn source(self, layout: Layout) -> &'static str {
        static MADE: [[OnceLock<String>; Verb::ALL.len()]; Layout::ALL.len()] =
            [const { [const { OnceLock::new() }; Verb::ALL.len()] }; Layout::ALL.len()];
        // They stand in the order in which they are declared.
        MADE[layout as usize][self as usize].get_or_init(|| {
            expand(&self.file(), layout).unwrap_or_else(|fault| {
                let fault = fault.to_string().replace(['\\', '\'', '\n'], " ");
                format!("return redis.error_reply('ERR {fault}')")
            })
        })
    }

    /// The line that stands before all others.
    fn flags(self) -> &'static str {
        let file = self.file();
        let top = text(&file).map(|text| Top::read(&file, text));
        match top {
            Some(Ok(Top {
                allow_oom: true, ..
            })) => ALLOW_OOM,
            _ => CHECKED,
        }
    }
}

/// Dead letters of one queue of actions kept, more or less.
const MOST_DEAD: u64 = 10_000;
/// How long failed and lost runs of an action are remembered, in milliseconds (one day): far longer than the
/// longest pause between two.
const TRIES_FOR_MS: u64 = 86_400_000;

/// How jobs stand in the store: the same scripts work on all, with other constants and a few other files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A namespace of Hero.
    Hero,
    /// A context.
    Context,
}

impl Layout {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Hero, Self::Context];

    /// The layout of these keys.
    fn of(keys: &Hero) -> Self {
        match keys.context() {
            Some(_) => Self::Context,
            None => Self::Hero,
        }
    }

    /// The constants that are not the same everywhere: the status of a job that waits for others, the field of its
    /// output, and whether there are clients of old, who look for replies on other lists.
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

    /// Whether there is any use for a script of Hero's: no type of a context migrates, and none of its jobs is or was
    /// one of Bananas.
    fn has(self, verb: Verb) -> bool {
        self == Self::Hero || !matches!(verb, Verb::Migrate | Verb::TakeOver | Verb::GiveBack)
    }
}

/// All scripts: as they are, or altered.
#[derive(Debug, Clone, Default)]
pub struct Scripts(Option<Arc<[[String; Verb::ALL.len()]]>>);

impl Scripts {
    /// The scripts of all layouts, each as `alter` makes it: tests break them on purpose and expect to be told.
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

    /// The scripts for the keys of one namespace, or of one context.
    pub(crate) fn named(&self, keys: &Hero) -> Named {
        let layout = Layout::of(keys);
        let constants = constants(keys.script_names(), layout);
        self.of(Schema::Hero, layout, constants)
    }

    /// Those for jobs of Bananas.
    pub(crate) fn named_bananas(&self, keys: &Bananas) -> Named {
        let constants = constants(keys.script_names(), Layout::Hero);
        self.of(Schema::Bananas, Layout::Hero, constants)
    }

    /// Those for actions of Nooble4.
    pub(crate) fn named_nooble(&self, names: &QueueManager) -> Named {
        let constants = constants(names.script_names(), Layout::Hero);
        self.of(Schema::Nooble, Layout::Hero, constants)
    }

    /// Those for records and messages of contexts.
    pub(crate) fn named_context(&self) -> Named {
        let constants = constants(NodeKeys.script_names(), Layout::Hero);
        self.of(Schema::Context, Layout::Hero, constants)
    }

    fn of(&self, schema: Schema, layout: Layout, constants: Constants) -> Named {
        Named(Arc::new(Making {
            schema,
            layout,
            constants,
            sources: self.clone(),
            made: std::array::from_fn(|_| OnceLock::new()),
        }))
    }
}

/// The names of keys and the bounds, as the scripts know them. A namespace holds no quotes.
fn constants(keys: Vec<ScriptName>, layout: Layout) -> Constants {
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
    let words = layout.words().into_iter();
    let words = words.map(|(name, literal)| (name, literal.to_owned()));
    Constants::new(keys.chain(bounds).chain(tagged).chain(words))
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
    layout: Layout,
    constants: Constants,
    sources: Scripts,
    made: [OnceLock<Script>; Verb::ALL.len()],
}

impl Named {
    /// Gives all scripts to the server, so that none has to be sent when it is first needed.
    pub(crate) async fn load(&self, conn: &Conn) -> Result<(), Error> {
        let all = Verb::ALL.into_iter();
        let Making { schema, layout, .. } = &*self.0;
        for verb in all.filter(|verb| verb.schema() == *schema && layout.has(*verb)) {
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
            layout,
            constants,
            sources,
            made,
        } = &*self.0;
        debug_assert_eq!(verb.schema(), *schema, "{verb:?} is of another schema");
        made[verb as usize].get_or_init(|| {
            let source = constants.put_into(sources.source(verb, *layout));
            Script::new(&format!("{}{source}", verb.flags()))
        })
    }
}
