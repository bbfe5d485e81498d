//! Replies to actions, and their destinations.

use std::time::Duration;

use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::nooble::{Action, Data, Response, uuid};

use super::context::Expects;
use super::handler::Given;
use super::request::{known_by, new_id, now};
use super::{ANSWER_WAITS, WAITS_FOR_CALLBACK};

/// A reply to send.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) list: String,
    pub(super) message: String,
    pub(super) waits: Option<Duration>,
}

/// Returns true if a caller waits for the reply. The caller then decides about another attempt.
pub(super) fn is_call(action: &Action) -> bool {
    list(action).is_some() && action.callback_action_type.is_none()
}

fn list(action: &Action) -> Option<&str> {
    action
        .callback_queue_name
        .as_deref()
        .filter(|list| !list.is_empty())
}

/// Returns the reply to an action, if the action requests one.
pub(super) fn to(
    action: &Action,
    service: &str,
    names: &NoobleKeys,
    given: &Given,
    expects: Option<Expects>,
) -> Option<Reply> {
    let list = list(action)?.to_owned();
    if !names.owns(&list) {
        let prefix = names.prefix().as_str();
        tracing::warn!(list, prefix, "no answer: the list is none of this prefix");
        return None;
    }
    // Scripts cannot reach a list in another slot of a cluster.
    let tag = names.prefix().hash_tag();
    if tag.is_some_and(|tag| !list.contains(&format!("{{{tag}}}"))) {
        tracing::warn!(
            list,
            "reply not sent: its list is in another slot of the cluster"
        );
        return None;
    }
    let dialect = names.dialect();
    let (message, waits) = match &action.callback_action_type {
        None => (response(action, given).write(dialect), ANSWER_WAITS),
        Some(event) => {
            let callback = callback(action, event, service, given, expects);
            (callback.write(dialect), WAITS_FOR_CALLBACK)
        }
    };
    Some(Reply {
        waits: stays(&list, names, waits),
        list,
        message,
    })
}

/// Returns the TTL of a reply. A reply in the list of a service's actions has none, since an expiry would delete the
/// actions too.
fn stays(list: &str, names: &NoobleKeys, waits: Duration) -> Option<Duration> {
    (!names.is_actions(list)).then_some(waits)
}

fn response(action: &Action, given: &Given) -> Response {
    Response {
        action_id: new_id(),
        // A caller without a correlation id has named a list for this reply only.
        correlation_id: known_by(action).to_owned(),
        trace_id: action
            .trace_id
            .as_ref()
            .unwrap_or(&action.action_id)
            .clone(),
        task_id: action.task_id.clone(),
        tenant_id: action.tenant_id.clone(),
        session_id: action.session_id.clone(),
        timestamp: now(),
        data: given.as_ref().ok().cloned(),
        error: given.as_ref().err().map(|error| error.detail.clone()),
        extra: Vec::new(),
    }
}

fn callback(
    action: &Action,
    event: &str,
    service: &str,
    given: &Given,
    expects: Option<Expects>,
) -> Action {
    let data = match given {
        Ok(data) => data.clone(),
        Err(error) => {
            let text = format!(
                "{{\"error\":{},\"status\":\"failure\"}}",
                error.detail.write()
            );
            Data::parse(&text).unwrap_or_else(|_| Data::empty())
        }
    };
    let asks = expects.is_some().then(|| known_by(action).to_owned());
    let (list, event_of_answer) = expects.map(|it| (it.list, it.event)).unzip();
    Action {
        action_id: new_id(),
        action_type: event.to_owned(),
        timestamp: now(),
        user_id: None,
        origin_service: Some(service.to_owned()),
        correlation_id: asks.or_else(|| action.correlation_id.clone()),
        callback_queue_name: list,
        callback_action_type: event_of_answer,
        execution_config: None,
        query_config: None,
        rag_config: None,
        data,
        metadata: Some(Data::empty()),
        extra: Vec::new(),
        ..action.clone()
    }
}

/// Reads the parts of an invalid action that a reply needs: its destination and its ids. Returns `None` if they are
/// missing. Other faults do not matter.
pub(super) fn salvage(bytes: &[u8], dialect: Dialect) -> Option<Action> {
    let text = String::from_utf8_lossy(bytes);
    let parts: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).ok()?;
    let text = |name: &str| parts.get(name)?.as_str().filter(|text| !text.is_empty());
    let id = |name: &str| match dialect {
        Dialect::Streams => uuid(text(name)?),
        Dialect::Lists => text(name).map(str::to_owned),
    };
    let is_said = |name: &str| parts.get(name).is_some_and(|it| !it.is_null());
    let event = text("callback_action_type").map(str::to_owned);
    if event.is_none() && is_said("callback_action_type") {
        return None;
    }
    let [task_id, tenant_id, session_id, agent_id] =
        ["task_id", "tenant_id", "session_id", "agent_id"].map(id);
    let must = [&task_id, &tenant_id, &session_id];
    let of_callback = event.is_some().then_some(&agent_id);
    let is_known = must.into_iter().chain(of_callback).all(Option::is_some);
    if dialect == Dialect::Streams && !is_known {
        return None;
    }
    // For an action without correlation id or trace, its own id replaces them.
    let own = text("action_id").and_then(uuid);
    let id_or_own = |name: &str| text(name).and_then(uuid).or_else(|| own.clone());
    let correlation_id = id_or_own("correlation_id")?;
    let trace_id = id_or_own("trace_id").unwrap_or_else(|| correlation_id.clone());
    Some(Action {
        action_id: new_id(),
        action_type: String::new(),
        timestamp: now(),
        tenant_id,
        session_id,
        task_id,
        user_id: None,
        agent_id,
        origin_service: None,
        correlation_id: Some(correlation_id),
        trace_id: Some(trace_id),
        callback_queue_name: Some(text("callback_queue_name")?.to_owned()),
        callback_action_type: event,
        execution_config: None,
        query_config: None,
        rag_config: None,
        data: Data::empty(),
        metadata: None,
        extra: Vec::new(),
    })
}
