//! prerequisites: reads what a job waits for. Changes nothing.

use meshwork_macros::boxed;
use meshwork_model::job::{Job, field};
use meshwork_model::keys::context::{ContextKeys, Prerequisite};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use redis::RedisResult;

use crate::broker::Broker;
use crate::error::Error;
use crate::error::pass_denied;
use crate::verb::text;

/// Something that has to end or open before a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenPrerequisite {
    /// A job, or in a context a message or a flow.
    Ends {
        /// Its id.
        id: JobId,
        /// The status in its record; `None` if it does not exist.
        status: Option<String>,
        /// True if it is among the delayed jobs.
        delayed: bool,
    },
    /// A gate of a context.
    Gate(String),
}

/// Final status of a message, which jobs do not have.
const PROCESSED: &str = "processed";

impl Broker {
    /// Returns the prerequisites of a job that have not ended or opened, in order: at most
    /// [`MAX_PREREQUISITES`](meshwork_model::job::limits::MAX_PREREQUISITES). Reads them in one call.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn open_prerequisites(&self, job: &Job) -> Result<Vec<OpenPrerequisite>, Error> {
        if job.depends_on.is_empty() {
            return Ok(Vec::new());
        }
        let context = self.keys.context();
        let gate = |name: &str| is_gate(context, name);
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for name in &job.depends_on {
            match context.filter(|_| gate(name)) {
                Some(context) => pipe.cmd("SISMEMBER").arg(context.gates()).arg(name),
                None => {
                    let key = self.keys.job_hash_key(&JobId::foreign(name.clone()));
                    pipe.cmd("HGET").arg(key).arg(field::STATUS)
                }
            };
            pipe.cmd("ZSCORE").arg(self.keys.delayed()).arg(name);
        }
        let words: Vec<RedisResult<redis::Value>> = self.ask_all("inspect", &pipe).await?;
        pass_denied("prerequisites", &words)?;
        let mut words = words.into_iter();
        let mut word = || {
            let word = words.next().and_then(Result::ok);
            word.unwrap_or(redis::Value::Nil)
        };
        let open = |name: &String| {
            let (word, due) = (word(), word());
            if gate(name) {
                let is_open = redis::from_redis_value(word).unwrap_or(false);
                return (!is_open).then(|| OpenPrerequisite::Gate(name.clone()));
            }
            let status: Option<Vec<u8>> = redis::from_redis_value(word).unwrap_or_default();
            let status = status.map(text);
            let is_final = status.as_deref().is_some_and(is_final);
            (!is_final).then(|| OpenPrerequisite::Ends {
                id: JobId::foreign(name.clone()),
                status,
                delayed: due != redis::Value::Nil,
            })
        };
        Ok(job.depends_on.iter().filter_map(open).collect())
    }
}

fn is_gate(context: Option<&ContextKeys>, name: &str) -> bool {
    let parsed = context.map(|context| context.parse_prerequisite(name));
    matches!(parsed, Some(Ok(Prerequisite::Gate(_))))
}

fn is_final(word: &str) -> bool {
    word == PROCESSED || word.parse::<Status>().is_ok_and(Status::is_final)
}
