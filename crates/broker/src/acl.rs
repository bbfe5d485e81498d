//! Rights of users: ACL rules that allow exactly the commands that Meshwork sends, and checks for missing rights.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use meshwork_model::keys::bananas::BananasKeys;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Namespace;

use crate::commands::{BANANAS_COMMANDS, COMMANDS, NOOBLE_COMMANDS, may_not_say, name};
use crate::conn::Conn;
use crate::script::rights::needed;
use crate::script::{Layout, Protocol, Verb};

/// Returns the rule for `ACL SETUSER` that gives a user the rights that Meshwork needs in `namespace`, and no others.
#[must_use]
pub fn rights(namespace: &Namespace) -> String {
    let commands: Vec<_> = COMMANDS
        .iter()
        .map(|command| format!("+{}", name(command)))
        .collect();
    let commands = commands.join(" ");
    format!("resetkeys ~{namespace}:* resetchannels -@all {commands}")
}

/// Commands that a worker does without: they serve many contexts, clusters, Sentinel, replicas and the doctor.
const SELDOM: [&str; 7] = [
    "acl|whoami",
    "client|tracking",
    "cluster|slots",
    "eval",
    "role",
    "script|exists",
    "wait",
];

/// Returns the additional rules for `ACL SETUSER` for jobs of Bananas under `prefix`.
#[must_use]
pub fn bananas_rights(prefix: &Namespace) -> String {
    let keys = BananasKeys::new(prefix.clone());
    let commands = BANANAS_COMMANDS.map(|command| format!("+{}", name(command)));
    let channels = keys.notify_prefix();
    format!("~{prefix}:* &{channels}* {}", commands.join(" "))
}

/// Commands of a service on its queue: those without which it receives no action, and the rest.
struct OfService {
    needed: &'static [&'static str],
    besides: &'static [&'static str],
}

const OF_STREAM: OfService = OfService {
    needed: &["evalsha", "xreadgroup"],
    besides: &[
        "xack", "xadd", "xclaim", "xdel", "xgroup", "xinfo", "xpending", "xtrim",
    ],
};
const OF_LIST: OfService = OfService {
    needed: &["evalsha", "lmove", "blmove"],
    besides: &["lpush", "lrem", "lrange", "pexpire"],
};

/// Returns the additional rules for `ACL SETUSER` for actions of Nooble4 under `prefix`.
#[must_use]
pub fn nooble_rights(prefix: &Namespace) -> String {
    let commands = NOOBLE_COMMANDS.map(|command| format!("+{}", name(command)));
    format!("~{prefix}:* &{prefix}:* {}", commands.join(" "))
}

/// Returns the commands that this user may not send, or not for the namespace's keys. `None` if the server cannot
/// answer.
pub(crate) async fn denied(conn: &Conn, keys: &JobKeys) -> Option<Vec<&'static str>> {
    match may_not_say(conn, &keys.lease(), &COMMANDS).await {
        Ok(denied) => Some(denied),
        Err(error) if error.code() == Some("NOPERM") => Some(vec!["eval"]),
        Err(_) => None,
    }
}

/// Commands of the scripts for jobs of contexts, read once: the scripts have thousands of lines.
static OF_CONTEXTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let jobs = Verb::ALL
        .into_iter()
        .filter(|verb| verb.protocol() == Protocol::Hero);
    let all: BTreeSet<_> = jobs
        .flat_map(|verb| needed(verb, Layout::Context))
        .collect();
    all.into_iter().collect()
});

/// Returns the commands that a worker's user may not send, or not for its keys. `None` if the server cannot answer.
pub(crate) async fn worker_lacks(conn: &Conn, keys: &JobKeys) -> Option<Vec<&'static str>> {
    if keys.context().is_none() {
        let mut lacks = denied(conn, keys).await?;
        lacks.retain(|command| !SELDOM.contains(command));
        return Some(lacks);
    }
    // The users of a context have fewer rights.
    may_not_say(conn, &keys.lease(), &OF_CONTEXTS).await.ok()
}

/// Returns the commands selected by `says` that this user may not send for a key. `None` if the server cannot answer.
async fn lacks(conn: &Conn, key: &str, says: impl Fn(&str) -> bool) -> Option<Vec<&'static str>> {
    let all = COMMANDS.into_iter().chain(NOOBLE_COMMANDS);
    let said: Vec<_> = all.filter(|command| says(name(command))).collect();
    may_not_say(conn, key, &said).await.ok()
}

