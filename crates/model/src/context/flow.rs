//! A flow: jobs of one caller that belong together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::job::{env_fault, environment};
use super::reader::{Fields, RecordError, count_fault, fields_of, first_fault};
use super::words::FlowStatus;
use super::{FieldFault, field, limits};
use crate::keys::context::{ActorId, ContextId, FlowId, JobKey};
use crate::secret::EnvVars;

/// The record `flow:{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Number of the flow, as in its key.
    pub id: FlowId,
    /// Creator of the flow and owner of its jobs.
    pub caller_id: ActorId,
    /// Context that stores the flow; the record's own field is ignored.
    pub context_id: ContextId,
    /// Jobs of the flow, at most [`limits::MAX_FLOW_JOBS`]. Each job lists its own prerequisites.
    pub jobs: Vec<u32>,
    /// Environment of all scripts of the flow. A job's own variables override it.
    #[serde(serialize_with = "environment")]
    pub env_vars: EnvVars,
    /// Result of the flow.
    pub result: BTreeMap<String, String>,
    /// Seconds since 1970.
    pub created_at: u32,
    /// Seconds since 1970.
    pub updated_at: u32,
    /// Status of the flow.
    pub status: FlowStatus,
}

impl Flow {
    /// Returns the keys of the flow's jobs.
    pub fn job_keys(&self) -> impl Iterator<Item = JobKey> {
        let caller = self.caller_id;
        self.jobs.iter().map(move |id| JobKey { caller, id: *id })
    }

    /// Reads the fields of the hash.
    ///
    /// # Errors
    /// The first field that cannot be read. The caller has no default, because he owns the flow's jobs.
    pub fn from_fields(
        context_id: ContextId,
        id: FlowId,
        fields: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, RecordError> {
        let mut fields = Fields::new(format_args!("flow:{id}"), fields);
        let caller = fields.number(field::CALLER_ID)?;
        let caller = caller.ok_or_else(|| fields.fault(field::CALLER_ID, FieldFault::Missing))?;
        let flow = Self {
            id,
            caller_id: ActorId(caller),
            context_id,
            jobs: fields.list(field::JOBS, "array of jobs' numbers")?,
            env_vars: fields.map(field::ENV_VARS)?.into(),
            result: fields.result(field::RESULT)?,
            created_at: fields.seconds(field::CREATED_AT),
            updated_at: fields.seconds(field::UPDATED_AT),
            status: fields
                .parsed(field::STATUS)?
                .unwrap_or(FlowStatus::Dispatched),
        };
        flow.check()?;
        Ok(flow)
    }

    /// The fields of the hash.
    #[must_use]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        fields_of(self)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// The first field that is over its limit.
    pub fn check(&self) -> Result<(), RecordError> {
        let jobs = count_fault(&self.jobs, limits::MAX_FLOW_JOBS);
        let env = env_fault(&self.env_vars);
        first_fault(
            format_args!("flow:{}", self.id),
            [(field::JOBS, jobs), (field::ENV_VARS, env)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::{bytes, pairs};

    fn read(record: &[(&str, &str)]) -> Result<Flow, RecordError> {
        Flow::from_fields(ContextId::new(7).unwrap(), FlowId(33), bytes(record))
    }

    #[test]
    fn the_fields_of_the_catalogue() {
        let record = [
            ("id", "33"),
            ("caller_id", "12"),
            ("context_id", "7"),
            ("jobs", "[2001,2002]"),
            ("env_vars", "{}"),
            ("result", "{}"),
            ("created_at", "1700000000"),
            ("updated_at", "1700000001"),
            ("status", "started"),
        ];
        let flow = read(&record).unwrap();
        assert_eq!(flow.job_keys().next(), Some(JobKey::new(12, 2001)));
        assert_eq!(flow.to_fields(), pairs(&record));
    }

    #[test]
    fn a_flow_needs_a_caller_and_readable_jobs() {
        let flow = read(&[("caller_id", "12")]).unwrap();
        assert_eq!((flow.status, flow.jobs.len()), (FlowStatus::Dispatched, 0));
        let error = |record: &[(&str, &str)]| read(record).unwrap_err().to_string();
        assert_eq!(error(&[]), "flow:33: the field `caller_id` is missing");
        let said = error(&[("caller_id", "12"), ("jobs", "job:12:1")]);
        assert!(said.contains("`jobs` is no JSON array"), "{said}");
        let said = error(&[("caller_id", "12"), ("status", "waiting_for_prerequisites")]);
        assert!(
            said.contains("write dispatched, started, error, finished"),
            "{said}"
        );
        let jobs = format!("[{}]", vec!["1"; limits::MAX_FLOW_JOBS + 1].join(","));
        let said = error(&[("caller_id", "12"), ("jobs", &jobs)]);
        assert!(said.contains("at most 20000"), "{said}");
    }
}
