//! What is good and bad about a place for jobs, and what to do about it. One file per family of checks; each
//! check looks at [`facts::Facts`] and asks nobody. How findings are shown is not here.

mod access;
mod clock;
mod cluster;
mod directory;
mod facts;
mod keys;
mod limits;
mod memory;
mod persistence;
mod replication;
mod stale;

use meshwork_model::keys::hero::Hero;
use meshwork_model::name::Namespace;
use serde::Serialize;

pub use crate::acl::{bananas_rights, nooble_rights, rights};
use crate::conn::{Conn, ConnectError, Target};
use facts::Facts;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It could be better.
    Hint,
    /// It may go wrong one day.
    Warning,
    /// Jobs do not work here, or may be lost.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check, as a word that stays the same.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub what: String,
    /// Why it matters. Nothing where all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// What to do, with the command that does it.
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

/// Looks at `target`, and changes nothing there. Findings come in a fixed order; a check that cannot be made
/// there, or not by this user, says nothing.
///
/// # Errors
/// If nobody answers or the credentials are refused.
pub async fn examine(target: &Target, namespace: &Namespace) -> Result<Vec<Finding>, ConnectError> {
    let mut findings = match target {
        Target::Directory(path) => directory::check(path),
        Target::Server(_) => Vec::new(),
    };
    if findings
        .iter()
        .any(|finding| finding.level == Level::Problem)
    {
        // Nobody is to be talked to there.
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
    findings.extend(clock::check(&facts));
    let keys = Hero::new(namespace.clone());
    findings.extend(keys::check(&conn, &keys).await);
    findings.extend(stale::check(&conn, &keys).await);
    Ok(findings)
}
