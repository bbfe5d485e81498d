//! Runs of due jobs in this process, for tests of tasks.

use std::sync::Arc;
use std::time::Duration;

use meshwork::context::Operation;
use meshwork::{JobContext, JobError, Worker, testing};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::client::Client;

/// Greatest number of runs at once.
const CONCURRENCY: usize = 10;

/// The end of a run, from Python.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Done {
        result: Box<RawValue>,
    },
    Failed {
        error: String,
        #[serde(default)]
        verdict: Option<String>,
        #[serde(default)]
        after: Option<f64>,
    },
}

/// A run, for Python: as the message `run` of docs/adding-a-language.md.
#[derive(Debug, Serialize)]
struct RunTask<'a> {
    run: u64,
    id: &'a str,
    #[serde(rename = "type")]
    task: &'a str,
    attempt: u32,
    payload: &'a RawValue,
    timeout: f64,
    input: Option<&'a str>,
    caller: &'a str,
    inputs: Map<String, Value>,
}

/// Timeout that a run gets, in seconds.
const TIMEOUT: f64 = 60.0;

/// Runs all due jobs of these tasks, and those that they enqueue. `run` is called with each run in JSON, and returns its
/// end in JSON. Returns numbers of jobs, in JSON.
#[pyfunction]
pub(crate) fn drain(
    client: &Bound<'_, Client>,
    py: Python<'_>,
    tasks: Vec<String>,
    run: Py<PyAny>,
) -> PyResult<String> {
    let run = Arc::new(run);
    client.get().call(py, Operation::Create, async |store| {
        let client = store.client.clone();
        let mut worker = Worker::new(&client).concurrency(CONCURRENCY);
        for task in tasks {
            let (client, run) = (client.clone(), Arc::clone(&run));
            let name = task.clone();
            worker = worker.handle(&name, move |payload: Box<RawValue>, context: JobContext| {
                let of = (client.clone(), Arc::clone(&run), task.clone());
                async move { one(of, &payload, &context).await }
            });
        }
        let drained = testing::drain(&client, worker).await?;
        let numbers = json!({
            "finished": drained.finished,
            "failed": drained.failed,
            "delayed": drained.delayed,
            "waiting": drained.waiting,
        });
        Ok(numbers.to_string())
    })
}
/// Does one run.
async fn one(
    (client, run, task): (meshwork::Client, Arc<Py<PyAny>>, String),
    payload: &RawValue,
    context: &JobContext,
) -> Result<Box<RawValue>, JobError> {
    let fault = |error: &dyn std::fmt::Display| JobError::permanent(error.to_string());
    let id = context.job_id.parse().map_err(|error| fault(&error))?;
    let job = client.status(&id).await.map_err(|error| fault(&error))?;
    let message = RunTask {
        run: 0,
        id: &context.job_id,
        task: &task,
        attempt: context.attempt,
        payload,
        timeout: TIMEOUT,
        input: context
            .input
            .as_deref()
            .and_then(|it| str::from_utf8(it).ok()),
        caller: &context.caller_id,
        inputs: inputs(&job, context),
    };
    let message = serde_json::to_string(&message).map_err(|error| fault(&error))?;
    let called = tokio::task::spawn_blocking(move || {
        Python::attach(|py| run.call1(py, (message,))?.extract::<String>(py))
    });
    let ended = called.await.map_err(|error| fault(&error))?;
    let ended = ended.map_err(|error| fault(&error))?;
    match serde_json::from_str(&ended).map_err(|error| fault(&error))? {
        Ended::Done { result } => Ok(result),
        Ended::Failed {
            error,
            verdict,
            after,
        } => Err(failed(error, verdict.as_deref(), after)),
    }
}

fn failed(error: String, verdict: Option<&str>, after: Option<f64>) -> JobError {
    let pause = after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match (verdict, pause) {
        (Some("permanent"), _) => JobError::permanent(error),
        (Some("discard"), _) => JobError::discard(error),
        (Some("snooze"), pause) => JobError::snooze(pause.unwrap_or_default()),
        (_, Some(pause)) => JobError::retry_after(pause, error),
        (_, None) => JobError::retry(error),
    }
}

/// Returns the results of the job's prerequisites by their names and ids.
fn inputs(job: &meshwork::JobRecord, context: &JobContext) -> Map<String, Value> {
    let names = job.input_names.keys().map(String::as_str);
    let names = names.chain(context.inputs.ids());
    let entry = |name: &str| match context.inputs.bytes(name) {
        Ok(output) => {
            let text = String::from_utf8_lossy(output);
            let value: Value =
                serde_json::from_str(&text).unwrap_or_else(|_| text.into_owned().into());
            json!({"result": value})
        }
        Err(error) => json!({"error": error.to_string()}),
    };
    names.map(|name| (name.to_owned(), entry(name))).collect()
}
