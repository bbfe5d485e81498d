//! The rules of each user, and where none are written. What servers make of them is in the document.

use super::*;
use crate::keys::context::ContextId;

const DOCUMENT: &str = include_str!("../../../../docs/permissions.md");
const VALKEY: AclServer = AclServer::Valkey { major: 9, minor: 1 };
const REDIS: AclServer = AclServer::Redis { major: 7 };

fn keys(layout: ContextLayout) -> ContextKeys {
    ContextKeys::new(ContextId::new(7).unwrap(), layout)
}

fn of(user: AclUser, layout: ContextLayout, server: AclServer) -> String {
    rules(user, &keys(layout), NodeKeys::PLAIN, server)
        .unwrap()
        .join(" ")
}

/// Every rule that is written.
fn all() -> Vec<(AclUser, ContextLayout, Vec<String>)> {
    let places = [
        (ContextLayout::Db, VALKEY),
        (ContextLayout::Prefix, VALKEY),
        (ContextLayout::Prefix, REDIS),
        (
            ContextLayout::Prefix,
            AclServer::Valkey { major: 8, minor: 1 },
        ),
    ];
    let of_place = |(layout, server): (ContextLayout, AclServer)| {
        AclUser::ALL.map(|user| {
            (
                user,
                layout,
                rules(user, &keys(layout), NodeKeys::PLAIN, server).unwrap(),
            )
        })
    };
    places.into_iter().flat_map(of_place).collect()
}

