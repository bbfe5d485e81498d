//! `meshwork queue` with `--api`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use meshwork::QueueDepth;
use meshwork::view::QueueView;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::number::counted;
use meshwork_model::queue::QueueSetting;
use meshwork_ops::queue::QueueState;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::limit::LimitCommand;
use super::line::{DEFAULT, Line, print};
use super::pause::{self, tell_depth};
use super::{Queue, QueueCommand, UsageError, limit, list, purge, weight};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;
use crate::scope::Params;

/// Time between two looks at a queue that drains.
const LOOK: Duration = Duration::from_secs(1);

impl QueueCommand {
    /// Runs the command by the API. `params`: its context, or all parts of spread queues.
    pub(super) async fn by_api(
        self,
        context: &mut App,
        params: &Params,
    ) -> Result<Exit, CommandError> {
        match self {
            Self::List(_) => {
                let (queues, _) = queues(context, params).await?;
                list::print(context, &queues)
            }
            Self::Pause(it) => {
                let create = it.create || it.which.all;
                each(
                    context,
                    &it.which,
                    ("pause", create.then_some("create")),
                    params,
                )
                .await
            }
            Self::Resume(it) => each(context, &it.which, ("resume", None), params).await,
            Self::Drain(drain) => Box::pin(drain.by_api(context, params)).await,
            Self::Purge(purge) => purge.by_api(context, params).await,
            Self::Limit(LimitCommand::Show { queue: Some(name) }) if name != DEFAULT => {
                let queue = Queue { name };
                let state = state(context, "queue.get", queue.params(params)).await?;
                tell(context, state)
            }
            Self::Limit(LimitCommand::Set(set)) => set.by_api(context, params).await,
            Self::Set(set) => set.by_api(context, params).await,
            Self::Limit(LimitCommand::Remove(remove)) => {
                let (length, settings) = remove.settings();
                let more = written(length, &settings);
                limits(context, &remove.queue, more, params).await
            }
            Self::Weight(weight::Weight { queue, key, weight }) => {
                let settings = [QueueSetting::Weight(key, Some(weight))];
                limits(context, &queue, written(None, &settings), params).await
            }
            Self::Limit(LimitCommand::Show { .. }) => Err(CommandError::usage(
                "`queue limit show` with --api shows one queue: give its name",
            )),
            Self::Alert(alert) => alert.run(context).await,
            Self::Spread(spread) => spread.by_api(context).await,
            // The table of commands refuses it.
            Self::Stats(_) => Ok(Exit::USAGE),
        }
    }
}

impl Queue {
    fn params(&self, params: &Params) -> Map<String, Value> {
        params.with(json!({"queue": self.name}))
    }
}

/// Reads the queues that exist.
async fn queues(
    context: &App,
    params: &Params,
) -> Result<(Vec<QueueView>, Option<String>), CommandError> {
    let params = params.with(json!({}));
    context
        .pages("queue.list", params, ("queues", usize::MAX))
        .await
}

async fn state(
    context: &App,
    method: &str,
    params: Map<String, Value>,
) -> Result<QueueState, CommandError> {
    context.call(method, &params).await
}

/// Prints the settings of a queue.
fn tell(context: &mut App, state: QueueState) -> Result<Exit, CommandError> {
    let line = Line::new(context, &state.queue, state.limit, state.settings);
    print(context, &line)
}

/// Changes the named queue, or all queues after a confirmation.
async fn each(
    context: &mut App,
    which: &pause::Which,
    (verb, field): (&str, Option<&str>),
    params: &Params,
) -> Result<Exit, CommandError> {
    let names: BTreeSet<_> = match &which.queue {
        Some(name) => [name.clone()].into(),
        None => {
            let (queues, _) = queues(context, params).await?;
            let queues = queues.iter().filter(|queue| !queue.legacy);
            let names = queues.map(|queue| JobKeys::without_priority(&queue.queue).to_owned());
            names.collect()
        }
    };
    which.confirm(verb, names.len())?;
    let mut exit = Exit::DONE;
    for name in names {
        let mut params = Queue { name }.params(params);
        if let Some(field) = field {
            params.insert(field.to_owned(), true.into());
        }
        let state = state(context, &format!("queue.{verb}"), params).await?;
        exit = exit.or(tell(context, state)?);
    }
    Ok(exit)
}

fn depth_of(state: &QueueState) -> QueueDepth {
    QueueDepth {
        waiting: state.waiting,
        set_aside: state.set_aside,
        running: state.running,
        retrying: state.retrying,
        delayed: state.delayed,
    }
}

