//! ACL users of contexts: for each object and role in the table of `docs/permissions.md`, the server permits the commands
//! of the documented operations and no others, and none of them in another context.

use std::collections::{BTreeMap, BTreeSet};

use meshwork_model::acl::{AclServer, AclUser, rules, user_name};
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout, NodeKeys};
use meshwork_test_servers::servers::{RealServer, ServerOptions};
use redis::{Connection, Value};

const DOCUMENT: &str = include_str!("../../../../../docs/permissions.md");
const PASSWORD: &str = "secret";

/// Columns of the table whose roles have an ACL user.
const ROLES: [(usize, AclUser); 3] = [
    (3, AclUser::Admin),
    (4, AclUser::Reader),
    (5, AclUser::Executor),
];

/// Differences between the table and the ACL: the users, the command, the beginning of its key, whether the server
/// permits it, and the documented reason.
const EXCEPTIONS: [(&[AclUser], &str, &str, bool, &str); 5] = [
    (
        &[AclUser::Reader, AclUser::Executor],
        "HSET",
        "message:",
        false,
        "readers and executors have no right to write messages",
    ),
    (
        &[AclUser::Reader, AclUser::Executor],
        "HSET",
        "mw:",
        false,
        "An approver who is a reader answers over the connection of such a user",
    ),
    (
        &[AclUser::Executor],
        "HGETALL",
        "mw:osis:",
        false,
        "Scripts of an executor store objects through their worker",
    ),
    (
        &[AclUser::Executor],
        "DEL",
        "mw:osis:",
        false,
        "Scripts of an executor store objects through their worker",
    ),
    (
        &[AclUser::Admin],
        "RPOP",
        "queue:",
        true,
        "the admin may pop queues too",
    ),
];

/// A command, and its key without the prefix of a context.
type Sent = (&'static str, &'static str);

/// Returns all commands on an object of the table, and those of an operation.
fn commands(object: &str, operation: &str) -> (Vec<Sent>, Vec<Sent>) {
    let (key, kind) = match object {
        "actor" => ("actor:1", "record"),
        "context" => ("context:7", "record"),
        "flow" => ("flow:1", "record"),
        "job" => ("job:1:1", "record"),
        "runner" => ("runner:1", "record"),
        "queue" => ("queue:v", "list"),
        "inbox" => ("msg_in", "list"),
        "object of scripts" => ("mw:osis:context:object:1", "record"),
        "audit trail" => ("mw:audit", "trail"),
        _ if object.starts_with("approval") => ("flow:1", "approval"),
        _ if object.contains("message") => ("message:1:1", "record"),
        _ => panic!("the table has a new object: {object}"),
    };
    let answer = ("HSET", "mw:flow:1");
    let all = match kind {
        "record" => vec![("HGETALL", key), ("HSET", key), ("DEL", key)],
        "list" if object == "inbox" => vec![("LLEN", key), ("RPOP", key)],
        "list" => vec![("LLEN", key), ("RPOP", key), ("DEL", key)],
        "trail" => vec![("XRANGE", key), ("DEL", key)],
        _ => vec![answer],
    };
    let of = match (operation, kind) {
        ("read", "approval") => vec![("HGETALL", key)],
        ("answer", "approval") => vec![answer],
        ("read", _) => vec![all[0]],
        ("create" | "update" | "report" | "cancel or retry", "record") => vec![("HSET", key)],
        // Settings of a queue are in another key.
        ("update", "list") => vec![],
        ("pop", "list") => vec![("RPOP", key)],
        ("delete", "record" | "list") => vec![("DEL", key)],
        _ => panic!("the table has a new operation on {object}: {operation}"),
    };
    (all, of)
}

/// Returns whether the table lets the role send each command that it is about.
fn documented(column: usize, user: AclUser) -> BTreeMap<Sent, bool> {
    let (_, table) = DOCUMENT.split_once("## The table").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let mut permitted = BTreeMap::new();
    // The first row has the names of the columns.
    for row in rows.skip(1).take_while(|row| !row.starts_with("| user ")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (object, operations) = (cells[1], cells[column]);
        let operations = operations.split(", ").filter(|cell| *cell != "–");
        let of: BTreeSet<Sent> = operations.flat_map(|it| commands(object, it).1).collect();
        let all = commands(object, "read").0;
        for sent in all.iter().chain(&of) {
            *permitted.entry(*sent).or_default() |= of.contains(sent);
        }
    }
    for (users, command, key, may, reason) in EXCEPTIONS {
        assert!(DOCUMENT.contains(reason), "{reason}");
        let of = |sent: &Sent| sent.0 == command && sent.1.starts_with(key);
        for (_, permitted) in permitted.iter_mut().filter(|(sent, _)| of(sent)) {
            if users.contains(&user) {
                *permitted = may;
            }
        }
    }
    permitted
}

/// Returns whether the server permits a command. The database of tests has no keys of other types.
fn permits(connection: &mut Connection, command: &str, key: &str) -> bool {
    let mut cmd = redis::cmd(command);
    cmd.arg(key);
    match command {
        "HSET" => cmd.arg("f").arg("v"),
        "XRANGE" => cmd.arg("-").arg("+"),
        _ => &mut cmd,
    };
    match cmd.query::<Value>(connection) {
        Ok(_) => true,
        Err(error) if error.code() == Some("NOPERM") => false,
        Err(error) => panic!("{command} {key}: {error}"),
    }
}

fn users_may_what_is_documented(server: ServerOptions, kind: AclServer, layout: ContextLayout) {
    let Some(server) = server.start() else { return };
    let keys = |id| ContextKeys::new(ContextId::new(id).unwrap(), layout);
    let (own, other) = (keys(7), keys(8));
    for (column, user) in ROLES {
        let name = user_name(user, &own);
        let mut set = vec!["ACL", "SETUSER", &name, "reset", "on"];
        let password = format!(">{PASSWORD}");
        let rules = rules(user, &own, NodeKeys::PLAIN, kind).unwrap();
        set.push(&password);
        set.extend(rules.iter().map(String::as_str));
        server.say::<()>(&set).unwrap();
        let connect = |database| {
            let login = format!("redis://{name}:{PASSWORD}@");
            let url = server.url_of(database).replacen("redis://", &login, 1);
            redis::Client::open(url).unwrap().get_connection()
        };
        let mut node = connect(0).unwrap();
        let mut in_own = connect(own.database()).unwrap();
        // Valkey refuses the login in another database.
        let mut in_other = connect(other.database()).ok();
        for ((command, key), expected) in documented(column, user) {
            let text = format!("{user}: {command} {key}");
            if key.starts_with("actor:") {
                assert_eq!(permits(&mut node, command, key), expected, "{text}");
                continue;
            }
            let name = format!("{}{key}", own.prefix());
            assert_eq!(permits(&mut in_own, command, &name), expected, "{text}");
            let name = format!("{}{key}", other.prefix()).replace("context:7", "context:8");
            let permitted = in_other
                .as_mut()
                .is_some_and(|other| permits(other, command, &name));
            assert!(!permitted, "{text} in context 8");
        }
    }
}

#[test]
fn acl_users_of_contexts_may_what_is_documented() {
    let valkey = AclServer::Valkey { major: 9, minor: 1 };
    for (server, kind, layout) in [
        (
            RealServer::redis(),
            AclServer::Redis { major: 7 },
            ContextLayout::Prefix,
        ),
        (RealServer::valkey(), valkey, ContextLayout::Prefix),
        (RealServer::valkey(), valkey, ContextLayout::Db),
    ] {
        users_may_what_is_documented(server, kind, layout);
    }
}
