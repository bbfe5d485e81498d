//! The verbs for jobs of Bananas: one file each, over scripts that do not parse records. Records are read and edited
//! here. A script stores the edited one only if the stored one is still the one that was read.

mod claim;
mod configure;
mod cron;
mod dead;
mod enqueue;
mod export;
mod import;
mod inspect;
mod move_to_route;
mod orphans;
mod peek;
mod promote;
mod reclaim;
mod release;
mod renew;
mod report;
mod reroute;
mod stats;
mod subscribe;

use meshwork_macros::boxed;
use std::ops::Deref;
use std::sync::Arc;

use meshwork_model::bananas::{Corrupt, Draft, Piece, Record, corrupted, missing};
use meshwork_model::keys::bananas::BananasKeys as Keys;
use redis::{FromRedisValue, ParsingError, Value};

pub use claim::{Claim, Claimed, Taken};
pub use configure::RouteLimit;
pub use cron::{Crons, PutCron, StoredCron};
pub use dead::RetriedDead;
pub use enqueue::Enqueued;
pub use export::{ExportItem, Exported};
pub use import::{ImportFrom, Imported, MAX_OVER};
pub use inspect::{Depth, Depths};
pub use move_to_route::Moved;
pub use orphans::Orphan;
pub use peek::PeekedJobs;
pub use promote::{Due, Promoted};
pub use reclaim::Reclaimed;
pub use release::Requeue;
pub use renew::Renewal;
pub use report::{Completed, Completion, Failed};
pub use reroute::Reroute;
pub use stats::{QueueStats, Stats};

use crate::clock::Clock;
use crate::conn::{Conn, ConnectError, Target};
use crate::error::Error;
use crate::script::{Call, Scripts, Verb};
use crate::session::Session;
use crate::verb::sha1;

/// The verbs for the jobs of one deployment of Bananas; cheap to clone.
#[derive(Debug, Clone)]
pub struct Bananas {
    session: Session<Keys>,
}

impl Deref for Bananas {
    type Target = Session<Keys>;

    fn deref(&self) -> &Session<Keys> {
        &self.session
    }
}

impl Bananas {
    /// Connects to `target`, with the rule for replicas in its URL.
    ///
    /// # Errors
    /// As for [`Conn::open`].
    #[boxed]
    pub async fn connect(target: &Target, keys: Keys) -> Result<Self, ConnectError> {
        let conn = Conn::open(target, keys.prefix()).await;
        let mut bananas = Self::new(conn.map_err(ConnectError::of_prefix)?, keys);
        bananas.session.acknowledge(target.acknowledge());
        Ok(bananas)
    }

    /// Returns the verbs over an open connection.
    #[must_use]
    pub fn new(conn: Conn, keys: Keys) -> Self {
        let scripts = Scripts::default().named_bananas(&keys);
        let session = Session::new(conn, keys, scripts);
        Self { session }
    }

    /// Returns the same verbs over a separate connection.
    ///
    /// # Errors
    /// The connection cannot be opened.
    #[boxed]
    pub async fn dedicated(&self) -> Result<Self, Error> {
        let session = self.session.dedicated().await?;
        Ok(Self { session })
    }

    /// Sets another clock than the server's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.session.clock = clock;
        self
    }

    /// Sets altered scripts.
    #[must_use]
    pub fn with_scripts(mut self, scripts: &Scripts) -> Self {
        self.session.scripts = scripts.named_bananas(&self.session.keys);
        self
    }

    /// Begins a call with the time.
    fn call(&self, verb: Verb) -> Call<'_> {
        self.scripts.call(verb).arg(self.clock.argument())
    }
}

/// The content of a job's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A valid record.
    Job(Arc<Record>),
    /// Text that is not a valid record, and the reason.
    Corrupt(Vec<u8>, Corrupt),
    /// The key does not exist.
    Missing,
    /// The key has another type, and is not changed.
    Odd,
}

impl Found {
    fn read(state: &str, text: Vec<u8>) -> Self {
        match (state, Record::read(&text)) {
            ("missing", _) => Self::Missing,
            ("there", Ok(record)) => Self::Job(Arc::new(record)),
            ("there", Err(why)) => Self::Corrupt(text, why),
            _ => Self::Odd,
        }
    }

    /// Returns the digest by which scripts recognize this content.
    fn digest(&self) -> String {
        match self {
            Self::Job(record) => sha1(record.text().as_bytes()),
            Self::Corrupt(bytes, _) => sha1(bytes),
            Self::Missing => "missing".to_owned(),
            Self::Odd => "odd".to_owned(),
        }
    }

    /// Returns the length of the record, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Job(record) => record.text().len(),
            Self::Corrupt(bytes, _) => bytes.len(),
            Self::Missing | Self::Odd => 0,
        }
    }

    /// Returns the reason why this is not a job that can run, if there is one.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Job(_) => None,
            Self::Corrupt(_, why) => Some(format!("the record is no job: {why}")),
            Self::Missing => Some("there is no record".to_owned()),
            Self::Odd => Some("the key of the record holds something else".to_owned()),
        }
    }

    /// Returns the record of the id as a dead letter.
    fn epitaph(&self, id: &[u8]) -> Option<Draft> {
        let id = String::from_utf8_lossy(id);
        match self {
            Self::Job(record) => Some(record.text().to_owned().into()),
            Self::Corrupt(bytes, why) => Some(corrupted(&id, bytes, why).into()),
            Self::Missing => Some(missing(&id).into()),
            Self::Odd => None,
        }
    }
}

/// A script's one-word answer, with the content of the job's key if it has changed.
struct Answered {
    word: String,
    found: Found,
}

impl FromRedisValue for Answered {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (word, state, text): (String, String, Vec<u8>) = redis::from_redis_value(value)?;
        let found = Found::read(&state, text);
        Ok(Self { word, found })
    }
}

/// Pushes the arguments of a record with placeholders for times: their number, then alternately text and an offset,
/// ending with text.
fn push_draft(call: &mut Call<'_>, draft: Option<&Draft>) {
    let Some(draft) = draft else {
        call.push_arg(-1);
        return;
    };
    let times = draft.pieces().iter();
    let times = times.filter(|piece| matches!(piece, Piece::Now { .. }));
    call.push_arg(times.count());
    let mut text = "";
    for piece in draft.pieces() {
        match piece {
            Piece::Text(words) => text = words,
            Piece::Now { plus_ms } => {
                call.push_arg(text);
                call.push_arg(plus_ms);
                text = "";
            }
        }
    }
    call.push_arg(text);
}
