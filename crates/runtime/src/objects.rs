//! Objects that scripts store: a run asks its worker, which checks the rights of the job's caller.

use std::error::Error;
use std::fmt;

use futures_util::future::BoxFuture;
use meshwork_model::object::InvalidObject;
use serde_json::{Map, Value};

/// The objects of one run.
pub trait ObjectStore: fmt::Debug + Send + Sync {
    /// Carries out a request in the space of these keys.
    ///
    /// # Errors
    /// The request is refused, or the store cannot be reached.
    fn call<'a>(
        &'a self,
        keys: &'a [String],
        request: ObjectRequest,
    ) -> BoxFuture<'a, Result<Value, ObjectError>>;
}

/// Reason why a request of a script is refused.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// A name or value is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidObject),
    /// The run has no objects.
    #[error(
        "objects are stored for jobs of Meshwork only: this run belongs to another system, or to no worker"
    )]
    NotHere,
    /// The caller lacks the right.
    #[error("{0}")]
    Denied(String),
    /// The object exists with another type.
    #[error("the object {id} is of the type `{kind}`: delete it first, or use another id")]
    OtherType {
        /// Id of the object.
        id: String,
        /// Its type.
        kind: String,
    },
    /// There are as many objects as the limit.
    #[error("there are {0} objects, the limit: delete some")]
    TooMany(u64),
    /// The objects take as many bytes as the limit.
    #[error(
        "the objects and their histories would take more than {0} bytes, the limit: delete some, or store less"
    )]
    TooLarge(u64),
    /// The call to the store failed.
    #[error("the objects cannot be reached: {0}")]
    Store(Box<dyn Error + Send + Sync>),
}

/// A request of a script. Lists come in pages: a request skips the objects of earlier pages.
#[derive(Debug, Clone)]
pub enum ObjectRequest {
    /// Stores an object.
    Save {
        /// Type of the object.
        kind: String,
        /// Its fields.
        object: Map<String, Value>,
    },
    /// Returns an object.
    Get {
        /// Id of the object.
        id: String,
    },
    /// Returns the objects of a type.
    List {
        /// The type.
        kind: String,
        /// Number of objects to skip.
        skip: usize,
    },
    /// Returns the objects whose field has a value.
    Find {
        /// Type of the objects.
        kind: String,
        /// Name of the field.
        field: String,
        /// Its value.
        value: Value,
        /// Number of objects to skip.
        skip: usize,
    },
    /// Returns the objects whose text has all words.
    Search {
        /// Type of the objects.
        kind: String,
        /// The words.
        text: String,
        /// Number of objects to skip.
        skip: usize,
    },
    /// Deletes an object.
    Delete {
        /// Id of the object.
        id: String,
    },
    /// Returns the versions of an object.
    History {
        /// Id of the object.
        id: String,
    },
}
