//! The calls of the client. They know nothing of Node.js.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use meshwork::view::JobView;
use meshwork::{Cancelled, Error, JobId, JobRecord, JobRequest};
use meshwork_model::name::NameError;
use meshwork_model::spec::JobSpec;

use crate::error::ClientError;

/// Longest wait for a result that has no limit: the wait begins again after it.
const ONE_WAIT: Duration = Duration::from_secs(600);
/// Prefix of the URL of a folder.
const DIRECTORY: &str = "dir:";
/// URL of a store in the memory of this process.
const MEMORY: &str = "memory:";

/// A client of a store. It connects with the first call.
#[derive(Debug)]
pub(crate) struct Client {
    url: Option<String>,
    namespace: Option<String>,
    connected: Mutex<Option<meshwork::Client>>,
}

impl Client {
    /// The URL is that of a server, `dir:FOLDER` or `memory:`; none is that of
    /// `REDIS_URL`, or else the data directory.
    pub(crate) fn new(url: Option<String>, namespace: Option<String>) -> Self {
        Self {
            url,
            namespace,
            connected: Mutex::default(),
        }
    }

    /// Enqueues a job in JSON, and returns its id. With `reply`, its end is sent to those who wait for it.
    pub(crate) async fn enqueue(&self, spec: &str, reply: bool) -> Result<String, ClientError> {
        let request = request(spec)?.reply(reply);
        let id = self.connect().await?.enqueue(request).await?;
        Ok(id.to_string())
    }

    /// Enqueues jobs in JSON, and returns their ids.
    pub(crate) async fn enqueue_many(&self, specs: &[String]) -> Result<Vec<String>, ClientError> {
        let requests: Result<Vec<_>, _> = specs.iter().map(|spec| request(spec)).collect();
        let answers = self.connect().await?.enqueue_all(requests?).await?;
        answers.into_iter().map(|id| Ok(id?.to_string())).collect()
    }

    /// Returns a job in JSON.
    pub(crate) async fn job(&self, id: &str) -> Result<String, ClientError> {
        let id = job_id(id)?;
        let client = self.connect().await?;
        let job = client.status(&id).await?;
        Ok(json(&client, &job).await?)
    }

    /// Waits until a job has ended, at most this number of seconds, and returns it in JSON.
    pub(crate) async fn wait(&self, id: &str, seconds: Option<f64>) -> Result<String, ClientError> {
        let id = job_id(id)?;
        let limit = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        let client = self.connect().await?;
        let job = loop {
            match client.wait(&id, limit.unwrap_or(ONE_WAIT)).await {
                Err(Error::JobWaitTimeout { .. }) if limit.is_none() => {}
                ended => break ended?,
            }
        };
        Ok(json(&client, &job).await?)
    }

    /// Cancels a job, and returns what became of it.
    pub(crate) async fn cancel(&self, id: &str) -> Result<String, ClientError> {
        let id = job_id(id)?;
        let word = match self.connect().await?.cancel(&id).await? {
            Cancelled::Cancelled => "cancelled",
            Cancelled::Stopping => "cancelling",
            Cancelled::Ended => "ended",
            Cancelled::Missing => return Err(Error::JobNotFound { id }.into()),
        };
        Ok(word.to_owned())
    }

    /// Returns the lines of the log of a job, a list of texts in JSON.
    pub(crate) async fn logs(&self, id: &str) -> Result<String, ClientError> {
        let id = job_id(id)?;
        let lines = self.connect().await?.log_lines(&id).await?;
        let lines = lines.iter().map(|line| String::from_utf8_lossy(&line.line));
        let lines: Vec<_> = lines.collect();
        Ok(serde_json::to_string(&lines).unwrap_or_default())
    }

    /// Closes the connection. A later call opens it again.
    pub(crate) fn close(&self) {
        self.known().take();
    }

    fn known(&self) -> MutexGuard<'_, Option<meshwork::Client>> {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connected client.
    async fn connect(&self) -> Result<meshwork::Client, Error> {
        if let Some(client) = &*self.known() {
            return Ok(client.clone());
        }
        let client = self.open().await?;
        // Another call may have connected meanwhile.
        Ok(self.known().get_or_insert(client).clone())
    }

    async fn open(&self) -> Result<meshwork::Client, Error> {
        let of_host = || {
            std::env::var("REDIS_URL")
                .ok()
                .filter(|url| !url.is_empty())
        };
        let url = self.url.clone().or_else(of_host);
        let mut builder = meshwork::Client::builder().name(meshwork::local_name("node"));
        if let Some(namespace) = &self.namespace {
            builder = builder.namespace(namespace);
        }
        let folder = match url.as_deref() {
            Some(MEMORY) => return Ok(meshwork::Client::in_memory()),
            Some(url) => match url.strip_prefix(DIRECTORY) {
                Some(folder) => Some(PathBuf::from(folder)),
                None => return builder.url(url).connect().await,
            },
            None => meshwork::data_directory(),
        };
        match folder {
            Some(folder) => builder.directory(folder).connect().await,
            None => builder.connect().await,
        }
    }
}

/// Reads a job in JSON.
fn request(spec: &str) -> Result<JobRequest, ClientError> {
    let spec = meshwork_model::read::from_json::<JobSpec>(spec.as_bytes());
    let request = JobRequest::from_spec(spec.map_err(ClientError::Failed)?);
    request.map_err(|error| ClientError::Failed(error.to_string()))
}

fn job_id(id: &str) -> Result<JobId, ClientError> {
    id.parse()
        .map_err(|error: NameError| ClientError::Failed(error.to_string()))
}

/// Returns a job in JSON.
async fn json(client: &meshwork::Client, job: &JobRecord) -> Result<String, Error> {
    let states = client.states(std::slice::from_ref(job)).await?;
    let view = JobView::new(job, states.into_iter().next().flatten(), None);
    Ok(serde_json::to_string(&view).unwrap_or_default())
}
