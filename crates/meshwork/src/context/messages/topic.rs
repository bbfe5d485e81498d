//! Topics of messages: the runner of a context whose queue gets the jobs of a message.

use meshwork_broker::context::Read;
use meshwork_model::context::{Reason, Runner};
use meshwork_model::keys::context::{Counter, RunnerId};
use meshwork_model::name::ScriptType;
use meshwork_model::route::Route;

use crate::context::{ContextError, ContextHandle, PAGE};

/// Greatest number of runners among which a topic is searched.
const MAX_RUNNERS: usize = 10 * PAGE;

impl ContextHandle {
    /// Returns the runner that gets jobs of these types, if their message has a topic; the reason of a refusal if no runner
    /// has the topic, or none of them runs all types.
    pub(crate) async fn runner_of<'a>(
        &self,
        topic: Option<&str>,
        types: impl Iterator<Item = &'a ScriptType> + Clone + Send,
    ) -> Result<Result<Option<RunnerId>, Reason>, ContextError> {
        let Some(topic) = topic else {
            return Ok(Ok(None));
        };
        let found = self.runners_of_topic(topic).await?;
        let lacks = |runner: &Runner| types.clone().find(|it| !runner.types.contains(it));
        if let Some(runner) = found.iter().find(|runner| lacks(runner).is_none()) {
            return Ok(Ok(Some(runner.id)));
        }
        let context = self.id();
        let text = match found.first().and_then(|first| Some((first, lacks(first)?))) {
            Some((runner, lacked)) => format!(
                "runner {} of context {context} (topic {topic:?}) runs no jobs of the type {lacked}",
                runner.id
            ),
            None => format!(
                "no runner of context {context} has the topic {topic:?}: `meshwork runner list` shows them"
            ),
        };
        Ok(Err(Reason::new(Reason::NO_RUNNER, text)))
    }

    /// Returns the runners of a topic, by number. A runner of a plain client is in no index, but its default topic has its
    /// number.
    async fn runners_of_topic(&self, topic: &str) -> Result<Vec<Runner>, ContextError> {
        let named = topic.strip_prefix(Runner::TOPIC_PREFIX);
        let named: Option<RunnerId> = named.and_then(|number| number.parse().ok());
        if let Some(id) = named {
            let record = self.keys().runner(id);
            let fields = self.store().hash(self.database(), &record).await?;
            let runner = Runner::from_fields(id, fields).ok();
            let runner = runner.filter(|it| it.topic == topic && !it.types.is_empty());
            if let Some(runner) = runner {
                return Ok(vec![runner]);
            }
        }
        let (index, prefix) = (
            self.keys().index(Counter::Runner),
            self.keys().runner_prefix(),
        );
        let mut found = Vec::new();
        for from in (0..MAX_RUNNERS).step_by(PAGE) {
            let page = Read::Members(PAGE, from);
            let page = self.store().elements(self.database(), &index, page).await?;
            let names = page
                .iter()
                .filter_map(|it| String::from_utf8(it.clone()).ok());
            let named = names.filter_map(|name| {
                let id: RunnerId = name.strip_prefix(&prefix)?.parse().ok()?;
                Some((name, id))
            });
            let (names, ids): (Vec<String>, Vec<RunnerId>) = named.unzip();
            let records = self.store().hashes(self.database(), &names).await?;
            let runners = ids.into_iter().zip(records);
            let runners = runners.filter_map(|(id, fields)| Runner::from_fields(id, fields).ok());
            found.extend(runners.filter(|runner| runner.topic == topic));
            if page.len() < PAGE {
                break;
            }
        }
        found.sort_by_key(|runner| runner.id);
        Ok(found)
    }
}

/// Returns the route to a runner.
pub(crate) fn to_runner(route: Route, runner: Option<RunnerId>) -> Route {
    Route {
        // A number is a name of an instance.
        instance: runner.and_then(|id| id.to_string().parse().ok()),
        ..route
    }
}
