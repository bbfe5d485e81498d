//! Requests under way, which their client may cancel.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Requests under way, by name: their ids, which clients choose.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    begun: u64,
    open: Vec<(u64, String, CancellationToken)>,
}

/// A request under way; dropped when it has ended.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    all: &'a UnderWay,
    number: u64,
    token: CancellationToken,
}

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request.
    pub(super) fn begin(&self, name: String) -> Begun<'_> {
        let mut requests = self.lock();
        requests.begun += 1;
        let (number, token) = (requests.begun, CancellationToken::new());
        requests.open.push((number, name, token.clone()));
        Begun {
            all: self,
            number,
            token,
        }
    }

    /// Cancels all requests of a name.
    pub(super) fn cancel(&self, name: &str) {
        let requests = self.lock();
        let named = requests.open.iter().filter(|(_, it, _)| it == name);
        named.for_each(|(_, _, token)| token.cancel());
    }
}

impl Begun<'_> {
    /// Runs the request; `None` if it was cancelled.
    pub(super) async fn unless_cancelled<T>(
        self,
        run: impl Future<Output = Option<T>>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            () = self.token.cancelled() => None,
            done = run => done,
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.all
            .lock()
            .open
            .retain(|(number, ..)| *number != self.number);
    }
}