impl pause::Drain {
    async fn by_api(self, context: &mut App, params: &Params) -> Result<Exit, CommandError> {
        let mut given = self.queue.params(params);
        if self.create {
            given.insert("create".to_owned(), true.into());
        }
        let first = state(context, "queue.drain", given).await?;
        let list = first.queue.clone();
        let name = context.queue_name(&list);
        if first.settings.paused && !self.no_wait {
            note(pause::paused(&name));
        }
        let mut depth = depth_of(&first);
        if self.no_wait {
            return tell_depth(context, &list, &depth);
        }
        let until = Instant::now() + self.timeout;
        let params = self.queue.params(params);
        let app: &App = context;
        let waited = async {
            let mut last = None;
            while !depth.is_empty() {
                if last.replace(depth) != Some(depth) {
                    note(pause::words(&depth));
                }
                if Instant::now() >= until {
                    return Err(CommandError::new(
                        Exit::NOT_ENDED,
                        format_args!("{name} is not empty yet: {}", pause::words(&depth)),
                    ));
                }
                sleep(LOOK).await;
                depth = depth_of(&state(app, "queue.get", params.clone()).await?);
            }
            Ok(depth)
        };
        let interrupt = Interrupt::listen_quietly()?;
        let depth = interrupt.or_detach(waited, pause::goes_on(&name)).await?;
        tell_depth(context, &list, &depth)
    }
}

impl purge::Purge {
    async fn by_api(self, context: &mut App, params: &Params) -> Result<Exit, CommandError> {
        let params = self.queue.params(params);
        let state = state(context, "queue.get", params.clone()).await?;
        let count = state.waiting;
        if let Some(exit) = self.ends_before(context, &state.queue, count)? {
            return Ok(exit);
        }
        let mut deleted = 0;
        loop {
            let purged: BTreeMap<String, Value> = context.call("queue.purge", &params).await?;
            let number = |name: &str| purged.get(name).and_then(Value::as_u64);
            deleted += number("deleted").unwrap_or_default();
            // Jobs that came meanwhile are not meant.
            let is_more = purged.get("more") == Some(&true.into());
            if !is_more || deleted >= count as u64 {
                break;
            }
        }
        note(format_args!("{} deleted", counted(deleted as usize, "job")));
        Ok(Exit::DONE)
    }
}

impl limit::Set {
    async fn by_api(self, context: &mut App, params: &Params) -> Result<Exit, CommandError> {
        let (length, create) = (self.length.map(Some), self.create);
        let queue = self.queue.clone();
        let settings = self.settings();
        if length.is_none() && settings.is_empty() {
            return Err(UsageError::Nothing.into());
        }
        let mut more = written(length, &settings);
        if create {
            more.insert("create".to_owned(), true.into());
        }
        limits(context, &queue, more, params).await
    }
}

/// Changes limits, and prints the new ones.
async fn limits(
    context: &mut App,
    queue: &Queue,
    more: Map<String, Value>,
    params: &Params,
) -> Result<Exit, CommandError> {
    if queue.name == DEFAULT {
        return Err(CommandError::usage(
            "`default` cannot be set with --api: name a queue, or set it where the store is",
        ));
    }
    let mut params = queue.params(params);
    params.extend(more);
    let state = state(context, "queue.limit", params).await?;
    tell(context, state)
}

/// Returns settings as parameters.
fn written(length: Option<Option<u64>>, settings: &[QueueSetting]) -> Map<String, Value> {
    let mut written = Map::new();
    if let Some(length) = length {
        written.insert("length".to_owned(), json!(length));
    }
    for setting in settings {
        use QueueSetting as S;
        let text = |rate: &Option<meshwork_model::queue::Rate>| {
            json!(rate.as_ref().map(ToString::to_string))
        };
        let (name, value) = match setting {
            S::Concurrency(n) => ("concurrency", json!(n)),
            S::KeyConcurrency(n) => ("key_concurrency", json!(n)),
            S::Rate(rate) => ("rate", text(rate)),
            S::KeyRate(rate) => ("key_rate", text(rate)),
            S::Payload(n) => ("payload", json!(n)),
            S::Fair(is) => ("fair", json!(is)),
            S::Sandbox(profile) => ("sandbox", json!(profile.map(|it| it.as_str()))),
            S::RunLimit(limit, n) => ("run_limits", json!({ limit.as_str(): n })),
            S::Weight(key, n) => ("weights", json!({ key.as_str(): n })),
            // Commands of their own change them.
            _ => continue,
        };
        match (written.get_mut(name), value) {
            (Some(Value::Object(before)), Value::Object(more)) => before.extend(more),
            (_, value) => {
                written.insert(name.to_owned(), value);
            }
        }
    }
    written
}
