//! Objects that scripts store: the worker checks the rights of the job's caller, and calls the store.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_broker::{Broker, ObjectPage, ObjectVersion, Quota, SavedObject, StoredObject};
use meshwork_model::access::Operation;
use meshwork_model::job::Job;
use meshwork_model::object::{
    InvalidObject, NewObject, Space, check_id, field_set, type_set, word_sets,
};
use meshwork_model::time::iso;
use serde_json::{Map, Value, json};

/// Fields that the store adds to an object that it returns. A save ignores them, so that a script can change what it got.
const ADDED: [&str; 4] = ["object_type", "version", "created_at", "modified_at"];
/// Field with the id of an object.
const ID: &str = "id";

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

/// The objects of one run; nothing for runs without a store. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ObjectStore(Option<Arc<Inner>>);

struct Inner {
    broker: Broker,
    access: Option<Arc<dyn ObjectAccess>>,
    caller: String,
    job: String,
}

impl fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectStore")
            .field(&self.0.is_some())
            .finish()
    }
}

/// Reason why a request of a script is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    #[error(transparent)]
    Invalid(#[from] InvalidObject),
    #[error(
        "objects are stored for jobs of Meshwork only: this run belongs to another system, or to no worker"
    )]
    NotHere,
    #[error("{0}")]
    Denied(String),
    #[error("the object {id} is of the type `{kind}`: delete it first, or use another id")]
    OtherType { id: String, kind: String },
    #[error("there are {0} objects, the limit: delete some")]
    TooMany(u64),
    #[error(
        "the objects and their histories would take more than {0} bytes, the limit: delete some, or store less"
    )]
    TooLarge(u64),
    #[error("the objects cannot be reached: {0}")]
    Store(#[from] meshwork_broker::Error),
}

/// A request of a script.
#[derive(Debug, Clone)]
pub(crate) enum ObjectRequest {
    Save {
        kind: String,
        object: Map<String, Value>,
    },
    Get {
        id: String,
    },
    List {
        kind: String,
        skip: usize,
    },
    Find {
        kind: String,
        field: String,
        value: Value,
        skip: usize,
    },
    Search {
        kind: String,
        text: String,
        skip: usize,
    },
    Delete {
        id: String,
    },
    History {
        id: String,
    },
}

impl ObjectRequest {
    /// Returns the operation for the check of rights.
    const fn operation(&self) -> Operation {
        match self {
            Self::Save { .. } => Operation::Create,
            Self::Delete { .. } => Operation::Delete,
            Self::Get { .. }
            | Self::List { .. }
            | Self::Find { .. }
            | Self::Search { .. }
            | Self::History { .. } => Operation::Read,
        }
    }
}

impl ObjectStore {
    /// Returns the objects for the run of a job. In a context, `access` checks the caller.
    pub(crate) fn new(broker: &Broker, access: Option<&Arc<dyn ObjectAccess>>, job: &Job) -> Self {
        Self(Some(Arc::new(Inner {
            broker: broker.clone(),
            access: access.cloned(),
            caller: job.caller_id.clone(),
            job: job.id.clone(),
        })))
    }

    /// Carries out a request in the space of these keys.
    pub(crate) async fn call(
        &self,
        keys: &[String],
        request: ObjectRequest,
    ) -> Result<Value, ObjectError> {
        let space = Space::new(keys.iter().map(String::as_str))?;
        let inner = self.0.as_ref().ok_or(ObjectError::NotHere)?;
        let space = match (inner.broker.keys().context(), &inner.access) {
            (None, _) => space.of_caller(&inner.caller),
            (Some(_), None) => return Err(ObjectError::NotHere),
            (Some(_), Some(access)) => {
                let allowed = access.allow(&inner.caller, request.operation()).await;
                allowed.map_err(ObjectError::Denied)?;
                space
            }
        };
        inner.answer(&space, request).await
    }
}

impl Inner {
    async fn answer(&self, space: &Space, request: ObjectRequest) -> Result<Value, ObjectError> {
        let broker = &self.broker;
        let (sets, skip) = match request {
            ObjectRequest::Save { kind, object } => return self.save(space, &kind, object).await,
            ObjectRequest::Get { id } => {
                let found = broker.object(space, checked(&id)?).await?;
                return Ok(found.map_or(Value::Null, shown));
            }
            ObjectRequest::Delete { id } => {
                let id = checked(&id)?;
                let deleted = broker.delete_object(space, id, &self.job, Quota::default());
                return Ok(deleted.await?.into());
            }
            ObjectRequest::History { id } => {
                let versions = broker.object_history(space, checked(&id)?).await?;
                return Ok(versions.into_iter().map(version).collect());
            }
            ObjectRequest::List { kind, skip } => (vec![type_set(&kind)?], skip),
            ObjectRequest::Search { kind, text, skip } => (word_sets(&kind, &text)?, skip),
            ObjectRequest::Find {
                kind,
                field,
                value,
                skip,
            } => match field_set(&kind, &field, &value)? {
                Some(set) => (vec![set], skip),
                // Lists and maps are in no index.
                None => return Ok(Value::Array(Vec::new())),
            },
        };
        let found = broker
            .objects(space, &sets, ObjectPage::after(skip))
            .await?;
        Ok(found.into_iter().map(shown).collect())
    }

    async fn save(
        &self,
        space: &Space,
        kind: &str,
        mut object: Map<String, Value>,
    ) -> Result<Value, ObjectError> {
        for name in ADDED {
            object.remove(name);
        }
        let id = match object.remove(ID) {
            Some(Value::String(id)) => id,
            None | Some(Value::Null) => uuid::Uuid::new_v4().to_string(),
            Some(other) => other.to_string(),
        };
        let new = NewObject::new(kind, &object)?;
        let (quota, id) = (Quota::default(), checked(&id)?);
        match self
            .broker
            .save_object(space, (id, &new), &self.job, quota)
            .await?
        {
            SavedObject::Saved(_) => Ok(id.into()),
            SavedObject::OfType(kind) => {
                let id = id.to_owned();
                Err(ObjectError::OtherType { id, kind })
            }
            SavedObject::TooMany => Err(ObjectError::TooMany(quota.objects)),
            SavedObject::TooLarge => Err(ObjectError::TooLarge(quota.bytes)),
        }
    }
}

fn checked(id: &str) -> Result<&str, InvalidObject> {
    check_id(id).map(|()| id)
}

/// Returns an object as scripts get it.
fn shown(object: StoredObject) -> Value {
    let stored = meshwork_model::number::read(&object.json);
    let mut map = match stored {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    map.insert(ID.to_owned(), object.id.into());
    let added: [Value; 4] = [
        object.kind.into(),
        object.version.into(),
        iso(object.created_ms).into(),
        iso(object.changed_ms).into(),
    ];
    map.extend(ADDED.map(str::to_owned).into_iter().zip(added));
    map.into()
}

/// Returns a version as scripts get it.
fn version(version: ObjectVersion) -> Value {
    let object = version.json.as_deref().map(meshwork_model::number::read);
    json!({
        "version": version.number,
        "at": iso(version.at_ms),
        "job": version.job,
        "object": object.and_then(Result::ok),
    })
}
