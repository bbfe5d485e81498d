//! Contexts: messages that no supervisor delivers, full inboxes, and queues without workers. Each check reads a bounded part of
//! the store.

use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;

use super::facts::ask;
use super::nodes::Nodes;
use super::{Finding, Level, queues, such_as};
use crate::broker::Broker;
use crate::conn::Conn;
use crate::context::{ContextStore, Database};

/// Greatest number of contexts that are examined.
const MOST_CONTEXTS: usize = 100;
/// Greatest number of late messages of one kind that are counted.
const MOST: usize = 100;
/// Number of unread messages of a context that is unusual.
const MANY: usize = 100;
/// Milliseconds after which a message that is due is late: a supervisor polls ten times per second, and leases one for
/// 10 s.
const LATE_MS: u64 = 60_000;

/// Findings of all contexts.
#[derive(Default)]
struct Found {
    /// Contexts with messages that are late.
    late: Vec<String>,
    /// Contexts with many unread messages.
    full: Vec<String>,
    /// Findings about queues and workers.
    queues: Vec<Finding>,
}

/// Examines the contexts. Finds nothing on a store without contexts, and for a user that may not read their registry.
pub(super) async fn check(conn: &Conn, keys: &JobKeys, nodes: &Nodes) -> Vec<Finding> {
    let store = ContextStore::of(&Broker::new(conn.clone(), keys.clone()));
    let registry = store.node_keys().contexts();
    if nodes.is_silent(&registry) {
        return Vec::new();
    }
    let registry = store.hash(Database::Node, &registry).await;
    let (Ok(registry), Ok(now)) = (registry, store.now().await) else {
        return Vec::new();
    };
    let mut found = Found::default();
    for (field, word) in registry.into_iter().take(MOST_CONTEXTS) {
        let word = String::from_utf8_lossy(&word);
        if let (Ok(id), Ok(layout)) = (field.parse::<ContextId>(), word.parse::<ContextLayout>()) {
            let keys = ContextKeys::new(id, layout);
            if nodes.is_silent(keys.prefix()) {
                continue;
            }
            if let Ok(conn) = conn.in_database(keys.database()).await {
                found.look(&keys, &conn.of_key(keys.prefix()), now).await;
            }
        }
    }
    found.findings()
}

impl Found {
    /// Examines one context over a connection to its database. Keys of another type are findings of another check.
    async fn look(&mut self, keys: &ContextKeys, conn: &Conn, now: u64) {
        let id = keys.context();
        for set in [keys.outbound(), keys.sent(), keys.open(), keys.letters()] {
            let mut late = redis::cmd("ZRANGEBYSCORE");
            late.arg(&set).arg("-inf").arg(now.saturating_sub(LATE_MS));
            late.arg("LIMIT").arg(0).arg(MOST);
            let late: Vec<Vec<u8>> = ask(conn, &late).await.unwrap_or_default();
            let short = set.strip_prefix(keys.prefix()).unwrap_or(&set);
            if !late.is_empty() {
                let named = format!("context {id} ({} in {short})", late.len());
                self.late.push(named);
            }
        }
        let inbox = keys.msg_in();
        if let Ok(unread @ MANY..) = ask::<usize>(conn, redis::cmd("LLEN").arg(&inbox)).await {
            self.full.push(format!("context {id} ({unread})"));
        }
        let keys = JobKeys::of_context(keys.clone());
        for finding in queues::check(conn, &keys).await {
            let option = format!("meshwork worker --context {id} --type");
            let remedy = finding.remedy;
            self.queues.push(Finding {
                what: format!("context {id}: {}", finding.what),
                remedy: remedy.map(|it| it.replace("meshwork worker --type", &option)),
                ..finding
            });
        }
    }

    fn findings(self) -> Vec<Finding> {
        const LATE: &str =
            "no supervisor delivers them, answers them, or ends them after their timeouts";
        const FULL: &str = "nobody reads the inbox, which grows";
        let of = |level, check, names: &[String], why, remedy: &str| {
            let what = such_as(names.len(), names);
            (!names.is_empty()).then(|| Finding::bad(level, check, what, why, remedy))
        };
        let late = "start `meshwork supervisor`";
        let full = "read it with `meshwork message read --context ID`";
        let own = [
            of(Level::Warning, "late messages", &self.late, LATE, late),
            of(Level::Hint, "unread messages", &self.full, FULL, full),
        ];
        own.into_iter().flatten().chain(self.queues).collect()
    }
}
