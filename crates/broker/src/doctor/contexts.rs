//! Contexts: entries of the registry, records and keys that are damaged, and messages that ended because they were.

use meshwork_model::context::Context;
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;

use super::nodes::Nodes;
use super::{Finding, Level, keys, progress, such_as};
use crate::broker::Broker;
use crate::conn::Conn;
use crate::context::{ContextStore, Database, Read, has_no_database};
use crate::error::Error;

/// Greatest number of contexts that are examined.
const MOST: usize = 1_000;
/// Latest entries of an audit trail that are read.
const TRAIL: usize = 100;
/// Action in the audit trail of a message that ended because it was damaged.
const ENDED: &str = "end damaged";

/// Examines the contexts of the registry. Finds nothing for a user that may not read them.
pub(super) async fn check(conn: &Conn, keys: &JobKeys, nodes: &Nodes) -> Vec<Finding> {
    let store = ContextStore::of(&Broker::new(conn.clone(), keys.clone()));
    let registry = store.node_keys().contexts();
    if nodes.is_silent(&registry) {
        return Vec::new();
    }
    let unmoved = unmoved(&store).await;
    let entries = match store.hash(Database::Node, &registry).await {
        Ok(entries) => entries,
        Err(error) if is_of_a_type(&error) => {
            let damaged = damaged(vec![format!("{registry} is no hash")]);
            return unmoved.into_iter().chain(damaged).collect();
        }
        Err(_) => return unmoved.into_iter().collect(),
    };
    let broker = Broker::new(conn.clone(), keys.clone());
    let (mut faults, mut ended, mut inside) = (Vec::new(), Vec::new(), Inside::default());
    for (id, word) in entries.into_iter().take(MOST) {
        let Ok(id) = id.parse::<ContextId>() else {
            continue;
        };
        let word = String::from_utf8_lossy(&word);
        match word.parse::<ContextLayout>() {
            Ok(layout) => {
                let keys = ContextKeys::new(id, layout);
                if !nodes.is_silent(keys.prefix()) {
                    look(&store, &keys, &mut faults, &mut ended).await;
                    inside.look(&broker, keys).await;
                }
            }
            Err(_) => faults.push(format!("the layout of context {id} in {registry}")),
        }
    }
    [unmoved, damaged(faults), ended_messages(ended)]
        .into_iter()
        .flatten()
        .chain(inside.findings())
        .collect()
}

/// Faults of the keys, flows and batches of contexts.
struct Inside {
    /// Number of keys that may still be looked at.
    left: usize,
    keys: Vec<Finding>,
    flows: Vec<String>,
    batches: Vec<String>,
}

impl Default for Inside {
    fn default() -> Self {
        Self {
            left: keys::MOST,
            keys: Vec::new(),
            flows: Vec::new(),
            batches: Vec::new(),
        }
    }
}

impl Inside {
    async fn look(&mut self, broker: &Broker, keys: ContextKeys) {
        // A context without its database is named already.
        let Ok(broker) = broker.of_context(keys).await else {
            return;
        };
        let found = keys::check(broker.conn(), broker.keys(), &mut self.left).await;
        self.keys.extend(found);
        self.flows.extend(progress::flow_faults(&broker).await);
        self.batches.extend(progress::batch_faults(&broker).await);
    }

    fn findings(mut self) -> Vec<Finding> {
        self.keys.truncate(keys::MOST_NAMED);
        self.keys.extend(progress::flows(&self.flows));
        self.keys.extend(progress::batches(&self.batches));
        self.keys
    }
}

