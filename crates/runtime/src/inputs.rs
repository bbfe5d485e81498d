//! Inputs: results of other jobs for a run.

#[cfg(feature = "scripts")]
mod file;

use std::collections::BTreeMap;
use std::sync::Arc;

use meshwork_model::job::Input;
use meshwork_model::job::Job;
use meshwork_model::job::limits::MAX_INPUTS;
use meshwork_model::state::Status;
use serde::de::DeserializeOwned;

#[cfg(feature = "scripts")]
pub(super) use file::value;

/// Results of prerequisites, or in a callback of the jobs of its batch, in order. Each is found by the id of its job,
/// or by its names. Cheap to clone.
///
/// There are at most 1,000 results with 16 MiB in total. A result that does not fit is left out; reading it returns an
/// error.
///
/// ```
/// use meshwork::Inputs;
/// use meshwork::runtime::InputError;
///
/// #[meshwork::job(output = u64)]
/// struct Sum;
///
/// // Enqueued with `client.enqueue(Sum).after_as("rows", &load)`.
/// async fn sum(_: Sum, inputs: Inputs) -> Result<u64, InputError> {
///     let rows: Vec<u64> = inputs.get("rows")?;
///     Ok(rows.iter().sum())
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Inputs(Arc<[Entry]>);

/// One result.
#[derive(Debug)]
pub(super) struct Entry {
    names: Vec<String>,
    input: Input,
}

/// Reason why a result is missing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// No prerequisite has this id or name.
    #[error(
        "there is no input `{name}`: this job has {known}. Name a prerequisite with --depends-on {name}=ID"
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The record of the job was deleted.
    #[error("the result of job {id} is gone: it was pruned (worker --retain-age), or deleted")]
    Gone {
        /// Id of the job.
        id: String,
    },
    /// The job has no result: it ended in error, or has not ended.
    #[error("job {id} has no result: it is {status}")]
    NoResult {
        /// Id of the job.
        id: String,
        /// Its status.
        status: Status,
    },
    /// The result does not fit into the limit.
    #[error(
        "the result of job {id} takes {bytes} bytes, and a run gets at most {MAX_INPUTS} bytes of results: read it \
         with `meshwork job result {id}`"
    )]
    TooLarge {
        /// Id of the job.
        id: String,
        /// Size of its result, in bytes.
        bytes: usize,
    },
    /// The result is not JSON, or not of the requested type.
    #[error("the result of job {id} is not what the handler takes: {source}")]
    Value {
        /// Id of the job.
        id: String,
        /// The cause.
        source: serde_json::Error,
    },
}

impl Inputs {
    /// Returns the results with the names that the job gives them.
    #[must_use]
    pub fn new(job: &Job, inputs: Vec<Input>) -> Self {
        let entry = |input: Input| {
            let names = job.input_names.iter().filter(|(_, id)| **id == input.id);
            let names = names.map(|(name, _)| name.clone()).collect();
            Entry { names, input }
        };
        Self(inputs.into_iter().map(entry).collect())
    }

    /// Returns one input with a name, whose id is `id`.
    pub fn single(name: &str, id: &str, output: Vec<u8>) -> Self {
        let input = Input {
            id: id.to_owned(),
            status: Some(Status::Finished),
            bytes: output.len(),
            output: Some(output),
            errors: BTreeMap::new(),
        };
        let names = vec![name.to_owned()];
        Self([Entry { names, input }].into())
    }

