//! Names and forms of Hero's APIs: three generations, and its coordinator. Each stands for a method of the table, and has its
//! permission; only names, parameters and results differ.

mod auth;
mod coordinator;
mod forms;
mod jobs;
mod runners;
mod table;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork_model::api_key::Scope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

pub(crate) use auth::{Session, expires_at, nonce};
pub use table::HERO;

use super::away::unless_away;
use super::call::Call;
use super::error::{ApiError, Code};
use super::method::{Method, parsed};

/// The API that a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The operations of the dispatcher's protocol.
    Dispatcher,
    /// The API of the circles, over HTTP and WebSocket.
    First,
    /// The supervisor's API with `params.secret`.
    Second,
    /// The supervisor's API with bearer keys.
    Third,
    /// The coordinator of contexts.
    Coordinator,
}

/// Parameters by name.
pub(crate) type Fields = Map<String, Value>;

type Run =
    dyn Fn(Call, Fields) -> BoxFuture<'static, Result<Box<RawValue>, ApiError>> + Send + Sync;

/// A name of Hero's APIs.
pub struct HeroMethod {
    /// The name.
    pub name: &'static str,
    /// The API that it is of.
    pub dialect: Dialect,
    /// True if a public source has the name; false if it follows from the pattern of others.
    pub is_seen: bool,
    /// The method that it stands for.
    pub stands_for: &'static str,
    /// The scope that a key needs; `None` for a method that needs none.
    pub scope: Option<Scope>,
    /// Names of the parameters, in the order of a list.
    positions: &'static [&'static str],
    /// Parameters that tell it from a method of the table with the same name; empty if there is none.
    marks: &'static [&'static str],
    /// True if its parameters are a job: in `job`, or by themselves.
    takes_job: bool,
    run: Box<Run>,
}

impl std::fmt::Debug for HeroMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeroMethod({})", self.name)
    }
}

impl HeroMethod {
    fn new<P, R, F>(
        dialect: Dialect,
        (name, stands_for): (&'static str, &'static str),
        scope: Option<Scope>,
        positions: &'static [&'static str],
        handler: fn(Call, P) -> F,
    ) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Future<Output = Result<R, ApiError>> + Send + 'static,
    {
        let run = move |call: Call, fields: Fields| {
            let params = parsed::<P>(Value::Object(fields));
            async move {
                let result = handler(call, params?).await?;
                let failed =
                    |error: serde_json::Error| ApiError::new(Code::Internal, error.to_string());
                to_raw_value(&result).map_err(failed)
            }
            .boxed()
        };
        Self {
            name,
            dialect,
            is_seen: true,
            stands_for,
            scope,
            positions,
            marks: &[],
            takes_job: false,
            run: Box::new(run),
        }
    }

    /// Says that its parameters are a job.
    fn of_job(mut self) -> Self {
        self.takes_job = true;
        self
    }

    /// Says that no public source has the name.
    fn unseen(mut self) -> Self {
        self.is_seen = false;
        self
    }

    /// Gives it the parameters that tell it from a method of the table.
    fn marked(mut self, marks: &'static [&'static str]) -> Self {
        self.marks = marks;
        self
    }

    /// Returns true if it works in a context that its parameters name, or is about the caller.
    fn has_place(&self) -> bool {
        let of_caller =
            || super::find(self.stands_for.trim_matches('`')).is_some_and(Method::is_of_caller);
        match self.dialect {
            // These are of the node.
            Dialect::Coordinator => !matches!(self.name, "actor.create" | "context.create"),
            _ => of_caller(),
        }
    }

    /// Reads the parameters: an object, or a list in their order.
    fn fields(&self, params: Option<&RawValue>) -> Option<Fields> {
        let value: Value = match params {
            None => return Some(Fields::new()),
            Some(params) => serde_json::from_str(params.get()).ok()?,
        };
        let mut list = match value {
            Value::Object(fields) => return Some(fields),
            Value::Array(list) => list,
            _ => return None,
        };
        // Some clients put the object into a list.
        if let [Value::Object(only)] = &mut list[..] {
            let is_named =
                |name: &String| self.positions.contains(&name.as_str()) || is_secret(name);
            if self.takes_job || (!only.is_empty() && only.keys().all(is_named)) {
                return Some(std::mem::take(only));
            }
        }
        let is_of_it = list.len() <= self.positions.len();
        is_of_it.then(|| {
            let named = self.positions.iter().zip(list.drain(..));
            named
                .map(|(name, value)| ((*name).to_owned(), value))
                .collect()
        })
    }
}

/// Returns the fields of a job, which may be in `job`.
fn of_job(mut fields: Fields) -> Result<Fields, ApiError> {
    match fields.remove("job") {
        None => Ok(fields),
        Some(Value::Object(job)) => Ok(job),
        Some(_) => Err(ApiError::invalid("job: give an object")),
    }
}