/// Finds keys of the node that a single server had, on a Cluster.
async fn unmoved(store: &ContextStore) -> Option<Finding> {
    const CHECK: &str = "keys of a single server";
    const WHY: &str = "on a Cluster, actors and the registry of contexts need the hash tag {mw}";
    let (keys, has_own) = store.unmoved().await.ok()?;
    if keys.is_empty() {
        return None;
    }
    let what = such_as(keys.len(), &keys);
    let remedy = match has_own {
        true => {
            "this Cluster has actors or contexts of its own, and keeps these apart: delete them, with actor:*"
        }
        false => {
            "`meshwork context list` moves them, as does the first command that uses contexts; stop older programs first"
        }
    };
    let level = match has_own {
        true => Level::Warning,
        false => Level::Hint,
    };
    Some(Finding::bad(level, CHECK, what, WHY, remedy))
}

fn is_of_a_type(error: &Error) -> bool {
    matches!(error, Error::WrongType { .. } | Error::WrongKind { .. })
}

/// Examines one context.
async fn look(
    store: &ContextStore,
    keys: &ContextKeys,
    faults: &mut Vec<String>,
    ended: &mut Vec<String>,
) {
    let id = keys.context();
    let database = match keys.layout() {
        ContextLayout::Db => Database::Own(keys.database()),
        ContextLayout::Prefix => Database::Node,
    };
    let record = keys.record();
    match store.hash(database, &record).await {
        Ok(fields) if fields.is_empty() => faults.push(format!("the record {record} is missing")),
        Ok(fields) => {
            if let Err(error) = Context::from_fields(id, fields) {
                faults.push(error.to_string());
            }
        }
        Err(error) if is_of_a_type(&error) => faults.push(format!("{record} is no hash")),
        Err(error) if has_no_database(&error) => {
            let what = format!("the server has no database {}", keys.database());
            return faults.push(what);
        }
        Err(_) => return,
    }
    let lists = [
        keys.msg_out(),
        keys.msg_out_coordinator(),
        keys.msg_in(),
        keys.msg_in_jobs(),
    ];
    // Those of jobs and flows are among the keys by their names.
    let sets = [keys.outbound(), keys.sent()];
    let lists = lists.iter().map(|key| (key, Read::Tail(1), "list"));
    let sets = sets.iter().map(|key| (key, Read::Due(1), "sorted set"));
    for (key, read, kind) in lists.chain(sets) {
        let found = store.elements(database, key, read).await;
        if found.is_err_and(|error| is_of_a_type(&error)) {
            faults.push(format!("{key} of context {id} is no {kind}"));
        }
    }
    match store
        .entries(database, &keys.audit(), Read::Last(TRAIL))
        .await
    {
        Ok(entries) => ended.extend(entries.into_iter().filter_map(|entry| {
            let field = |name: &str| {
                let found = entry.fields.iter().find(|(field, _)| field == name);
                found.map_or("", |(_, value)| value.as_str())
            };
            let is_ended = field("what") == ENDED;
            is_ended.then(|| format!("{} of context {id} ({})", field("object"), field("after")))
        })),
        Err(error) if is_of_a_type(&error) => {
            faults.push(format!("{} of context {id} is no stream", keys.audit()));
        }
        Err(_) => {}
    }
}

fn damaged(faults: Vec<String>) -> Option<Finding> {
    const CHECK: &str = "contexts";
    const WHY: &str =
        "messages and jobs that need them are refused, or wait until they are repaired";
    let what = such_as(faults.len(), &faults);
    let remedy = "restore what is damaged, or delete it: `meshwork context list` shows the contexts, and keys of another type \
                  are moved away with RENAME";
    (!faults.is_empty()).then(|| Finding::bad(Level::Problem, CHECK, what, WHY, remedy))
}

fn ended_messages(ended: Vec<String>) -> Option<Finding> {
    const CHECK: &str = "damaged messages";
    const WHY: &str = "their records could not be read, so they ended with the status `error`";
    let what = such_as(ended.len(), &ended);
    let remedy = "`meshwork context audit ID` shows all of them; their senders send them again";
    (!ended.is_empty()).then(|| Finding::bad(Level::Warning, CHECK, what, WHY, remedy))
}
