//! Access: missing rights of this user, and access of others.

use super::facts::Facts;
use super::{Finding, Level};
use crate::acl::rights;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    if facts.embedded {
        return Vec::new();
    }
    let found = [commands(facts), user(facts), way(facts)];
    let mut findings: Vec<_> = found.into_iter().flatten().collect();
    if !facts.knows_settings() {
        let what = "this user may not read the settings";
        let why = "some checks are left out; workers and clients do not need that right";
        let remedy = "for a complete check, run doctor as a user with the right to CONFIG GET";
        findings.push(Finding::bad(Level::Hint, "settings", what, why, remedy));
    }
    findings
}

fn commands(facts: &Facts) -> Option<Finding> {
    let what = format!("the server does not have {}", facts.missing.join(", "));
    let why = "clients and workers send them, and fail with `unknown command`";
    let remedy =
        "remove rename-command from the server's configuration; ACL rules restrict users instead";
    let finding = || Finding::bad(Level::Problem, "commands", what, why, remedy);
    (!facts.missing.is_empty()).then(finding)
}

fn user(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "rights";
    let user = facts.user.as_deref().unwrap_or("this user");
    let denied = facts.denied.as_deref()?;
    if denied.is_empty() {
        let what = format!("{user} may do what Meshwork needs");
        return Some(Finding::ok(CHECK, what));
    }
    let what = format!(
        "{user} may not send {} for {}:*",
        denied.join(" "),
        facts.namespace
    );
    let why = "what needs one of these fails with NOPERM";
    let remedy = format!("ACL SETUSER {user} {}", rights(&facts.namespace));
    Some(Finding::bad(Level::Problem, CHECK, what, why, remedy))
}

fn way(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "security";
    let security = facts.security?;
    let encrypted = "use TLS: rediss:// in the URL, and tls-port, tls-cert-file, tls-key-file in the server's \
                     configuration file";
    if security.local {
        let what = "the server is on this host";
        return Some(Finding::ok(CHECK, what));
    }
    if !security.password {
        let what = "no password, and the server is on another host";
        let why = "everybody who reaches it can read and change all jobs, which workers run";
        let remedy = format!(
            "ACL SETUSER meshwork on >PASSWORD {}; ACL SETUSER default off; then user and password in the URL",
            rights(&facts.namespace)
        );
        return Some(Finding::bad(Level::Problem, CHECK, what, why, remedy));
    }
    if !security.encrypted {
        let what = "no TLS, and the server is on another host";
        let why = "the password, scripts and results can be read and changed on the way";
        return Some(Finding::bad(Level::Warning, CHECK, what, why, encrypted));
    }
    Some(Finding::ok(CHECK, "password and TLS"))
}
