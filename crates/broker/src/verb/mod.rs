//! One file per verb: the typed function over its script, and what it takes and gives.

mod batch;
mod cancel;
mod claim;
mod delete;
mod enqueue;
mod fail;
mod finish;
mod inspect;
mod leave;
mod outcome;
mod park;
mod reclaim;
mod release;
mod renew;
mod retry;

pub use cancel::Cancelled;
pub use claim::{Claim, Claimed, Taken};
pub use delete::Deleted;
pub use enqueue::{Enqueued, MAX_ENQUEUE};
pub use fail::Failed;
pub use finish::Finished;
pub use inspect::{JobPage, QueueInfo};
pub use park::Parking;
pub use reclaim::Reclaimed;
pub use release::Released;
pub use renew::{Listener, Renewal};
pub use retry::Retried;

use meshwork_model::job::Job;

use crate::Error;

/// How long a reply waits to be fetched, in milliseconds (one hour): long enough for a client that
/// reconnects, short enough that forgotten ones do not pile up.
const REPLY_TTL_MS: u64 = 3_600_000;

/// The most items that one script call handles: a longer one would hold up everybody else.
pub const MAX_ITEMS: usize = 1000;

/// A hash as it comes. Others name their fields as they like.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A record read from a hash.
fn job(id: &str, fields: Fields) -> Job {
    Job::from_fields(
        id,
        fields.into_iter().map(|(name, value)| (text(name), value)),
    )
}

/// Bytes as text, where others may have written what is none.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn at_most(verb: &'static str, most: usize, given: usize) -> Result<(), Error> {
    if given > most {
        Err(Error::TooMany { verb, most, given })
    } else {
        Ok(())
    }
}

/// Reads a script's one-word answer.
fn word<T>(verb: &'static str, answer: String, known: &[(&str, T)]) -> Result<T, Error>
where
    T: Copy,
{
    known
        .iter()
        .find(|(word, _)| *word == answer)
        .map(|(_, meaning)| *meaning)
        .ok_or(Error::Answer { verb, answer })
}
