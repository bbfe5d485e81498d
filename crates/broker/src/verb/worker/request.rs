//! request: requests to one running worker, of any protocol. A request is a key that expires. The worker reads it with its
//! heartbeat and deletes it after it has obeyed, so that the key's end is the confirmation and no lost reply loses a request.

use std::time::Duration;

use meshwork_model::worker_request::WorkerRequest;
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::session::Session;

/// Pause between two checks of the sender.
const POLL: Duration = Duration::from_millis(50);
/// Time for which a request outlives the wait of its sender, who normally withdraws it.
const OUTLIVES: Duration = Duration::from_secs(5);

impl<K> Session<K> {
    /// Stores the request `key`, and waits up to `wait` until the worker has obeyed. Returns whether it has. Otherwise the
    /// request is withdrawn. Without a withdrawal, since the caller was killed, it expires 5 s later.
    ///
    /// # Errors
    /// The server refuses a call.
    pub async fn request_worker(&self, key: &str, wait: Duration) -> Result<bool, Error> {
        let until = Instant::now() + wait;
        let mut set = redis::cmd("SET");
        let live = (wait + OUTLIVES).as_millis() as u64;
        set.arg(key).arg(1).arg("PX").arg(live);
        let () = self.ask("request", &set).await?;
        while Instant::now() < until {
            match self.exists(&[key]).await {
                Ok(false) => return Ok(true),
                // A worker that stops may be the owner of the data directory: another process becomes the owner.
                Err(error) if !error.is_temporary() => return Err(error),
                _ => sleep(POLL).await,
            }
        }
        let withdrawn: bool = self.ask("request", redis::cmd("DEL").arg(key)).await?;
        Ok(!withdrawn)
    }

    /// Calls `obey` with each request to a worker, and then deletes the request. `key` gives the key of a request.
    ///
    /// # Errors
    /// The server refuses a call; requests stay that were not deleted.
    pub async fn obey_requests(
        &self,
        key: impl Fn(WorkerRequest) -> String,
        obey: &(dyn Fn(WorkerRequest) + Sync),
    ) -> Result<(), Error> {
        let keys = WorkerRequest::ALL.map(&key);
        if !self.exists(&keys.each_ref().map(String::as_str)).await? {
            return Ok(());
        }
        for (request, key) in WorkerRequest::ALL.into_iter().zip(&keys) {
            if self.exists(&[key]).await? {
                obey(request);
                let () = self.ask("requests", redis::cmd("DEL").arg(key)).await?;
            }
        }
        Ok(())
    }

    async fn exists(&self, keys: &[&str]) -> Result<bool, Error> {
        let found: usize = self.ask("requests", redis::cmd("EXISTS").arg(keys)).await?;
        Ok(found > 0)
    }
}
