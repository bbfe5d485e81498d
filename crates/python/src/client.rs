//! The client.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork::view::JobView;
use meshwork::{Cancelled, Error, JobId, JobRecord, JobRequest, host_ms};
use meshwork_model::name::NameError;
use meshwork_model::schedule::zone::Zone;
use meshwork_model::spec::{JobSpec, SpecPlace};
use pyo3::prelude::*;
use tokio::runtime::Runtime;

use crate::error::{failed, refused};
use crate::runtime;

/// Longest wait for a result that has no limit: the wait begins again after it.
const ONE_WAIT: Duration = Duration::from_secs(600);
/// Prefix of the URL of a folder.
const DIRECTORY: &str = "dir:";
/// URL of a store in the memory of this process.
const MEMORY: &str = "memory:";

/// A client of a store. It connects with the first call.
#[pyclass(frozen)]
pub(crate) struct Client {
    url: Option<String>,
    namespace: Option<String>,
    runtime: Arc<Runtime>,
    connected: Mutex<Option<meshwork::Client>>,
}

#[pymethods]
impl Client {
    #[new]
    fn new(url: Option<String>, namespace: Option<String>) -> PyResult<Self> {
        Ok(Self {
            url,
            namespace,
            runtime: runtime::new()?,
            connected: Mutex::default(),
        })
    }

    /// Enqueues a job in JSON, and returns its id. With `reply`, its end is sent to those who wait for it.
    fn enqueue(&self, py: Python<'_>, spec: &str, reply: bool) -> PyResult<String> {
        let request = request(spec)?.reply(reply);
        self.call(py, async |client| {
            Ok(client.enqueue(request).await?.to_string())
        })
    }

    /// Enqueues jobs in JSON, and returns their ids. Nothing is enqueued if one of them is wrong.
    fn enqueue_many(&self, py: Python<'_>, specs: Vec<String>) -> PyResult<Vec<String>> {
        let requests: Result<Vec<_>, _> = specs.iter().map(|spec| request(spec)).collect();
        let requests = requests?;
        self.call(py, async |client| {
            let answers = client.enqueue_all(requests).await?;
            answers.into_iter().map(|id| Ok(id?.to_string())).collect()
        })
    }

    /// Returns a job in JSON.
    fn job(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        let id = job_id(id)?;
        self.call(py, async |client| {
            let job = client.status(&id).await?;
            json(&client, &job).await
        })
    }

    /// Waits until a job has ended, at most this number of seconds, and returns it in JSON.
    #[pyo3(signature = (id, seconds=None))]
    fn wait(&self, py: Python<'_>, id: &str, seconds: Option<f64>) -> PyResult<String> {
        let id = job_id(id)?;
        let limit = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        self.call(py, async |client| {
            let job = loop {
                match client.wait(&id, limit.unwrap_or(ONE_WAIT)).await {
                    Err(Error::JobWaitTimeout { .. }) if limit.is_none() => {}
                    ended => break ended?,
                }
            };
            json(&client, &job).await
        })
    }

    /// Cancels a job, and returns what became of it.
    fn cancel(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        let id = job_id(id)?;
        self.call(py, async |client| {
            let word = match client.cancel(&id).await? {
                Cancelled::Cancelled => "cancelled",
                Cancelled::Stopping => "cancelling",
                Cancelled::Ended => "ended",
                Cancelled::Missing => return Err(Error::JobNotFound { id }),
            };
            Ok(word.to_owned())
        })
    }

    /// Returns the lines of the log of a job, a list of texts in JSON.
    fn logs(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        let id = job_id(id)?;
        self.call(py, async |client| {
            let lines = client.log_lines(&id).await?;
            let lines = lines.iter().map(|line| String::from_utf8_lossy(&line.line));
            let lines: Vec<_> = lines.collect();
            Ok(serde_json::to_string(&lines).unwrap_or_default())
        })
    }

    /// Closes the connection. A later call opens it again.
    fn close(&self) {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

impl Client {
    /// Does a call without the lock of the interpreter.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        act: impl AsyncFnOnce(meshwork::Client) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            self.runtime.block_on(async {
                let client = self.connect().await?;
                act(client).await
            })
        });
        done.map_err(|error| failed(py, &error))
    }

    /// Returns the connected client.
    async fn connect(&self) -> Result<meshwork::Client, Error> {
        let known = || {
            self.connected
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(client) = &*known() {
            return Ok(client.clone());
        }
        let client = self.open().await?;
        // Another thread may have connected meanwhile.
        Ok(known().get_or_insert(client).clone())
    }

    async fn open(&self) -> Result<meshwork::Client, Error> {
        let of_host = || std::env::var("REDIS_URL").ok();
        let url = self.url.clone().or_else(of_host);
        let mut builder = meshwork::Client::builder().name(meshwork::local_name("python"));
        if let Some(namespace) = &self.namespace {
            builder = builder.namespace(namespace);
        }
        match url.as_deref() {
            Some(MEMORY) => Ok(meshwork::Client::in_memory()),
            Some(url) => match url.strip_prefix(DIRECTORY) {
                Some(folder) => builder.directory(PathBuf::from(folder)).connect().await,
                None => builder.url(url).connect().await,
            },
            None => builder.connect().await,
        }
    }
}

/// Reads a job in JSON.
fn request(spec: &str) -> PyResult<JobRequest> {
    let mut spec: JobSpec = meshwork_model::read::from_json(spec.as_bytes()).map_err(refused)?;
    let Some(script_type) = spec.script_type.take() else {
        return Err(refused("type: give the name of the task".to_owned()));
    };
    let id = |id: &str| id.parse().map_err(|error: NameError| error.to_string());
    let place = SpecPlace {
        id: &id,
        awaited: &id,
        now_ms: host_ms(),
        zone: &Zone::default(),
    };
    let request = JobRequest::new(script_type.0, "").with_spec(spec, &place);
    request.map_err(|error| refused(error.to_string()))
}

fn job_id(id: &str) -> PyResult<JobId> {
    id.parse()
        .map_err(|error: NameError| refused(error.to_string()))
}

/// Returns a job in JSON.
async fn json(client: &meshwork::Client, job: &JobRecord) -> Result<String, Error> {
    let states = client.states(std::slice::from_ref(job)).await?;
    let view = JobView::new(job, states.into_iter().next().flatten(), None);
    Ok(serde_json::to_string(&view).unwrap_or_default())
}
