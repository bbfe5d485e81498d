//! Batches of the client.

use std::time::Duration;

use meshwork::context::Operation;
use meshwork::view::BatchView;
use meshwork_model::batch::Callback;
use meshwork_model::name::{BatchId, NameError};
use meshwork_model::spec::JobSpec;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::client::Client;
use crate::error::Fault;

/// A batch in JSON.
#[derive(Debug, Deserialize)]
struct BatchSpec {
    id: String,
    #[serde(default)]
    name: String,
    /// Longest time without a new job, in seconds.
    open_for: Option<f64>,
    on_done: Option<JobSpec>,
    on_success: Option<JobSpec>,
    on_failure: Option<JobSpec>,
}

/// Creates a batch. One with this id stays.
#[pyfunction]
pub(crate) fn open_batch(client: &Bound<'_, Client>, py: Python<'_>, spec: &str) -> PyResult<()> {
    client.get().call(py, Operation::Create, async |store| {
        let spec = meshwork_model::read::from_json::<BatchSpec>(spec.as_bytes());
        let spec = spec.map_err(Fault::Refused)?;
        let mut batch = store.client.batch().id(batch_id(&spec.id)?).name(spec.name);
        if let Some(seconds) = spec.open_for {
            let open_for = Duration::try_from_secs_f64(seconds);
            let wrong = |error| Fault::Refused(format!("open_for: {error}"));
            batch = batch.open_for(open_for.map_err(wrong)?);
        }
        for (kind, job) in [
            (Callback::Done, spec.on_done),
            (Callback::Success, spec.on_success),
            (Callback::Failure, spec.on_failure),
        ] {
            if let Some(job) = job {
                batch = batch.on(kind, store.request_of(job)?);
            }
        }
        batch.open().await?;
        Ok(())
    })
}

/// Seals a batch: it ends when all its jobs have ended.
#[pyfunction]
pub(crate) fn seal_batch(client: &Bound<'_, Client>, py: Python<'_>, id: &str) -> PyResult<()> {
    client.get().call(py, Operation::Create, async |store| {
        Ok(store.client.batch_of(batch_id(id)?).seal().await?)
    })
}

/// Cancels a batch. Returns false if it had ended.
#[pyfunction]
pub(crate) fn cancel_batch(
    client: &Bound<'_, Client>,
    py: Python<'_>,
    id: &str,
    reason: &str,
) -> PyResult<bool> {
    client.get().call(py, Operation::Cancel, async |store| {
        Ok(store.client.batch_of(batch_id(id)?).cancel(reason).await?)
    })
}

/// Returns a batch in JSON.
#[pyfunction]
pub(crate) fn batch(client: &Bound<'_, Client>, py: Python<'_>, id: &str) -> PyResult<String> {
    client.get().call(py, Operation::Read, async |store| {
        let status = store.client.batch_status(&batch_id(id)?).await?;
        Ok(serde_json::to_string(&BatchView::from(&status)).unwrap_or_default())
    })
}

fn batch_id(text: &str) -> Result<BatchId, Fault> {
    text.parse()
        .map_err(|error: NameError| Fault::Refused(error.to_string()))
}
