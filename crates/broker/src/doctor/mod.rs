//! Checks of a place for jobs: findings and remedies. Each family of checks has a file; checks read [`facts::Facts`]
//! and send no commands. The caller displays the findings.

mod access;
mod backlog;
mod clock;
mod cluster;
mod contexts;
#[cfg(feature = "embedded")]
mod directory;
mod facts;
mod keys;
mod limits;
mod memory;
#[cfg(not(feature = "embedded"))]
mod no_directory;
mod nodes;
mod persistence;
mod progress;
mod queues;
mod replication;
mod schedules;
mod spread;
mod stale;

use meshwork_macros::boxed;
use std::fmt::Display;

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Namespace;
use serde::Serialize;

pub use crate::acl::{bananas_rights, nooble_rights, rights};
use crate::broker::Broker;
use crate::conn::{Conn, ConnectError, Target};
use facts::Facts;
#[cfg(not(feature = "embedded"))]
use no_directory as directory;
use nodes::Nodes;

/// Number of items that a finding names.
const NAMED: usize = 3;

/// Returns a count and the first names: `12, such as a, b, c`.
fn such_as<T: AsRef<str>>(count: impl Display, names: &[T]) -> String {
    let first: Vec<_> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    format!("{count}, such as {}", first.join(", "))
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// All is well.
    Ok,
    /// An improvement is possible.
    Hint,
    /// A failure is possible later.
    Warning,
    /// Jobs do not work here, or may be lost.
    Problem,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check, which does not change between releases.
    pub check: &'static str,
    /// Severity.
    pub level: Level,
    /// Description of the finding.
    pub what: String,
    /// Reason why it matters; `None` if all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// Remedy, with its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Ok,
            what: what.into(),
            why: None,
            remedy: None,
        }
    }

    fn bad(
        level: Level,
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            check,
            level,
            what: what.into(),
            why: Some(why),
            remedy: Some(remedy.into()),
        }
    }
}

/// Examines `target` without changes. Findings have a fixed order. A check that is impossible there, or for this
/// user, has no finding.
///
/// # Errors
/// The server does not answer, or refuses the credentials.
#[boxed]
pub async fn examine(target: &Target, namespace: &Namespace) -> Result<Vec<Finding>, ConnectError> {
    let mut findings = match target {
        Target::Directory(path) => directory::check(path),
        Target::Server(_) => Vec::new(),
    };
    if findings
        .iter()
        .any(|finding| finding.level == Level::Problem)
    {
        // A directory that others can write to must not be connected to.
        return Ok(findings);
    }
    let conn = match Conn::reach(target, namespace).await {
        Ok(conn) => conn,
        Err(error) => return directory::stranger(error),
    };
    let facts = Facts::gather(&conn, target, namespace).await?;
    let families: [fn(&Facts) -> Vec<Finding>; 7] = [
        limits::version,
        memory::check,
        persistence::check,
        access::check,
        replication::check,
        cluster::check,
        limits::check,
    ];
    findings.extend(families.iter().flat_map(|family| family(&facts)));
    let (nodes, of_nodes) = Nodes::query(&conn, &facts).await;
    findings.extend(of_nodes);
    findings.extend(clock::check(&facts));
    let keys = JobKeys::new(namespace.clone());
    findings.extend(clock::steps(&conn, &keys).await);
    findings.extend(keys::check(&conn, &keys).await);
    findings.extend(stale::check(&conn, &keys).await);
    findings.extend(queues::check(&conn, &keys).await);
    findings.extend(progress::check(&Broker::new(conn.clone(), keys.clone())).await);
    findings.extend(contexts::check(&conn, &keys, &nodes).await);
    findings.extend(spread::check(&conn, &keys, &nodes).await);
    findings.extend(schedules::check(&conn, &keys).await);
    findings.extend(backlog::check(&conn, &keys, &nodes).await);
    Ok(findings)
}
