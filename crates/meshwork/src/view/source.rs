//! Script, input and links of a job as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use meshwork_model::job::Job;
use serde::{Deserialize, Serialize};

use super::job::some;

/// Script, input and links of a job as JSON. Secrets of its environment are masked.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "JobSource")
)]
pub struct JobSourceView<'a> {
    /// Id of the job.
    pub id: Cow<'a, str>,
    /// Text of the script.
    pub script: String,
    /// Input of the script.
    pub input: Option<String>,
    /// Jobs that have to end first.
    pub depends_on: Cow<'a, [String]>,
    /// Names for the results of these jobs, with their ids.
    pub input_names: Cow<'a, BTreeMap<String, String>>,
    /// Rule for a failed one: `fail` or `continue`.
    pub on_failure: Option<Cow<'a, str>>,
    /// Jobs that wait for this one.
    pub dependents: Cow<'a, [String]>,
    /// Batch of the job.
    pub batch: Option<Cow<'a, str>>,
    /// Event and batch whose callback the job is.
    pub callback: Option<Cow<'a, str>>,
    /// Log file on the host of its worker.
    pub log_path: Option<Cow<'a, str>>,
    /// Number of the flow that the job is part of.
    pub flow: Option<u32>,
    /// Request to stop the job.
    pub stop: Option<Cow<'a, str>>,
    /// Old list that owns the job.
    pub lock: Option<Cow<'a, str>>,
}

impl<'a> JobSourceView<'a> {
    /// Returns the view of a job.
    #[must_use]
    pub fn new(job: &'a Job) -> Self {
        let secrets = job.env_vars.secrets();
        let masked =
            |bytes: &[u8]| String::from_utf8_lossy(&secrets.mask_bytes(bytes)).into_owned();
        Self {
            id: Cow::from(&job.id),
            script: masked(&job.script),
            input: job.input.as_deref().map(masked),
            depends_on: Cow::from(&job.depends_on),
            input_names: Cow::Borrowed(&job.input_names),
            on_failure: some(&job.on_failure),
            dependents: Cow::from(&job.dependents),
            batch: some(&job.batch),
            callback: some(&job.callback),
            log_path: some(&job.log_path),
            flow: job.flow,
            stop: some(&job.stop),
            lock: some(&job.lock),
        }
    }
}
