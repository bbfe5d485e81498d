//! One file per verb: the typed function over its script, and what it takes and gives.

mod adopt;
mod batch;
mod cancel;
mod claim;
mod control;
mod delete;
mod enqueue;
mod fail;
mod finish;
mod inspect;
mod leave;
mod log;
mod outcome;
mod park;
mod present;
mod promote;
mod prune;
mod reclaim;
mod release;
mod renew;
mod retry;
mod settle;
mod watch;

pub use cancel::Cancelled;
pub use claim::{Claim, Claimed, Taken};
pub use control::{Control, Controlled};
pub use delete::Deleted;
pub use enqueue::{Enqueued, MAX_ENQUEUE};
pub use fail::Failed;
pub use finish::Finished;
pub use inspect::{JobPage, QueueInfo};
pub use log::{Line, Logged};
pub use park::Parking;
pub use present::{PRESENT_FOR, Presence};
pub use promote::Promoted;
pub use prune::Retention;
pub use reclaim::Reclaimed;
pub use release::Released;
pub use renew::{Listener, Renewal, Renewed};
pub use retry::Retried;
pub use watch::Watched;

use meshwork_model::job::Job;

use crate::Error;

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
