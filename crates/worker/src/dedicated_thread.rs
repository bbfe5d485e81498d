//! A thread with a runtime of its own, for work that busy handlers must not delay, and timeouts for the calls on it.
//! The workers of a process can share one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork_broker::{Error, Outages};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use std::convert::Infallible as Never;

/// A thread with a runtime. It ends after its last task, once this is dropped.
#[derive(Debug)]
pub struct Host {
    runtime: tokio::runtime::Handle,
    tasks: TaskTracker,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// A running task on such a thread. Dropping it requests its end.
#[derive(Debug)]
pub struct Thread {
    end: CancellationToken,
    task: Option<tokio::task::JoinHandle<()>>,
    host: Option<Arc<Host>>,
}

impl Host {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Arc<Self>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (handle, tasks) = (runtime.handle().clone(), TaskTracker::new());
        let all = tasks.clone();
        let thread = std::thread::Builder::new()
            .name("meshwork-keep".to_owned())
            .spawn(move || runtime.block_on(all.wait()))?;
        Ok(Arc::new(Self {
            runtime: handle,
            tasks,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// Starts a task that runs `what` until it returns or [`Thread::end`] is called, and then runs `last`.
    pub fn run(
        self: Arc<Self>,
        what: impl Future<Output = ()> + Send + 'static,
        last: impl Future<Output = ()> + Send + 'static,
    ) -> Thread {
        let end = CancellationToken::new();
        let ended = end.clone();
        let task = async move {
            tokio::select! {
                () = what => {}
                () = ended.cancelled() => {}
            }
            last.await;
        };
        let task = self.tasks.spawn_on(task, &self.runtime);
        Thread {
            end,
            task: Some(task),
            host: Some(self),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.tasks.close();
    }
}

impl Thread {
    /// Ends the task. Returns when it has ended, and the thread too if this was its last task.
    pub(crate) async fn end(mut self) {
        self.end.cancel();
        let Some(task) = self.task.take() else { return };
        // The task ends within milliseconds: its steps are short, and pending calls are dropped.
        let mut went_well = task.await.is_ok();
        let host = self.host.take().and_then(Arc::into_inner);
        let thread = host.and_then(|host| {
            let mut thread = host.thread.lock().unwrap_or_else(PoisonError::into_inner);
            thread.take()
        });
        if let Some(thread) = thread {
            // `host` is dropped, so the thread ends.
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            went_well &= matches!(joined, Ok(Ok(())));
        }
        if !went_well {
            tracing::error!("heartbeat thread panicked");
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// Limits a call to `most`.
pub async fn within<T>(
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
pub async fn best_effort<T>(
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

    use super::best_effort;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn only_a_connection_that_is_lost_ends_the_others() {
        let outages = &Outages::default();
        let never = std::future::pending::<Result<(), Error>>();
        assert!(matches!(
            best_effort(outages, "x", SHORT, never).await,
            Ok(None)
        ));
        let (given, most) = (2, 1);
        let refused = Err::<(), _>(Error::TooMany {
            verb: "x",
            most,
            given,
        });
        let refused = best_effort(outages, "x", LONG, async { refused }).await;
        assert!(matches!(refused, Ok(None)));
        let lost = Err::<(), _>(Error::timed_out("x"));
        assert!(
            best_effort(outages, "x", LONG, async { lost })
                .await
                .is_err()
        );
        let done = best_effort(outages, "x", LONG, async { Ok(1) }).await;
        assert!(matches!(done, Ok(Some(1))));
    }
}
