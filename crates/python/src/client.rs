//! The client.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use meshwork::context::{ContextId, Operation};
use meshwork::testing::Clock;
use meshwork::view::JobView;
use meshwork::{Cancelled, Error, JobFilter, JobRecord};
use meshwork_model::state::Status;
use pyo3::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::error::Fault;
use crate::runtime;
use crate::store::{ContextKey, Location, Store};

/// Longest wait for a result that has no limit: the wait begins again after it.
const ONE_WAIT: Duration = Duration::from_secs(600);

/// A client of a store. It connects with the first call.
#[pyclass(frozen)]
pub(crate) struct Client {
    location: Location,
    runtime: Arc<Runtime>,
    connected: Mutex<Option<Store>>,
}

#[pymethods]
impl Client {
    /// `context` is the number of a context, and the key file of the actor that uses it.
    #[new]
    #[pyo3(signature = (url=None, namespace=None, context=None))]
    fn new(
        py: Python<'_>,
        url: Option<String>,
        namespace: Option<String>,
        context: Option<(u32, PathBuf)>,
    ) -> PyResult<Self> {
        let key = |(id, key_file)| {
            let wrong = || Fault::Refused("context: give a number from 1".to_owned());
            let id = ContextId::new(id).ok_or_else(wrong)?;
            Ok(ContextKey { id, key_file })
        };
        let context = context.map(key).transpose();
        let context = context.map_err(|fault: Fault| fault.exception(py))?;
        let clock = Clock::new();
        let location = Location {
            url,
            namespace,
            context,
            clock,
        };
        Ok(Self {
            location,
            runtime: runtime::new()?,
            connected: Mutex::default(),
        })
    }

    /// Enqueues a job in JSON, and returns its id. With `reply`, its end is sent to those who wait for it.
    fn enqueue(&self, py: Python<'_>, spec: &str, reply: bool) -> PyResult<String> {
        self.call(py, Operation::Create, async |store| {
            let request = store.request(spec)?.reply(reply);
            Ok(store.client.enqueue(request).await?.to_string())
        })
    }

    /// Enqueues jobs in JSON, up to 1,000 in one step, and returns their ids. A job may depend on an earlier one. Nothing is
    /// enqueued if one of them is wrong.
    fn enqueue_many(&self, py: Python<'_>, specs: Vec<String>) -> PyResult<Vec<String>> {
        self.call(py, Operation::Create, async |store| {
            let requests = specs.iter().map(|spec| store.request(spec));
            let requests = requests.collect::<Result<Vec<_>, _>>()?;
            let answers = store.client.enqueue_all(requests).await?;
            let ids = answers.into_iter().map(|id| Ok(id?.to_string()));
            ids.collect()
        })
    }

    /// Reserves an id for a job of a context.
    fn next_id(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, Operation::Create, async |store| {
            Ok(store.client.next_job_id().await?.to_string())
        })
    }

    /// Returns a job in JSON.
    fn job(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.call(py, Operation::Read, async |store| {
            let job = store.client.status(&store.job_id(id)?).await?;
            Ok(json(&store.client, &job).await?)
        })
    }

    /// Waits until a job has ended, at most this number of seconds, and returns it in JSON.
    #[pyo3(signature = (id, seconds=None))]
    fn wait(&self, py: Python<'_>, id: &str, seconds: Option<f64>) -> PyResult<String> {
        let limit = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        self.call(py, Operation::Read, async |store| {
            let id = store.job_id(id)?;
            let job = loop {
                match store.client.wait(&id, limit.unwrap_or(ONE_WAIT)).await {
                    Err(Error::JobWaitTimeout { .. }) if limit.is_none() => {}
                    ended => break ended?,
                }
            };
            Ok(json(&store.client, &job).await?)
        })
    }

    /// Cancels a job, and returns what became of it.
    fn cancel(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.call(py, Operation::Cancel, async |store| {
            let id = store.job_id(id)?;
            let word = match store.client.cancel(&id).await? {
                Cancelled::Cancelled => "cancelled",
                Cancelled::Stopping => "cancelling",
                Cancelled::Ended => "ended",
                Cancelled::Missing => return Err(Error::JobNotFound { id }.into()),
            };
            Ok(word.to_owned())
        })
    }

    /// Returns the lines of the log of a job, a list of texts in JSON.
    fn logs(&self, py: Python<'_>, id: &str) -> PyResult<String> {
        self.call(py, Operation::Read, async |store| {
            let lines = store.client.log_lines(&store.job_id(id)?).await?;
            let lines = lines.iter().map(|line| String::from_utf8_lossy(&line.line));
            let lines: Vec<_> = lines.collect();
            Ok(serde_json::to_string(&lines).unwrap_or_default())
        })
    }

    /// Returns the jobs of a task that have not ended, a list in JSON of objects with `id` and `payload`.
    fn open_jobs(&self, py: Python<'_>, task: &str) -> PyResult<String> {
        self.call(py, Operation::Read, async |store| {
            let open = open_jobs(&store.client, task).await?;
            Ok(Value::from(open).to_string())
        })
    }

    /// Closes the connection. A later call opens it again.
    fn close(&self) {
        self.known().take();
    }

    /// Advances the clock of a store in memory.
    fn advance(&self, seconds: f64) {
        let by = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.location.clock.advance(by);
    }
}

impl Client {
    fn known(&self) -> std::sync::MutexGuard<'_, Option<Store>> {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a call without the lock of the interpreter, if the actor may do it in the context.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        operation: Operation,
        act: impl AsyncFnOnce(Store) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            self.runtime.block_on(async {
                let store = self.connect().await?;
                store.allow(operation).await?;
                act(store).await
            })
        });
        done.map_err(|fault: Fault| fault.exception(py))
    }

    /// Returns the connected store.
    async fn connect(&self) -> Result<Store, Fault> {
        if let Some(store) = &*self.known() {
            return Ok(store.clone());
        }
        let store = self.location.connect().await?;
        // Another thread may have connected meanwhile.
        Ok(self.known().get_or_insert(store).clone())
    }
}

/// Returns the open jobs of a task.
async fn open_jobs(client: &meshwork::Client, task: &str) -> Result<Vec<Value>, Fault> {
    let script_type = task.parse().map_err(Error::from)?;
    let filter = JobFilter {
        script_type: Some(script_type),
        ..JobFilter::default()
    };
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let page = client.find(&filter, from).await?;
        for summary in page.jobs {
            if summary.status().is_some_and(Status::is_final) {
                continue;
            }
            let job = client.status(&summary.job_id()).await?;
            let payload: Option<Box<RawValue>> = serde_json::from_slice(&job.script).ok();
            let id = summary.job_id();
            found.push(json!({"id": id.as_str(), "payload": payload}));
        }
        from = page.next;
        if from == 0 {
            return Ok(found);
        }
    }
}

/// Returns a job in JSON.
async fn json(client: &meshwork::Client, job: &JobRecord) -> Result<String, Error> {
    let states = client.states(std::slice::from_ref(job)).await?;
    let view = JobView::new(job, states.into_iter().next().flatten(), None);
    Ok(serde_json::to_string(&view).unwrap_or_default())
}