/// The words of a rule, also those of its parts.
fn words(rule: &[String]) -> Vec<String> {
    let flat = rule.join(" ").replace(['(', ')'], " ");
    flat.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn an_executor_in_a_database() {
    assert_eq!(
        of(AclUser::Executor, ContextLayout::Db, VALKEY),
        "clearselectors resetkeys resetchannels -@all resetdbs \
         db=7 ~job:* +exists +hexists +hget +hgetall +hlen +hmget +type +hset +hello +ping +client|id +select \
         (db=7 ~queue:* +blpop +brpop +llen +rpop) \
         (db=7 %R~context:7 %R~flow:* %R~runner:* +exists +hexists +hget +hgetall +hlen +hmget +type) \
         (db=0 %R~actor:* +exists +hexists +hget +hgetall +hlen +hmget +type +select)"
    );
}

#[test]
fn an_executor_after_a_prefix() {
    assert_eq!(
        of(AclUser::Executor, ContextLayout::Prefix, REDIS),
        "clearselectors resetkeys resetchannels -@all \
         ~{ctx:7}:job:* +exists +hexists +hget +hgetall +hlen +hmget +type +hset +hello +ping +client|id \
         (~{ctx:7}:queue:* +blpop +brpop +llen +rpop) \
         (%R~{ctx:7}:context:7 %R~{ctx:7}:flow:* %R~{ctx:7}:runner:* \
         +exists +hexists +hget +hgetall +hlen +hmget +type) \
         (%R~actor:* +exists +hexists +hget +hgetall +hlen +hmget +type)"
    );
}

#[test]
fn no_rule_has_a_category_or_a_way_out() {
    for (user, layout, rule) in all() {
        for word in words(&rule) {
            let category = word.contains('@') && word != "-@all";
            let everything = [
                "allkeys",
                "allcommands",
                "alldbs",
                "allchannels",
                "nopass",
                "~*",
                "%R~*",
            ];
            // In a database of its own a user may have all keys.
            let of_database = layout == ContextLayout::Db && word.ends_with("~*");
            assert!(!category, "{user} {word}");
            assert!(
                of_database || !everything.contains(&word.as_str()),
                "{user} {word}"
            );
        }
        for out in [
            "keys",
            "randomkey",
            "dbsize",
            "copy",
            "move",
            "swapdb",
            "migrate",
            "flushall",
            "flushdb",
            "config",
            "acl",
            "acl|setuser",
            "function",
            "script",
            "script|flush",
            "debug",
            "monitor",
            "rename",
            "restore",
            "client|kill",
            "client|list",
            "client|no-evict",
            "replicaof",
            "shutdown",
            "publish",
            "subscribe",
        ] {
            assert!(!words(&rule).contains(&format!("+{out}")), "{user} {out}");
        }
    }
}

#[test]
fn every_part_names_its_database_where_the_server_can() {
    for user in AclUser::ALL {
        let rule = of(user, ContextLayout::Db, VALKEY);
        let (context, node) = rule.rsplit_once(" (").unwrap();
        assert_eq!(
            context.matches("db=7").count(),
            context.matches('(').count() + 1
        );
        assert!(
            node.starts_with("db=0 %R~actor:*") && node.contains("+select"),
            "{rule}"
        );
        assert!(!context.contains("db=0"), "{rule}");
        let rule = of(user, ContextLayout::Prefix, VALKEY);
        assert_eq!(rule.matches("db=0").count(), rule.matches('(').count() + 1);
        assert!(!of(user, ContextLayout::Prefix, REDIS).contains("db"));
    }
}

#[test]
fn after_a_prefix_nobody_scans_or_leaves_the_database() {
    for (user, layout, rule) in all() {
        let says = |command: &str| words(&rule).contains(&format!("+{command}"));
        let here = layout == ContextLayout::Db;
        assert_eq!(says("select"), here, "{user}");
        assert_eq!(says("scan"), here && user != AclUser::Executor, "{user}");
        let keys = words(&rule).into_iter().filter(|word| word.contains('~'));
        for key in keys.filter(|_| !here) {
            let own = key.contains("~{ctx:7}:");
            let shared = ["%R~actor:*", "%R~mw:actors", "%R~mw:node"].contains(&key.as_str());
            assert!(own || shared, "{user} {key}");
        }
    }
}

#[test]
fn a_reader_writes_nothing_and_a_runner_no_permissions() {
    for (user, _, rule) in all() {
        let words = words(&rule);
        let writes = |name: &str| {
            words
                .iter()
                .any(|word| word.starts_with('~') && word.contains(name))
        };
        match user {
            AclUser::Reader => {
                assert!(
                    words
                        .iter()
                        .all(|word| !word.starts_with('~') && !word.starts_with("%W"))
                );
                assert!(!words.contains(&"+hset".to_owned()));
            }
            AclUser::Executor | AclUser::Runner => {
                assert!(!writes("context:") && !writes("runner:"), "{rule:?}");
            }
            AclUser::Admin => {}
        }
    }
}

/// The patterns match every name but that of the trail, as the server matches them.
#[test]
fn nobody_deletes_the_audit_trail() {
    let fits = |pattern: &str, name: &str| {
        let (mut name, mut rest) = (name.chars(), pattern);
        while !rest.is_empty() {
            if rest == "*" {
                return true;
            }
            let next = name.next();
            let (fits, after) = match rest.strip_prefix("[^") {
                Some(set) => (next.is_some_and(|c| !set.starts_with(c)), &set[2..]),
                None => (next == rest.chars().next(), &rest[1..]),
            };
            if !fits {
                return false;
            }
            rest = after;
        }
        name.next().is_none()
    };
    let any = |name: &str| BUT_THE_TRAIL.iter().any(|pattern| fits(pattern, name));
    for name in [
        "job:1:1",
        "msg_in",
        "message:1:1",
        "mw:actors",
        "mw:alerts:queue:v",
        "mw:lease",
        "mwx",
    ] {
        assert!(any(name), "{name}");
    }
    assert!(!any(TRAIL));
    for (user, layout, rule) in all() {
        let rule = rule.join(" ");
        let parts = rule.split(['(', ')']).filter(|part| part.contains("+del "));
        for part in parts {
            let all = format!("~{}", keys(layout).prefix());
            let words: Vec<_> = part.split(' ').collect();
            for whole in ["*", "mw:*", TRAIL] {
                assert!(
                    !words.contains(&format!("{all}{whole}").as_str()),
                    "{user} {part}"
                );
            }
        }
    }
}

#[test]
fn where_a_server_cannot_divide_it_refuses_and_says_why() {
    let refused = |layout, server| {
        let mut refusals = AclUser::ALL
            .map(|user| rules(user, &keys(layout), NodeKeys::PLAIN, server).unwrap_err());
        refusals.sort_by_key(ToString::to_string);
        assert!(refusals.windows(2).all(|pair| pair[0] == pair[1]));
        refusals[0].to_string()
    };
    let said = refused(ContextLayout::Db, REDIS);
    assert!(
        said.contains("context 7") && said.contains("layout `prefix`"),
        "{said}"
    );
    let said = refused(ContextLayout::Db, AclServer::Valkey { major: 9, minor: 0 });
    assert!(
        said.contains("Valkey 9.0") && said.contains("9.1 or newer"),
        "{said}"
    );
    let said = refused(ContextLayout::Db, AclServer::Valkey { major: 8, minor: 9 });
    assert!(said.contains("Valkey 8.9"), "{said}");
    let said = refused(ContextLayout::Prefix, AclServer::Redis { major: 6 });
    assert!(said.contains("Redis 7.0 or newer"), "{said}");
    for layout in ContextLayout::ALL {
        let said = refused(layout, AclServer::Embedded);
        assert!(said.contains("no ACL"), "{said}");
    }
    assert!(
        rules(
            AclUser::Admin,
            &keys(ContextLayout::Db),
            NodeKeys::PLAIN,
            AclServer::Valkey {
                major: 10,
                minor: 0
            }
        )
        .is_ok()
    );
}

#[test]
fn the_server_is_told_a_digest() {
    let words = set_user(
        AclUser::Runner,
        &keys(ContextLayout::Db),
        NodeKeys::PLAIN,
        VALKEY,
        &[0xab; 32],
    )
    .unwrap();
    let digest = format!("#{}", "ab".repeat(32));
    assert_eq!(
        words[..5],
        ["SETUSER", "mw-ctx7-runner", "reset", "on", &digest]
    );
    assert_eq!(words[5], "clearselectors");
}

#[test]
fn the_document_has_a_rule_of_each_kind() {
    for (layout, server) in [(ContextLayout::Db, VALKEY), (ContextLayout::Prefix, REDIS)] {
        let rule = of(AclUser::Executor, layout, server);
        let document = DOCUMENT.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            document.contains(&rule),
            "docs/permissions.md lacks: {rule}"
        );
    }
}