/// Returns true for a parameter that has a key.
fn is_secret(name: &str) -> bool {
    name == "secret" || name == "admin_key"
}

/// Finds the method of Hero that a call means. A method of the table with the same name is meant unless the parameters have a
/// mark of Hero's.
fn find(name: &str, params: Option<&RawValue>) -> Option<(&'static HeroMethod, Fields)> {
    let named = HERO.iter().filter(|method| method.name == name);
    named
        .filter_map(|method| Some((method, method.fields(params)?)))
        .find(|(method, fields)| {
            let mut marks = method.marks.iter();
            method.marks.is_empty() || marks.any(|mark| fields.contains_key(*mark))
        })
}

/// Runs a method of Hero; `None` if the call is none of them.
pub(crate) async fn run(
    mut call: Call,
    session: &Session,
    name: &str,
    params: Option<&RawValue>,
) -> Option<Result<Box<RawValue>, ApiError>> {
    let (method, mut fields) = find(name, params)?;
    // A secret is no parameter of the method, and reaches no log and no error.
    let secrets: Vec<_> = ["secret", "admin_key"]
        .into_iter()
        .filter_map(|name| fields.remove(name))
        .collect();
    let secret = secrets.iter().find_map(Value::as_str);
    Some(
        async move {
            let changes = method.scope.is_some_and(|scope| scope != Scope::Viewer);
            if changes && call.idempotency_key.is_some() {
                let message = format!("Idempotency-Key: {name} takes none: give the job an id");
                return Err(ApiError::invalid(message));
            }
            session.identify(&mut call, secret).await?;
            let watched = call.clone();
            let broker = call.client.broker().clone();
            let run = async {
                if let Some(needed) = method.scope {
                    call.access.check(needed, method.name)?;
                    if !method.has_place() {
                        call.outside(needed, method.name).await?;
                    }
                }
                if let Some(result) = session.run(&call, method.name, &fields).await? {
                    return Ok(result);
                }
                if method.takes_job {
                    fields = of_job(fields)?;
                }
                (method.run)(call, fields).await
            };
            // It is large, and would be copied.
            let run = Box::pin(watched.while_allowed(run));
            // Any of them may wait for a job.
            unless_away(&broker, true, run).await
        }
        .await,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn parameters_come_by_name_in_a_list_and_in_their_order() {
        let read = |name: &str, text: &str| {
            let found = find(name, Some(&raw(text)));
            found.map(|(_, fields)| serde_json::to_string(&fields).unwrap())
        };
        for (name, params, fields) in [
            ("start_job", r#"{"job_id":"a"}"#, Some(r#"{"job_id":"a"}"#)),
            (
                "start_job",
                r#"[{"job_id":"a"}]"#,
                Some(r#"{"job_id":"a"}"#),
            ),
            ("start_job", r#"["a"]"#, Some(r#"{"job_id":"a"}"#)),
            (
                "create_job",
                r#"[{"script":"1"}]"#,
                Some(r#"{"script":"1"}"#),
            ),
            (
                "run_job",
                r#"[{"caller_id":"c","script":"1"}]"#,
                Some(r#"{"caller_id":"c","script":"1"}"#),
            ),
            (
                "run_job",
                r#"["1","osis"]"#,
                Some(r#"{"script":"1","script_type":"osis"}"#),
            ),
            (
                "jobs.create",
                r#"[{"secret":"s","job":{}}]"#,
                Some(r#"{"job":{},"secret":"s"}"#),
            ),
            ("start_job", r#"["a","b"]"#, None),
            ("start_job", "7", None),
            // A method of the table has this name too.
            ("job.run", r#"{"type":"osis","script":"1"}"#, None),
            (
                "job.run",
                r#"{"secret":"s","job":{}}"#,
                Some(r#"{"job":{},"secret":"s"}"#),
            ),
            ("job.create", r#"{"type":"osis"}"#, None),
            (
                "actor.load",
                r#"{"params":{"id":1}}"#,
                Some(r#"{"params":{"id":1}}"#),
            ),
            (
                "actor.load",
                r#"[{"id":1}]"#,
                Some(r#"{"params":{"id":1}}"#),
            ),
        ] {
            assert_eq!(read(name, params).as_deref(), fields, "{name} {params}");
        }
    }

    #[test]
    fn each_name_stands_for_a_method_and_the_page_lists_it() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
        let page = std::fs::read_to_string(page).unwrap();
        for method in HERO.iter() {
            let row = format!(
                "| `{}` | {} | {} |",
                method.name,
                if method.is_seen { "yes" } else { "no" },
                method.stands_for
            );
            assert!(page.contains(&row), "docs/api.md lacks: {row}");
            let own = method.stands_for.trim_matches('`');
            assert!(crate::api::find(own).is_some() || own == "–", "{own}");
            let same = crate::api::find(method.name).is_some();
            assert!(!same || !method.marks.is_empty(), "{}", method.name);
        }
    }
}