/// Returns the commands that a service may not send for a queue, and whether it receives no action without them.
/// `None` if the server cannot answer.
pub(crate) async fn of_service(
    conn: &Conn,
    queue: &str,
    is_stream: bool,
) -> Option<(Vec<&'static str>, bool)> {
    let OfService { needed, besides } = if is_stream { OF_STREAM } else { OF_LIST };
    let says = |name: &str| needed.contains(&name) || besides.contains(&name);
    let lacks = lacks(conn, queue, says).await?;
    let takes_nothing = lacks.iter().any(|command| needed.contains(command));
    Some((lacks, takes_nothing))
}

#[cfg(test)]
mod tests {
    use meshwork_model::acl::{AclServer, AclUser};
    use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout, NodeKeys};

    use super::*;

    /// Returns the commands in a script, in lower case.
    fn said(verb: Verb, layout: Layout) -> Vec<String> {
        let source = verb.source(layout);
        let calls = ["redis.call('", "redis.pcall('", "try('"];
        let after = calls.iter().flat_map(|call| source.split(call).skip(1));
        let name = |rest: &str| rest.split('\'').next().unwrap_or_default().to_lowercase();
        after.map(name).collect()
    }

    /// Returns true for a command that a script does without: the damaged key of a user without the right stays where it is.
    fn is_spared(verb: Verb, said: &str) -> bool {
        verb == Verb::MoveAway && said == "rename"
    }

    /// Every command in scripts must be in one of the lists.
    #[test]
    fn no_script_says_what_is_not_among_the_rights() {
        for (verb, layout) in verbs_in(&Layout::ALL) {
            for said in said(verb, layout) {
                let besides = match verb.protocol() {
                    // Scripts that end an imported job notify Bananas, if the user may.
                    Protocol::Hero | Protocol::Bananas => &BANANAS_COMMANDS[..],
                    Protocol::Nooble => &NOOBLE_COMMANDS,
                    Protocol::Context => &[],
                };
                let mut all = COMMANDS.iter().chain(besides);
                let among = all.any(|command| name(command) == said);
                assert!(among || is_spared(verb, &said), "{verb:?} says {said}");
            }
        }
    }

    fn verbs_in(layouts: &[Layout]) -> Vec<(Verb, Layout)> {
        let of = |layout: &Layout| Verb::ALL.map(|verb| (verb, *layout));
        layouts.iter().flat_map(of).collect()
    }

    /// Scripts run with the rights of their caller: in a context, of the runner's ACL user.
    #[test]
    fn a_runner_may_say_what_scripts_say_in_a_context() {
        let context = ContextId::new(7).expect("it is from 1");
        let keys = ContextKeys::new(context, ContextLayout::Prefix);
        let server = AclServer::Redis { major: 7 };
        let rules = meshwork_model::acl::rules(AclUser::Runner, &keys, NodeKeys::PLAIN, server);
        let rules = rules.expect("it has rules for a prefix");
        let jobs = verbs_in(&[Layout::Context]);
        let jobs = jobs
            .into_iter()
            .filter(|it| it.0.protocol() == Protocol::Hero);
        let mut seen = 0;
        for (verb, layout) in jobs {
            for said in said(verb, layout) {
                let of_bananas = BANANAS_COMMANDS.iter().any(|it| name(it) == said);
                let may = rules.contains(&format!("+{said}"));
                let may = may || of_bananas || is_spared(verb, &said);
                assert!(may, "{verb:?} says {said}");
                seen += 1;
            }
        }
        assert!(seen > 1_000, "only {seen} commands");
    }

    #[test]
    fn the_documentation_gives_the_same_rights_for_bananas() {
        let page = include_str!("../../../docs/bananas.md");
        let rule = format!(
            "ACL SETUSER meshwork {}\n",
            bananas_rights(&Namespace::bananas())
        );
        assert!(page.contains(&rule), "{rule}");
    }

    #[test]
    fn the_documentation_gives_the_same_rights_for_actions() {
        let page = include_str!("../../../docs/actions.md");
        let rule = nooble_rights(&Namespace::nooble());
        assert!(page.contains(&rule), "{rule}");
    }

    #[test]
    fn the_documentation_gives_the_same_rights() {
        let page = include_str!("../../../docs/operations.md");
        let page: Vec<_> = page.split_whitespace().collect();
        let rule = rights(&Namespace::default());
        assert!(
            page.join(" ").contains(&format!(">PASSWORD {rule} ")),
            "{rule}"
        );
    }
}
