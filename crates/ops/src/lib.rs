//! Operations on a store: one module for each noun, one function for each operation. The command turns arguments into
//! parameters and answers into rows; the API turns JSON into them. Both get the same answers, errors and audit entries.

pub mod change;
pub mod dead;
mod enqueue;
mod error;
pub mod job;
pub mod job_list;
pub mod params;
pub mod queue;
mod scope;
mod sessions;
pub mod walk;
pub mod warnings;
mod with;

pub use enqueue::{NewJobOutcome, enqueue_many};
pub use error::{InPart, OpError};
pub use scope::{Each, Needs, Place, Placed, Store, UsedRole, number};
pub use sessions::{Entered, Sessions};
pub use with::{Beside, Paging, Wait, With};
