//! Memory of answers that their callers have not taken yet. It is bounded in all and for each caller; of lists, few pages are
//! read at once, so that no caller fills the connection to the store.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use tokio::sync::watch;

use super::query;
use crate::api::error::{ApiError, Code};
use crate::api::{HERO, METHODS};
use crate::http::guard::{Holder, Share, Shares};

/// The most bytes of all answers that were not taken, 64 MiB, as of bodies.
const BYTES: usize = 64 * 1024 * 1024;
/// Bytes that a call has from its beginning: most answers have less.
const RESERVED: usize = 16 * 1024;
/// Pages of lists that are read at once. A page has 1,000 items at most, and takes the store some milliseconds.
const PAGES: usize = 16;
/// Bytes of answers of one socket that may wait when its next call begins.
const UNSENT: usize = 64 * 1024;

/// Names of the methods that read pages of lists.
static OF_PAGES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let has_pages = |name: &str| {
        METHODS
            .iter()
            .any(|it| it.name == name && query::has(it, "limit"))
    };
    let own = METHODS.iter().filter(|it| has_pages(it.name));
    let own = own.flat_map(|it| it.aliases.iter().copied().chain([it.name]));
    let hero = HERO
        .iter()
        .filter(|it| has_pages(it.stands_for.trim_matches('`')));
    own.chain(hero.map(|it| it.name)).collect()
});

/// Memory for answers.
#[derive(Debug)]
pub(super) struct Answers {
    bytes: Arc<Shares>,
    pages: Arc<Shares>,
}

/// An answer; its memory is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Answer {
    text: String,
    _memory: Option<Share>,
    socket: Option<Unsent>,
}

/// Bytes of answers that wait for the client of a socket.
#[derive(Debug, Clone)]
pub(super) struct Unsent(Arc<watch::Sender<usize>>);

impl Answers {
    pub(super) fn new() -> Self {
        Self {
            bytes: Shares::new(BYTES),
            pages: Shares::new(PAGES),
        }
    }

    /// Takes memory for the answer of a call.
    ///
    /// # Errors
    /// If answers that the caller has not taken fill its share.
    pub(super) fn memory(&self, holder: &Holder) -> Result<Share, ApiError> {
        self.bytes.take(holder, RESERVED).ok_or_else(full)
    }

    /// Waits until a method may read a page of a list, and its socket has taken the answers before. Returns nothing for other
    /// methods.
    pub(super) async fn page(
        &self,
        method: &str,
        holder: &Holder,
        socket: Option<&Unsent>,
    ) -> Option<Share> {
        loop {
            if let Some(socket) = socket {
                socket.is_low().await;
            }
            if !OF_PAGES.contains(method) {
                return None;
            }
            let page = self.pages.wait(holder, 1).await;
            // Answers may have come during the wait.
            if socket.is_none_or(Unsent::is_low_now) {
                return Some(page);
            }
        }
    }
}

/// Takes memory for a part of an answer.
///
/// # Errors
/// If answers that the caller has not taken fill its share.
pub(crate) fn grow(memory: &mut Share, bytes: usize) -> Result<(), ApiError> {
    match memory.grow(bytes) {
        true => Ok(()),
        false => {
            Err(full().hint("the call was carried out: repeat one that changes with the same id"))
        }
    }
}

fn full() -> ApiError {
    let message =
        "answers that this caller has not taken fill its share of the memory: read them first";
    ApiError::new(Code::TooManyRequests, message)
}

impl Answer {
    /// Returns an answer whose parts have their memory.
    pub(crate) fn new(text: String, memory: Share) -> Self {
        Self {
            text,
            _memory: Some(memory),
            socket: None,
        }
    }

    /// Returns one that is too short to be counted.
    pub(super) fn short(text: String) -> Self {
        Self {
            text,
            _memory: None,
            socket: None,
        }
    }

    /// Counts it among the answers that wait for the client of a socket.
    pub(super) fn over(mut self, socket: &Unsent) -> Self {
        let length = self.text.len();
        socket.0.send_modify(|bytes| *bytes += length);
        self.socket = Some(socket.clone());
        self
    }

    /// The bytes; the memory is given back with the last clone of them.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(Unsent(bytes)) = &self.socket {
            bytes.send_modify(|bytes| *bytes -= self.text.len());
        }
    }
}

impl Unsent {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    fn is_low_now(&self) -> bool {
        *self.0.borrow() <= UNSENT
    }

    /// Waits until the client has taken most of what was sent.
    async fn is_low(&self) {
        let mut bytes = self.0.subscribe();
        // The sender is here.
        let _ = bytes.wait_for(|bytes| *bytes <= UNSENT).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_with_pages_are_known_by_all_their_names() {
        for name in [
            "job.list",
            "job.logs",
            "dead.list",
            "list_jobs",
            "jobs.list",
            "get_job_logs",
        ] {
            assert!(OF_PAGES.contains(name), "{name}");
        }
        for name in ["job.get", "job.create", "fetch_nonce", "subscribe"] {
            assert!(!OF_PAGES.contains(name), "{name}");
        }
    }

    #[test]
    fn a_caller_who_takes_no_answer_has_a_share_of_the_memory() {
        let answers = Answers::new();
        let (greedy, other) = (Holder::Caller("a".into()), Holder::Caller("b".into()));
        let socket = Unsent::new();
        let mut kept = Vec::new();
        let full = loop {
            let memory = answers.memory(&greedy);
            let memory = memory.and_then(|mut memory| {
                grow(&mut memory, 1024 * 1024)?;
                Ok(memory)
            });
            match memory {
                Ok(memory) => {
                    kept.push(Answer::new("x".repeat(1024 * 1024), memory).over(&socket));
                }
                Err(full) => break full,
            }
        };
        assert_eq!((full.code, kept.len()), (Code::TooManyRequests, 32));
        assert!(!socket.is_low_now());
        assert!(grow(&mut answers.memory(&other).unwrap(), 8 * 1024 * 1024).is_ok());
        // A clone of the bytes keeps the memory until it is written.
        let bytes = kept.pop().unwrap().into_bytes();
        let clone = bytes.clone();
        drop((kept, bytes));
        assert!(!socket.is_low_now());
        drop(clone);
        assert!(socket.is_low_now());
        assert!(grow(&mut answers.memory(&greedy).unwrap(), 30 * 1024 * 1024).is_ok());
    }
}
