//! save_object, delete_object, read_objects: objects that scripts store.

use meshwork_macros::boxed;
use meshwork_model::object::{
    MAX_ANSWER, MAX_BYTES, MAX_FOUND, MAX_OBJECTS, MAX_VERSIONS, NewObject, Space,
};

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;

/// Limits of all spaces together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Greatest number of objects.
    pub objects: u64,
    /// Greatest size of objects and histories, in bytes.
    pub bytes: u64,
    /// Versions of an object that its history keeps.
    pub versions: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            objects: MAX_OBJECTS,
            bytes: MAX_BYTES,
            versions: MAX_VERSIONS,
        }
    }
}

/// Part of the objects that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectPage {
    /// Number of objects to skip.
    pub skip: usize,
    /// Greatest number of objects.
    pub most: usize,
    /// Bytes of JSON after which no further object is read.
    pub bytes: usize,
}

impl ObjectPage {
    /// Returns the largest page after `skip` objects.
    #[must_use]
    pub const fn after(skip: usize) -> Self {
        Self {
            skip,
            most: MAX_FOUND,
            bytes: MAX_ANSWER,
        }
    }
}

/// Outcome of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedObject {
    /// The object is stored as this version.
    Saved(u64),
    /// The id belongs to an object of this type.
    OfType(String),
    /// One object more would exceed the quota.
    TooMany,
    /// The bytes would exceed the quota.
    TooLarge,
}

/// A stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// Id.
    pub id: String,
    /// Type.
    pub kind: String,
    /// JSON of its map.
    pub json: String,
    /// Number of its version, from 1.
    pub version: u64,
    /// Time of the first version, in milliseconds.
    pub created_ms: u64,
    /// Time of this version, in milliseconds.
    pub changed_ms: u64,
}

/// A version in the history of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    /// Number, from 1.
    pub number: u64,
    /// Time, in milliseconds.
    pub at_ms: u64,
    /// Job that wrote it.
    pub job: String,
    /// JSON of the object; `None` for its deletion.
    pub json: Option<String>,
}

/// Fields of an object in the answer.
type Fields = (
    Option<String>,
    Option<String>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
);

fn stored(id: &str, (kind, json, version, created, changed): Fields) -> Option<StoredObject> {
    Some(StoredObject {
        id: id.to_owned(),
        kind: kind?,
        json: json?,
        version: version.unwrap_or_default(),
        created_ms: created.unwrap_or_default(),
        changed_ms: changed.unwrap_or_default(),
    })
}

/// Returns the name of a job in one line, as the history keeps it.
fn one_line(job: &str) -> String {
    job.replace(char::is_control, " ")
}

impl Broker {
    /// Stores an object under an id, with its index, and adds a version to its history, in one step. An existing object of
    /// the same type is replaced.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn save_object(
        &self,
        space: &Space,
        (id, object): (&str, &NewObject),
        job: &str,
        quota: Quota,
    ) -> Result<SavedObject, Error> {
        let call = self.scripts.call(Verb::SaveObject);
        let call = call.arg(self.clock.argument()).arg(space.as_str()).arg(id);
        let call = call.arg(one_line(job)).arg(&object.kind).arg(&object.json);
        let call = call.arg(quota.objects).arg(quota.bytes).arg(quota.versions);
        let answer: Vec<String> = call.arg(&object.index).run(&self.conn).await?;
        let mut answer = answer.into_iter();
        let (word, value) = (
            answer.next().unwrap_or_default(),
            answer.next().unwrap_or_default(),
        );
        Ok(match word.as_str() {
            "type" => SavedObject::OfType(value),
            "objects" => SavedObject::TooMany,
            "bytes" => SavedObject::TooLarge,
            _ => SavedObject::Saved(value.parse().unwrap_or_default()),
        })
    }

    /// Deletes an object with its index, and adds its deletion to its history, in one step. Returns false if there is no such
    /// object.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn delete_object(
        &self,
        space: &Space,
        id: &str,
        job: &str,
        quota: Quota,
    ) -> Result<bool, Error> {
        let call = self.scripts.call(Verb::DeleteObject);
        let call = call.arg(self.clock.argument()).arg(space.as_str()).arg(id);
        let deleted: i64 = call
            .arg(one_line(job))
            .arg(quota.versions)
            .run(&self.conn)
            .await?;
        Ok(deleted == 1)
    }

    /// Returns an object.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn object(&self, space: &Space, id: &str) -> Result<Option<StoredObject>, Error> {
        let call = self.scripts.call(Verb::ReadObjects).arg(space.as_str());
        let fields: Fields = call.arg("object").arg(1).arg(id).run(&self.conn).await?;
        Ok(stored(id, fields))
    }

    /// Returns the objects that are in all of these index sets, the oldest first. With
    /// several sets, at most 10,000 members of the smallest are looked at.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn objects(
        &self,
        space: &Space,
        sets: &[String],
        page: ObjectPage,
    ) -> Result<Vec<StoredObject>, Error> {
        let call = self.scripts.call(Verb::ReadObjects).arg(space.as_str());
        let call = call.arg("all").arg(page.most.min(MAX_FOUND)).arg(page.skip);
        let call = call.arg(page.bytes).arg(sets);
        let found: Vec<(String, Fields)> = call.run(&self.conn).await?;
        Ok(found
            .into_iter()
            .filter_map(|(id, fields)| stored(&id, fields))
            .collect())
    }

    /// Returns the history of an object, the oldest version first. That of a deleted object stays.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn object_history(
        &self,
        space: &Space,
        id: &str,
    ) -> Result<Vec<ObjectVersion>, Error> {
        let call = self.scripts.call(Verb::ReadObjects).arg(space.as_str());
        let call = call.arg("history").arg(MAX_VERSIONS).arg(id);
        let versions: Vec<String> = call.run(&self.conn).await?;
        let read = |text: &String| {
            let mut parts = text.splitn(4, '\n');
            Some(ObjectVersion {
                number: parts.next()?.parse().ok()?,
                at_ms: parts.next()?.parse().ok()?,
                job: parts.next()?.to_owned(),
                json: parts
                    .next()
                    .filter(|json| !json.is_empty())
                    .map(str::to_owned),
            })
        };
        Ok(versions.iter().filter_map(read).collect())
    }
}
