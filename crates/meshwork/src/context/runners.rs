//! Runners of a context: workers that have a number.

use std::collections::{BTreeSet, HashMap};

use meshwork_broker::context::Commit;
use meshwork_model::access::{Object, Operation};
use meshwork_model::actor_key::PublicKey;
use meshwork_model::context::{Address, Runner};
use meshwork_model::keys::context::{Counter, RunnerId};
use meshwork_model::name::{Instance, ScriptType};
use meshwork_model::route::Route;

use super::audit::Change;
use super::{Acting, ContextError, ContextHandle, TRIES};
use crate::WorkerInfo;

/// A runner to register.
#[derive(Debug, Clone)]
pub struct NewRunner {
    /// Number. Default: the next free one.
    pub id: Option<RunnerId>,
    /// Script types that it runs.
    pub types: Vec<ScriptType>,
    /// True if it claims jobs from the queues of its context.
    pub local: bool,
    /// Topic of its messages. Default: `runner{id}`.
    pub topic: Option<String>,
    /// Public key of its signatures.
    pub pubkey: Option<PublicKey>,
    /// Address for other nodes.
    pub address: Option<Address>,
}

/// A runner with its load.
#[derive(Debug, Clone)]
pub struct RunnerState {
    /// The runner.
    pub runner: Runner,
    /// Its worker; `None` if it does not run.
    pub worker: Option<WorkerInfo>,
    /// Number of jobs in its own queues, such as those of messages to its topic.
    pub waiting: usize,
    /// Last sign of life of a worker of Meshwork, in milliseconds since 1970.
    pub seen_ms: Option<u64>,
}

impl ContextHandle {
    /// Registers a runner.
    ///
    /// # Errors
    /// [`ContextError::Denied`], [`ContextError::RunnerExists`], [`ContextError::Record`] if a field is over its limit, and
    /// if a call to the server fails.
    pub async fn register_runner(
        &self,
        me: &impl Acting,
        new: &NewRunner,
    ) -> Result<Runner, ContextError> {
        self.allow_caller(me, Object::Runner, Operation::Create)
            .await?;
        let (keys, now) = (self.keys(), self.node().now().await?);
        for _ in 0..TRIES {
            let id = match new.id {
                Some(id) => id,
                None => {
                    let (counter, prefix) = (keys.next_id(Counter::Runner), keys.runner_prefix());
                    let drawn = self
                        .store()
                        .draw(self.database(), &counter, &prefix)
                        .await?;
                    RunnerId(drawn.ok_or(ContextError::NoNumber("runner"))?)
                }
            };
            let runner = Runner {
                id,
                pubkey: new.pubkey,
                address: new.address,
                topic: new
                    .topic
                    .clone()
                    .unwrap_or_else(|| Runner::default_topic(id)),
                types: new.types.clone(),
                local: new.local,
                created_at: now,
                updated_at: now,
            };
            runner.check()?;
            let record = keys.runner(id);
            let change = Change {
                who: &me.to_string(),
                what: "create",
                object: &record,
                ..Change::default()
            };
            let commit = Commit::default()
                .absent(&record)
                .set(&record, runner.to_fields())
                .mark(&keys.index(Counter::Runner), now.into(), record.as_bytes());
            if self
                .commit(&change.noted(commit, &keys.audit()))
                .await?
                .is_done()
            {
                return Ok(runner);
            }
            if new.id.is_some() {
                return Err(ContextError::RunnerExists(id));
            }
        }
        Err(ContextError::Busy("the numbers of runners".to_owned()))
    }

    /// Returns a runner by its number.
    ///
    /// # Errors
    /// [`ContextError::NoRunner`], [`ContextError::Denied`], [`ContextError::Record`], or a call to the server fails.
    pub async fn runner(&self, me: &impl Acting, id: RunnerId) -> Result<Runner, ContextError> {
        self.allow_caller(me, Object::Runner, Operation::Read)
            .await?;
        let key = self.keys().runner(id);
        let fields = self.store().hash(self.database(), &key).await?;
        match fields.is_empty() {
            true => Err(ContextError::NoRunner {
                id,
                context: self.id(),
            }),
            false => Ok(Runner::from_fields(id, fields)?),
        }
    }

    /// Returns all runners with readable records, by number, with their loads.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn runner_states(&self, me: &impl Acting) -> Result<Vec<RunnerState>, ContextError> {
        let runners = self.runners(me).await?;
        let client = self.client(me, Object::Runner, Operation::Read).await?;
        let broker = client.broker();
        let types: BTreeSet<_> = runners.iter().flat_map(|runner| &runner.types).collect();
        let mut workers = HashMap::new();
        for script_type in types {
            for (key, value) in broker.workers_of_type(script_type.as_str()).await? {
                let worker = WorkerInfo::read(&key, &value);
                if let Ok(id) = worker.instance.parse::<RunnerId>() {
                    workers.insert(id, worker);
                }
            }
        }
        let seen = self.keys().runners_seen();
        let seen = self.store().hash(self.database(), &seen).await?;
        let seen: HashMap<String, Vec<u8>> = seen.into_iter().collect();
        let mut states = Vec::with_capacity(runners.len());
        for runner in runners {
            let name: Option<Instance> = runner.id.to_string().parse().ok();
            let mut waiting = 0;
            for script_type in &runner.types {
                let mut route = Route::to(script_type.clone());
                route.instance.clone_from(&name);
                waiting += broker.waiting(&route.queue(broker.keys())).await?;
            }
            let ms = seen.get(&runner.id.to_string());
            let ms = ms.and_then(|ms| std::str::from_utf8(ms).ok()?.parse().ok());
            states.push(RunnerState {
                worker: workers.remove(&runner.id),
                waiting,
                seen_ms: ms,
                runner,
            });
        }
        Ok(states)
    }

    /// Returns all runners with readable records, by number.
    ///
    /// # Errors
    /// [`ContextError::Denied`], or a call to the server fails.
    pub async fn runners(&self, me: &impl Acting) -> Result<Vec<Runner>, ContextError> {
        self.allow_caller(me, Object::Runner, Operation::Read)
            .await?;
        let prefix = self.keys().runner_prefix();
        let mut runners = Vec::new();
        for (number, fields) in self.records(&prefix, Counter::Runner).await? {
            let Ok(id) = number.parse() else { continue };
            runners.extend(Runner::from_fields(id, fields));
        }
        runners.sort_by_key(|runner| runner.id);
        Ok(runners)
    }
}