    /// Returns true if there are no results.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ids of the jobs, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.input.id.as_str())
    }

    /// Returns a stored result, by its name or the id of its job.
    ///
    /// # Errors
    /// The name is unknown, or the result is missing.
    pub fn bytes(&self, name: &str) -> Result<&[u8], InputError> {
        self.find(name)?.bytes()
    }

    /// Returns the first stored result; `None` if there are no results.
    pub fn first(&self) -> Result<Option<&[u8]>, InputError> {
        self.0.first().map(Entry::bytes).transpose()
    }

    /// Returns a result decoded from JSON, by its name or the id of its job.
    ///
    /// # Errors
    /// The name is unknown, the result is missing, or it does not fit the type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, InputError> {
        let entry = self.find(name)?;
        serde_json::from_slice(entry.bytes()?).map_err(|source| InputError::Value {
            id: entry.input.id.clone(),
            source,
        })
    }

    /// Returns the errors of a failed job, by its name or id: of a `foreach` by the index of the item, else with the index
    /// 0. Empty for a job that did not fail.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn errors(&self, name: &str) -> Result<&BTreeMap<usize, String>, InputError> {
        Ok(&self.find(name)?.input.errors)
    }

    fn find(&self, name: &str) -> Result<&Entry, InputError> {
        let named = |entry: &&Entry| entry.names.iter().any(|it| it == name);
        let of_id = |entry: &&Entry| entry.input.id == name;
        let found = self.0.iter().find(named);
        found.or_else(|| self.0.iter().find(of_id)).ok_or_else(|| {
            // Keeps the error short.
            const SHOWN: usize = 10;
            let known: Vec<_> = self.entries().take(SHOWN).map(Entry::name).collect();
            let more = if self.0.len() > SHOWN { ", …" } else { "" };
            InputError::Unknown {
                name: name.to_owned(),
                known: match known.is_empty() {
                    true => "none".to_owned(),
                    false => known.join(", ") + more,
                },
            }
        })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }
}

impl Entry {
    /// Returns the names of all results; the id for a result without one.
    fn keys(&self) -> impl Iterator<Item = &str> {
        let id = self.names.is_empty().then_some(self.input.id.as_str());
        self.names.iter().map(String::as_str).chain(id)
    }

    /// Returns the first name, or the id.
    pub(super) fn name(&self) -> &str {
        self.keys().next().unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> Result<&[u8], InputError> {
        let Input {
            id,
            status,
            bytes,
            output,
            ..
        } = &self.input;
        let id = || id.clone();
        match (status, output) {
            (_, Some(output)) => Ok(output),
            (None, None) => Err(InputError::Gone { id: id() }),
            (Some(status), None) if *status == Status::Finished || *bytes > 0 => {
                Err(InputError::TooLarge {
                    id: id(),
                    bytes: *bytes,
                })
            }
            (Some(status), None) => Err(InputError::NoResult {
                id: id(),
                status: *status,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn inputs() -> Inputs {
        let input = |id: &str, status, output: Option<&[u8]>| Input {
            id: id.to_owned(),
            status,
            bytes: 7,
            output: output.map(<[u8]>::to_vec),
            errors: BTreeMap::new(),
        };
        let mut job = Job::default();
        for (name, id) in [("load", "a"), ("again", "a"), ("text", "b")] {
            job.input_names.insert(name.to_owned(), id.to_owned());
        }
        Inputs::new(
            &job,
            vec![
                input("a", Some(Status::Finished), Some(b"[1,2]")),
                input("b", Some(Status::Finished), Some(b"two words")),
                input("c", Some(Status::Finished), Some(b"\xff")),
                input("n", Some(Status::Finished), Some(b"[1e400,-0]")),
                input("gone", None, None),
                Input {
                    bytes: 0,
                    errors: BTreeMap::from([(0, "boom".to_owned())]),
                    ..input("failed", Some(Status::Error), None)
                },
                input("large", Some(Status::Finished), None),
            ],
        )
    }

    #[test]
    fn they_are_found_by_name_and_by_id() {
        let inputs = inputs();
        for name in ["load", "again", "a"] {
            assert_eq!(inputs.get::<Vec<u8>>(name).unwrap(), [1, 2]);
        }
        assert_eq!(inputs.bytes("text").unwrap(), b"two words");
        let ids: Vec<_> = inputs.ids().collect();
        assert_eq!(ids, ["a", "b", "c", "n", "gone", "failed", "large"]);
    }

    #[test]
    fn what_is_missing_says_why() {
        let inputs = inputs();
        for (name, words) in [
            ("gone", "pruned"),
            ("failed", "it is error"),
            ("large", "7 bytes"),
            ("other", "this job has again, text, c, n"),
            ("b", "not what the handler takes"),
        ] {
            let said = inputs.get::<u8>(name).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        let said = Inputs::default().bytes("x").unwrap_err().to_string();
        assert!(said.contains("this job has none"), "{said}");
    }

    #[test]
    fn errors_are_found_by_name() {
        let inputs = inputs();
        assert_eq!(inputs.errors("failed").unwrap()[&0], "boom");
        assert!(inputs.errors("load").unwrap().is_empty());
        assert!(inputs.errors("other").is_err());
    }
}
