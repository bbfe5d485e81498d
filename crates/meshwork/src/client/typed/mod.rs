//! Typed jobs: a value of a type is the payload of its jobs, and the type names their result.

mod enqueue;
mod handle;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use enqueue::{Enqueue, Enqueueable};
pub use handle::JobHandle;
pub(super) use handle::output_of;

use super::JobRequest;

/// A type of jobs. Its values are payloads, in JSON. `#[derive(Job)]` implements it.
///
/// ```
/// use meshwork::Job;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(output = Receipt, retries = 3)]
/// struct Pay {
///     order: u64,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Receipt {
///     order: u64,
/// }
///
/// assert_eq!(Pay::NAME, "pay");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of jobs",
    label = "no job",
    note = "`#[meshwork::job]` above a struct or an enum makes it a job; `#[derive(Job)]` does so beside serde's derives"
)]
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// Type of the jobs in the store, which workers, queues and lists name: 1 to 64 letters, digits, `_`, `-` or `.`. Other
    /// programs enqueue jobs by it, so it outlives the name of the Rust type.
    const NAME: &'static str;

    /// Input from the job before it: in a [flow](crate::flow::Chain), or the first prerequisite of
    /// [`Enqueue::after`](crate::Enqueue::after). The handler takes it as [`Input`](crate::Input). `()`: the job has none.
    type Input: Serialize + DeserializeOwned + Send + 'static;

    /// Result of the jobs, in JSON.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Sets the options of all jobs of the type. A call can choose others.
    #[must_use]
    fn defaults(&self, request: JobRequest) -> JobRequest {
        request
    }
}
