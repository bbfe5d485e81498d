//! What a client asks for, checked before anything is written.

use super::{field, limits};
use crate::name::JobId;
use crate::route::Route;
use crate::secret::EnvVars;

/// A job to be enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Its id; enqueuing the same id again changes nothing.
    pub id: JobId,
    /// Where it goes.
    pub route: Route,
    /// What to execute: script text, or whatever a handler in Rust takes.
    pub script: String,
    /// Bytes for the script (at most [`limits::MAX_INPUT`]).
    pub input: Option<Vec<u8>>,
    /// Who asks.
    pub caller_id: String,
    /// In which context.
    pub context_id: String,
    /// Seconds that one run may take, from 1 to [`limits::MAX_TIMEOUT`].
    pub timeout: u64,
    /// Runs after the first, should it fail: `retries` N means at most N + 1 runs.
    pub retries: u32,
    /// Whether it may run beside others on its worker.
    pub concurrent: bool,
    /// Environment of the script.
    pub env_vars: EnvVars,
    /// Whether the result is to be pushed to the reply list, for a client that blocks on it.
    pub reply: bool,
}

/// Why a job was refused; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// No script.
    #[error("job {id}: the script is empty")]
    EmptyScript {
        /// The job.
        id: JobId,
    },
    /// A part of the job is over its limit.
    #[error("job {id}: the {what} takes {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The job.
        id: JobId,
        /// Which part.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The most allowed.
        limit: usize,
    },
    /// A timeout that cannot be meant.
    #[error("job {id}: a timeout of {seconds} s is not possible: give 1 to {max}", max = limits::MAX_TIMEOUT)]
    Timeout {
        /// The job.
        id: JobId,
        /// What was asked for.
        seconds: u64,
    },
    /// Too many retries.
    #[error("job {id}: {retries} retries are too many: at most {max}", max = limits::MAX_RETRIES)]
    Retries {
        /// The job.
        id: JobId,
        /// What was asked for.
        retries: u32,
    },
    /// A name that no environment can hold.
    #[error("job {id}: {name:?} cannot be the name of an environment variable")]
    EnvName {
        /// The job.
        id: JobId,
        /// The name.
        name: String,
    },
    /// A value that no environment can hold.
    #[error("job {id}: the value of environment variable {name} contains a NUL byte")]
    EnvValue {
        /// The job.
        id: JobId,
        /// The variable.
        name: String,
    },
}

impl NewJob {
    /// A job with the defaults: no input, no caller, [`limits::DEFAULT_TIMEOUT`], no retry.
    #[must_use]
    pub fn new(id: JobId, route: Route, script: impl Into<String>) -> Self {
        Self {
            id,
            route,
            script: script.into(),
            input: None,
            caller_id: String::new(),
            context_id: String::new(),
            timeout: limits::DEFAULT_TIMEOUT,
            retries: 0,
            concurrent: true,
            env_vars: EnvVars::default(),
            reply: false,
        }
    }

    /// Checks the job against [`limits`].
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), Invalid> {
        let id = || self.id.clone();
        if self.script.trim().is_empty() {
            return Err(Invalid::EmptyScript { id: id() });
        }
        let env = self
            .env_vars
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let input = self.input.as_ref().map_or(0, Vec::len);
        for (what, size, limit) in [
            ("script", self.script.len(), limits::MAX_SCRIPT),
            ("input", input, limits::MAX_INPUT),
            ("environment", env, limits::MAX_ENV),
        ] {
            if size > limit {
                return Err(Invalid::TooLarge {
                    id: id(),
                    what,
                    size,
                    limit,
                });
            }
        }
        if self.timeout == 0 || self.timeout > limits::MAX_TIMEOUT {
            return Err(Invalid::Timeout {
                id: id(),
                seconds: self.timeout,
            });
        }
        if self.retries > limits::MAX_RETRIES {
            return Err(Invalid::Retries {
                id: id(),
                retries: self.retries,
            });
        }
        for (name, value) in &self.env_vars {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Invalid::EnvName {
                    id: id(),
                    name: name.clone(),
                });
            }
            if value.contains('\0') {
                return Err(Invalid::EnvValue {
                    id: id(),
                    name: name.clone(),
                });
            }
        }
        Ok(())
    }

    /// The record as it is first written, without status and times, which are the script's to set.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        let worker = self
            .route
            .instance
            .as_ref()
            .map_or("", |instance| instance.as_str());
        let mut fields = vec![
            (field::ID, self.id.as_str().into()),
            (field::CALLER_ID, self.caller_id.clone().into()),
            (field::WORKER_ID, worker.into()),
            (field::CONTEXT_ID, self.context_id.clone().into()),
            (field::SCRIPT, self.script.clone().into()),
            (field::SCRIPT_TYPE, self.route.script_type.as_str().into()),
            (field::TIMEOUT, self.timeout.to_string().into()),
            (field::RETRIES, self.retries.to_string().into()),
            (field::CONCURRENT, self.concurrent.to_string().into()),
            (field::REPLY, u8::from(self.reply).to_string().into()),
        ];
        if !self.env_vars.is_empty() {
            let json: serde_json::Map<_, _> = self
                .env_vars
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().into()))
                .collect();
            fields.push((
                field::ENV_VARS,
                serde_json::Value::from(json).to_string().into(),
            ));
        }
        if let Some(group) = &self.route.group {
            fields.push((field::GROUP, group.as_str().into()));
        }
        if let Some(instance) = &self.route.instance {
            fields.push((field::INSTANCE, instance.as_str().into()));
        }
        if let Some(input) = &self.input {
            fields.push((field::INPUT, input.clone()));
        }
        fields
    }
}
