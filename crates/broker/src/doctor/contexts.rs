//! Contexts: entries of the registry, records and keys that are damaged, and messages that ended because they were.

use std::collections::BTreeSet;

use meshwork_model::context::Context;
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;

use super::keys::Looks;
use super::nodes::Nodes;
use super::{Finding, Level, progress, such_as};
use crate::broker::Broker;
use crate::conn::Conn;
use crate::context::{ContextStore, Database, Read, has_no_database};
use crate::verb::MAX_ITEMS;
use crate::verb::move_away::{MAX_SEARCHED, page};

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
    let mut looks = Looks::default();
    looks
        .at_node(&conn.of_key(&registry), store.node_keys())
        .await;
    let Ok(entries) = store.hash(Database::Node, &registry).await else {
        return unmoved.into_iter().chain(looks.into_findings()).collect();
    };
    let broker = Broker::new(conn.clone(), keys.clone());
    let (mut faults, mut ended, mut inside) = (Vec::new(), Vec::new(), Inside::default());
    let registered: BTreeSet<_> = entries.iter().map(|(id, _)| id.clone()).collect();
    for (id, word) in entries.into_iter().take(MOST) {
        let Ok(id) = id.parse::<ContextId>() else {
            continue;
        };
        let word = String::from_utf8_lossy(&word);
        match word.parse::<ContextLayout>() {
            Ok(layout) => {
                let keys = ContextKeys::new(id, layout);
                if !nodes.is_silent(keys.prefix()) {
                    look(conn, &store, &keys, &mut looks, &mut faults, &mut ended).await;
                    inside.look(&broker, keys).await;
                }
            }
            Err(_) => faults.push(format!("the layout of context {id} in {registry}")),
        }
    }
    faults.extend(unregistered(conn, &registered).await);
    let found = [unmoved, damaged(faults), ended_messages(ended)];
    let found = found.into_iter().flatten();
    found
        .chain(looks.into_findings())
        .chain(inside.findings())
        .collect()
}

/// Returns the contexts after a prefix that the registry lacks. Those in a database of their own need no entry.
async fn unregistered(conn: &Conn, registered: &BTreeSet<String>) -> Vec<String> {
    let (mut found, mut from) = (BTreeSet::new(), 0);
    for _ in 0..MAX_SEARCHED / MAX_ITEMS {
        let Ok((next, keys)) = page(conn, "{ctx:", from).await else {
            break;
        };
        let record = |key: &String| {
            let id = ContextKeys::named_in(key)?;
            let is_record = ContextKeys::new(id, ContextLayout::Prefix).record() == *key;
            (is_record && !registered.contains(&id.to_string())).then_some(id)
        };
        found.extend(keys.iter().filter_map(record));
        from = next;
        if from == 0 {
            break;
        }
    }
    let text = |id| format!("context {id} is not in the registry: HSET mw:contexts {id} prefix");
    found.into_iter().map(text).collect()
}

/// Faults of the flows and batches of contexts.
#[derive(Default)]
struct Inside {
    flows: Vec<String>,
    batches: Vec<String>,
}

impl Inside {
    async fn look(&mut self, broker: &Broker, keys: ContextKeys) {
        // A context without its database is named already.
        let Ok(broker) = broker.of_context(keys).await else {
            return;
        };
        self.flows.extend(progress::flow_faults(&broker).await);
        self.batches.extend(progress::batch_faults(&broker).await);
    }

    fn findings(self) -> impl Iterator<Item = Finding> {
        let flows = progress::flows(&self.flows).into_iter();
        flows.chain(progress::batches(&self.batches))
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

/// Examines one context.
async fn look(
    conn: &Conn,
    store: &ContextStore,
    keys: &ContextKeys,
    looks: &mut Looks,
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
        Err(error) if has_no_database(&error) => {
            let what = format!("the server has no database {}", keys.database());
            return faults.push(what);
        }
        Err(error) if !error.is_wrong_type() => return,
        Err(_) => {}
    }
    let (of_context, named) = match keys.layout() {
        ContextLayout::Db => (
            conn.in_database(keys.database()).await,
            Some(keys.database()),
        ),
        ContextLayout::Prefix => (Ok(conn.of_key(keys.prefix())), None),
    };
    if let Ok(conn) = of_context {
        let table = JobKeys::of_context(keys.clone()).table();
        looks.look(&conn, &table, keys.prefix(), named).await;
    }
    let audit = keys.audit();
    let trail = store.entries(database, &audit, Read::Last(TRAIL)).await;
    ended.extend(trail.unwrap_or_default().iter().filter_map(|entry| {
        let field = |name: &str| {
            let found = entry.fields.iter().find(|(field, _)| field == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let is_ended = field("what") == ENDED;
        is_ended.then(|| format!("{} of context {id} ({})", field("object"), field("after")))
    }));
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
