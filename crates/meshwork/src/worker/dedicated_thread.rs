//! A thread with a runtime of its own, for work that busy handlers must not delay, and timeouts for the calls on it.

use std::time::Duration;

use meshwork_broker::{Error, Outages};
use tokio_util::sync::CancellationToken;

pub(crate) use std::convert::Infallible as Never;

/// A running thread. Dropping it requests its end.
#[derive(Debug)]
pub(crate) struct Thread {
    end: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Thread {
    /// Starts a thread that runs `what` until it returns or [`Thread::end`] is called, and then runs `last`.
    pub(crate) fn start(
        what: impl Future<Output = ()> + Send + 'static,
        last: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<Self> {
        let end = CancellationToken::new();
        let ended = end.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new()
            .name("meshwork-keep".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = what => {}
                        () = ended.cancelled() => {}
                    }
                    last.await;
                });
            })?;
        let thread = Some(thread);
        Ok(Self { end, thread })
    }

    /// Ends the thread. Returns when it has ended.
    pub(crate) async fn end(mut self) {
        self.end.cancel();
        if let Some(thread) = self.thread.take() {
            // The thread ends within milliseconds: its steps are short, and pending calls are dropped.
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the thread that keeps what runs panicked");
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// Limits a call to `most`.
pub(crate) async fn within<T>(
    verb: &'static str,
    most: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(most, call)
        .await
        .unwrap_or_else(|_| Err(Error::timed_out(verb)))
}

/// Limits a call that shares its connection with renewals, which are more important. A late or refused call is logged
/// and returns `None`; a later round repeats it.
///
/// # Errors
/// The connection is lost for all its users.
/// If the connection is lost, to all that use it.
pub(crate) async fn in_turn<T>(
    outages: &Outages,
    verb: &'static str,
    most: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<Option<T>, Error> {
    let answer = tokio::time::timeout(most, call).await;
    let late = answer.is_err();
    match answer.unwrap_or_else(|_| Err(Error::timed_out(verb))) {
        Err(error) if error.is_connection_lost() && !late => Err(error),
        answer => Ok(outages.observe(verb, answer).ok()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use meshwork_broker::{Error, Outages};

    use super::in_turn;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn only_a_connection_that_is_lost_ends_the_others() {
        let outages = &Outages::default();
        let never = std::future::pending::<Result<(), Error>>();
        assert!(matches!(
            in_turn(outages, "x", SHORT, never).await,
            Ok(None)
        ));
        let (given, most) = (2, 1);
        let refused = Err::<(), _>(Error::TooMany {
            verb: "x",
            most,
            given,
        });
        let refused = in_turn(outages, "x", LONG, async { refused }).await;
        assert!(matches!(refused, Ok(None)));
        let lost = Err::<(), _>(Error::timed_out("x"));
        assert!(in_turn(outages, "x", LONG, async { lost }).await.is_err());
        let done = in_turn(outages, "x", LONG, async { Ok(1) }).await;
        assert!(matches!(done, Ok(Some(1))));
    }
}
