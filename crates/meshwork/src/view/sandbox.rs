//! Sandboxes of runs as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use meshwork_model::sandbox::{Limits, RunUsage};
use serde::{Deserialize, Serialize};

/// Sandbox of a run, and the resources that it used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunUsageView {
    /// Profile: `open`, `standard` or `strict`.
    pub sandbox: Cow<'static, str>,
    /// Limits, by resource: `memory`, `disk` and `output` in bytes, `cpu` in milliseconds, `processes`, `files`.
    pub limits: BTreeMap<Cow<'static, str>, u64>,
    /// Processor time in user mode, in milliseconds.
    pub user_ms: u64,
    /// Processor time in the kernel, in milliseconds.
    pub system_ms: u64,
    /// Greatest memory at once, in bytes.
    pub peak_memory: u64,
    /// Written to files and devices, in bytes.
    pub written: u64,
}

impl From<&RunUsage> for RunUsageView {
    fn from(run: &RunUsage) -> Self {
        Self {
            sandbox: run.sandbox.profile.as_str().into(),
            limits: by_name(&run.sandbox.limits),
            user_ms: run.usage.user_ms,
            system_ms: run.usage.system_ms,
            peak_memory: run.usage.peak_memory,
            written: run.usage.written,
        }
    }
}

/// Returns limits by their names.
pub(super) fn by_name(limits: &Limits) -> BTreeMap<Cow<'static, str>, u64> {
    limits
        .iter()
        .map(|(limit, value)| (limit.as_str().into(), value))
        .collect()
}
