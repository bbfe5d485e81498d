//! delete: forget a job.

use meshwork_model::job::Job;

use super::word;
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job that was to be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// Its record and its reply are gone, and it will not run.
    Deleted,
    /// A worker holds it; stop it first.
    Running,
    /// There is no such job.
    Missing,
}

impl Broker {
    /// Deletes a job that does not run.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn delete(&self, job: &Job) -> Result<Deleted, Error> {
        let answer = self.change(Verb::Delete, job).run(&self.conn).await?;
        let known = [
            ("deleted", Deleted::Deleted),
            ("running", Deleted::Running),
            ("missing", Deleted::Missing),
        ];
        word("delete", answer, &known)
    }
}
