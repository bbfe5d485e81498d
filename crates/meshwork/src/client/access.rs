//! Rights to the objects that scripts of a context store.

use futures_util::future::BoxFuture;
use meshwork_model::access::Operation;

/// Rights of the callers of a context's jobs.
pub(crate) trait ObjectAccess: Send + Sync {
    /// Returns the reason if the caller of a job may not do this with objects of the context. A refusal is in the audit
    /// trail.
    fn allow<'a>(
        &'a self,
        caller: &'a str,
        operation: Operation,
    ) -> BoxFuture<'a, Result<(), String>>;
}
