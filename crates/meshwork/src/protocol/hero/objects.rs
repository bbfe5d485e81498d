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
use meshwork_runtime::{ObjectError, ObjectRequest, ObjectStore};
use serde_json::{Map, Value, json};

use crate::client::ObjectAccess;

/// Fields that the store adds to an object that it returns. A save ignores them, so that a script can change what it got.
const ADDED: [&str; 4] = ["object_type", "version", "created_at", "modified_at"];
/// Field with the id of an object.
const ID: &str = "id";

/// The objects of the run of one job.
pub(super) struct RunObjects {
    broker: Broker,
    access: Option<Arc<dyn ObjectAccess>>,
    caller: String,
    job: String,
}

impl fmt::Debug for RunObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunObjects")
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

/// Returns the operation for the check of rights.
const fn operation(request: &ObjectRequest) -> Operation {
    match request {
        ObjectRequest::Save { .. } => Operation::Create,
        ObjectRequest::Delete { .. } => Operation::Delete,
        ObjectRequest::Get { .. }
        | ObjectRequest::List { .. }
        | ObjectRequest::Find { .. }
        | ObjectRequest::Search { .. }
        | ObjectRequest::History { .. } => Operation::Read,
    }
}

impl RunObjects {
    /// Returns the objects for the run of a job. In a context, `access` checks the caller.
    pub(super) fn new(broker: &Broker, access: Option<&Arc<dyn ObjectAccess>>, job: &Job) -> Self {
        Self {
            broker: broker.clone(),
            access: access.cloned(),
            caller: job.caller_id.clone(),
            job: job.id.clone(),
        }
    }

    async fn carry_out(
        &self,
        keys: &[String],
        request: ObjectRequest,
    ) -> Result<Value, ObjectError> {
        let space = Space::new(keys.iter().map(String::as_str))?;
        let space = match (self.broker.keys().context(), &self.access) {
            (None, _) => space.of_caller(&self.caller),
            (Some(_), None) => return Err(ObjectError::NotHere),
            (Some(_), Some(access)) => {
                let allowed = access.allow(&self.caller, operation(&request)).await;
                allowed.map_err(ObjectError::Denied)?;
                space
            }
        };
        self.answer(&space, request).await
    }

    async fn answer(&self, space: &Space, request: ObjectRequest) -> Result<Value, ObjectError> {
        let broker = &self.broker;
        let (sets, skip) = match request {
            ObjectRequest::Save { kind, object } => return self.save(space, &kind, object).await,
            ObjectRequest::Get { id } => {
                let found = broker
                    .object(space, checked(&id)?)
                    .await
                    .map_err(unreachable)?;
                return Ok(found.map_or(Value::Null, shown));
            }
            ObjectRequest::Delete { id } => {
                let id = checked(&id)?;
                let deleted = broker.delete_object(space, id, &self.job, Quota::default());
                return Ok(deleted.await.map_err(unreachable)?.into());
            }
            ObjectRequest::History { id } => {
                let versions = broker
                    .object_history(space, checked(&id)?)
                    .await
                    .map_err(unreachable)?;
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
            .await
            .map_err(unreachable)?;
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
            .await
            .map_err(unreachable)?
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

impl ObjectStore for RunObjects {
    fn call<'a>(
        &'a self,
        keys: &'a [String],
        request: ObjectRequest,
    ) -> BoxFuture<'a, Result<Value, ObjectError>> {
        Box::pin(self.carry_out(keys, request))
    }
}

fn unreachable(error: meshwork_broker::Error) -> ObjectError {
    ObjectError::Store(Box::new(error))
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
