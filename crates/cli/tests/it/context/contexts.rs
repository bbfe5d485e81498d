//! `meshwork actor`, `context`, `runner` and `message`: what a user sees, on servers of their own and on the embedded
//! engine. Contexts are databases of a server, so no test shares one.

use std::os::unix::fs::PermissionsExt;

use crate::common::{Done, Ground, Running, eventually};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, ServerOptions};
use serde_json::json;

/// Makes each function a test on redis-server, on valkey-server and on the embedded engine.
macro_rules! on_each_store {
    ($(fn $name:ident($ground:ident: &Ground) $body:block)+) => {
        $(
            mod $name {
                use super::*;

                fn test($ground: &Ground) $body

                fn on(server: ServerOptions) {
                    let Some(server) = server.start() else { return };
                    test(&Ground::url(server.url()));
                }

                #[test]
                fn redis() {
                    on(RealServer::redis());
                }

                #[test]
                fn valkey() {
                    on(RealServer::valkey());
                }

                #[test]
                fn embedded() {
                    if let Some(ground) = Ground::embedded() {
                        test(&ground);
                    }
                }
            }
        )+
    };
}

/// Makes an actor with a key file of this name, and returns his number.
fn actor(ground: &Ground, name: &str) -> String {
    let file = format!("{name}.key");
    let made = ground.run(&["actor", "create", "--key", &file]).ok();
    made.stdout.trim().to_owned()
}

/// Runs a command as the actor of a key file.
fn as_actor(ground: &Ground, name: &str, args: &[&str]) -> Done {
    let file = format!("{name}.key");
    ground.run(&[args, &["--key", &file]].concat())
}

on_each_store! {
    fn reads_create_no_actor_and_no_context(ground: &Ground) {
        for args in [
            &["flow", "list"][..], &["job", "list"], &["message", "list"], &["runner", "list"], &["actor", "list"],
            &["context", "list"], &["queue", "list"],
        ] {
            let listed = ground.run(&[args, &["--json"]].concat()).ok();
            assert_eq!((&*listed.stdout, &*listed.stderr), ("", ""), "{args:?}");
        }
        for (args, word) in [
            (&["flow", "status", "99"][..], "no context"),
            (&["flow", "logs", "99"], "no context"),
            (&["flow", "cancel", "99"], "no context"),
            (&["flow", "retry", "99", "--from", "a"], "no context"),
            (&["flow", "delete", "99"], "no context"),
            (&["flow", "status", "99", "--context", "7"], "no context 7"),
            (&["job", "list", "--context", "7"], "no context 7"),
            (&["message", "read"], "no context"),
            (&["message", "wait", "1:1"], "no context"),
            (&["message", "send", "8", "hello", "--context", "7"], "no context 7"),
            (&["context", "show"], "no context"),
            (&["context", "audit"], "no context"),
            (&["context", "grant", "7", "reader", "1"], "no actor"),
            (&["actor", "show"], "no actor"),
        ] {
            let done = ground.run(args).exits(5);
            assert!(done.stderr.contains(word) && !done.stderr.contains("created"), "{args:?}: {}", done.stderr);
        }
        assert!(!ground.path(".config").exists());
        assert_eq!(ground.stored(), "");
    }

    fn the_first_flow_makes_an_actor_and_a_context(ground: &Ground) {
        ground.file("one.rhai", "1");
        ground.file("one.yaml", "flow: one\njobs:\n  one: {run: one.rhai}\n");
        let sent = ground.run(&["flow", "submit", "one.yaml"]).ok();
        assert!(sent.stderr.contains("created actor 1; its key is in "), "{}", sent.stderr);
        assert!(sent.stderr.contains("created context 1, with actor 1 as admin and executor"), "{}", sent.stderr);
        let context = ground.run(&["context", "show", "--json"]).ok().json();
        assert_eq!((&context["id"], &context["admins"]), (&json!(1), &json!([1])));
        assert_eq!((&context["layout"], &context["database"]), (&json!("db"), &json!(1)));
        let key = ground.path(".config/meshwork/actor.key");
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        let again = ground.run(&["context", "show"]).ok();
        assert!(!again.stderr.contains("created "), "{}", again.stderr);
        assert!(again.stdout.contains("admins       1\n"), "{}", again.stdout);
        assert_eq!(ground.run(&["context", "list", "--json"]).ok().jsons().len(), 1);
        // A key file is lost or another user comes: no second actor is made in silence.
        std::fs::rename(&key, ground.path("away.key")).unwrap();
        let lost = ground.run(&["context", "show"]).exits(2);
        assert!(lost.stderr.contains("meshwork actor create"), "{}", lost.stderr);
    }

    fn actors_have_numbers_and_keys(ground: &Ground) {
        assert_eq!(actor(ground, "ann"), "1");
        let made = ground.run(&["actor", "create", "--key", "bob.key", "--id", "12", "--json"]).ok().json();
        assert_eq!(made["id"], 12);
        let key = made["pubkey"].as_str().unwrap().to_owned();
        let taken = ground.run(&["actor", "trust", &key]).exits(2);
        assert!(taken.stderr.contains("that of actor 12"), "{}", taken.stderr);
        let taken = ground.run(&["actor", "create", "--key", "cid.key", "--id", "12"]).exits(2);
        assert!(taken.stderr.contains("there is an actor 12 already"), "{}", taken.stderr);
        assert!(!ground.path("cid.key").exists(), "no key file is left of an actor that was not made");
        let there = ground.run(&["actor", "create", "--key", "bob.key"]).exits(2);
        assert!(there.stderr.contains("is there already"), "{}", there.stderr);
        let said = ground.run(&["actor", "trust", "zz"]).exits(2).stderr;
        assert!(said.contains("64 hexadecimal digits"), "{said}");
        let listed = ground.run(&["actor", "list", "--json"]).ok().jsons();
        assert_eq!(listed.iter().map(|it| it["id"].clone()).collect::<Vec<_>>(), [1, 12]);
        assert!(ground.run(&["actor", "list"]).ok().stdout.contains(&key));
        // The next number is the next of the counter, whatever others chose.
        assert_eq!(actor(ground, "dan"), "2");
    }

    fn keys_rotate_and_are_revoked(ground: &Ground) {
        actor(ground, "ann");
        let before = as_actor(ground, "ann", &["actor", "show", "--json"]).ok().json();
        as_actor(ground, "ann", &["actor", "rotate"]).ok();
        let after = as_actor(ground, "ann", &["actor", "show", "--json"]).ok().json();
        assert_ne!(before["pubkey"], after["pubkey"]);
        assert_eq!(after["mw_old_pubkey"], before["pubkey"]);
        // The old key counts for a week more.
        ground.run(&["actor", "show", "--key", "ann.key.old"]).ok();
        as_actor(ground, "ann", &["context", "create"]).ok();
        ground.run(&["actor", "revoke", "1"]).ok();
        for refused in [&["context", "show", "1"][..], &["context", "create"], &["message", "read", "--context", "1"]] {
            let said = as_actor(ground, "ann", refused).exits(1).stderr;
            assert!(said.contains("key of actor 1 is revoked"), "{said}");
        }
        assert!(ground.run(&["actor", "list"]).ok().stdout.contains("revoked"));
        ground.run(&["actor", "revoke", "77"]).exits(5);
    }

    fn key_files_that_are_none_are_refused(ground: &Ground) {
        actor(ground, "ann");
        let file = ground.path("ann.key");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let said = as_actor(ground, "ann", &["context", "create"]).exits(2).stderr;
        assert!(said.contains("mode 644") && said.contains("chmod 600"), "{said}");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&file, "secret").unwrap();
        let said = as_actor(ground, "ann", &["context", "create"]).exits(2).stderr;
        assert!(said.contains("no key file") && !said.contains("\"secret\""), "{said}");
        assert_eq!(ground.run(&["context", "list", "--json"]).ok().stdout, "");
    }

    fn a_key_file_is_encrypted_with_a_passphrase(ground: &Ground) {
        let phrase = |name: &str, text: &str| {
            let path = ground.file(name, text);
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
            path
        };
        let (right, wrong) = (phrase("right", "right horse\n"), phrase("wrong", "wrong horse"));
        let with = |file: Option<&std::path::Path>, args: &[&str]| {
            let mut command = ground.command(&[args, &["--key", "ann.key"]].concat());
            command.envs(file.map(|file| ("MESHWORK_ACTOR_PASSPHRASE_FILE", file)));
            let done = Running::start(command).ended();
            assert!(!format!("{}{}", done.stdout, done.stderr).contains("horse"), "{}", done.stderr);
            done
        };
        with(None, &["actor", "create", "--passphrase-file", right.to_str().unwrap()]).ok();
        let stored = std::fs::read_to_string(ground.path("ann.key")).unwrap();
        assert!(stored.starts_with("-----BEGIN AGE ENCRYPTED FILE-----"), "{stored}");
        let shown = with(Some(&right), &["actor", "show", "--json"]).ok().json();
        assert_eq!(shown["key_file_encrypted"], true);
        assert!(with(Some(&right), &["actor", "show"]).ok().stdout.contains("key file encrypted"));
        let none = with(None, &["context", "create"]).exits(2).stderr;
        assert!(none.contains("MESHWORK_ACTOR_PASSPHRASE_FILE"), "{none}");
        let other = with(Some(&wrong), &["context", "create"]).exits(2).stderr;
        assert!(other.contains("ann.key") && other.contains("another passphrase"), "{other}");
        std::fs::set_permissions(&right, PermissionsExt::from_mode(0o640)).unwrap();
        let open = with(Some(&right), &["context", "create"]).exits(2).stderr;
        assert!(open.contains("right") && open.contains("mode 640"), "{open}");
        std::fs::set_permissions(&right, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(ground.run(&["context", "list", "--json"]).ok().stdout, "", "nothing was created");
        // No terminal: there is no prompt, and no key is made.
        let refused = ground.run(&["actor", "create", "--key", "bob.key", "--passphrase-prompt"]).exits(2).stderr;
        assert!(refused.contains("--passphrase-file") && !ground.path("bob.key").exists(), "{refused}");
        with(Some(&right), &["context", "create"]).ok();
        // The next key has the same passphrase.
        with(Some(&right), &["actor", "rotate"]).ok();
        let stored = std::fs::read_to_string(ground.path("ann.key")).unwrap();
        assert!(stored.starts_with("-----BEGIN AGE ENCRYPTED FILE-----"), "{stored}");
        with(Some(&right), &["context", "show", "1"]).ok();
    }

    fn contexts_have_a_number_and_a_layout(ground: &Ground) {
        let create = |args: &[&str]| ground.run(&[&["context", "create", "--json"], args].concat());
        assert_eq!(create(&["--id", "7"]).ok().json(), json!({"id": 7, "layout": "db", "admin": 1}));
        assert_eq!(create(&[]).ok().json()["id"], 1);
        assert_eq!(create(&[]).ok().json()["id"], 2);
        // Beyond the databases of the server.
        assert_eq!(create(&["--id", "1000"]).ok().json()["layout"], "prefix");
        assert_eq!(create(&["--id", "8", "--layout", "prefix"]).ok().json()["layout"], "prefix");
        for (args, exit, word) in [
            (&["--id", "7"][..], 2, "there is a context 7 already"),
            (&["--id", "1001", "--layout", "db"], 2, "no database 1001"),
            (&["--id", "0"], 2, "reserved for the node"),
            (&["--id", "4294967296"], 2, "too large"),
            (&["--id", "9", "--layout", "table"], 2, "db or prefix"),
        ] {
            let said = create(args).exits(exit).stderr;
            assert!(said.contains(word), "{said}");
        }
        let listed = ground.run(&["context", "list", "--json"]).ok().jsons();
        let ids: Vec<_> = listed.iter().map(|it| it["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 2, 7, 8, 1000]);
        let said = ground.run(&["context", "show", "3"]).exits(5).stderr;
        assert!(said.contains("there is no context 3"), "{said}");
        let said = ground.run(&["context", "show"]).exits(2).stderr;
        assert!(said.contains("has 5 contexts"), "{said}");
    }

    fn each_role_may_do_what_the_table_says(ground: &Ground) {
        for name in ["admin", "reader", "executor", "stranger", "revoked"] {
            actor(ground, name);
        }
        as_actor(ground, "admin", &["context", "create", "--id", "7"]).ok();
        for (role, number) in [("reader", "2"), ("executor", "3"), ("admin", "5")] {
            as_actor(ground, "admin", &["context", "grant", "7", role, number]).ok();
        }
        ground.run(&["actor", "revoke", "5"]).ok();
        ground.file("job.rhai", "1");
        let matrix: [(&[&str], [bool; 3]); 9] = [
            (&["context", "show", "7"], [true, true, true]),
            (&["context", "grant", "7", "reader", "4"], [true, false, false]),
            (&["context", "revoke", "7", "reader", "4"], [true, false, false]),
            (&["context", "set", "7", "--unsigned", "accept"], [true, false, false]),
            (&["context", "audit", "7"], [true, true, false]),
            (&["runner", "register", "--type", "osis", "--context", "7"], [true, false, false]),
            (&["runner", "list", "--context", "7"], [true, true, true]),
            (&["message", "send", "7", "hello", "--context", "7"], [true, true, true]),
            (&["message", "send", "7", "--job", "job.rhai", "--context", "7"], [true, false, false]),
        ];
        for (command, may) in matrix {
            for (name, may) in ["admin", "reader", "executor"].into_iter().zip(may) {
                let done = as_actor(ground, name, command);
                match may {
                    true => done.ok(),
                    false => {
                        let done = done.exits(1);
                        assert!(done.stderr.contains("may not"), "{name} {command:?}: {}", done.stderr);
                        assert!(done.stderr.contains("in context 7"), "{}", done.stderr);
                        done
                    }
                };
            }
            let said = as_actor(ground, "stranger", command).exits(1).stderr;
            assert!(said.contains("actor 4 may not"), "{command:?}: {said}");
            let said = as_actor(ground, "revoked", command).exits(1).stderr;
            assert!(said.contains("is revoked"), "{command:?}: {said}");
        }
        // Each refusal is counted: who, how often, and the last reason. The trail has none of them.
        let audit = |option: &str| as_actor(ground, "admin", &["context", "audit", "7", "--json", option]).ok().jsons();
        let (refused, trail) = (audit("--refused"), audit("--limit=1000"));
        let counts = refused.iter().map(|row| row["count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), 9 + 11, "{refused:?}");
        let text = refused[0]["last"].as_str().unwrap();
        assert!(text.starts_with("actor ") && text.contains("context 7"), "{text}");
        assert_eq!(refused[0]["who"], text.split(" may not").next().unwrap());
        assert!(trail.iter().all(|entry| entry["what"] != "refuse"), "{trail:?}");
        let granted: Vec<_> = trail.iter().filter(|it| it["what"] == "grant").collect();
        assert_eq!((&granted[0]["before"], &granted[0]["after"]), (&json!("[]"), &json!("[2]")));
    }

    fn roles_are_granted_once_and_the_last_admin_stays(ground: &Ground) {
        actor(ground, "ann");
        actor(ground, "bob");
        as_actor(ground, "ann", &["context", "create", "--id", "7"]).ok();
        as_actor(ground, "ann", &["context", "grant", "7", "reader", "2"]).ok();
        for (args, exit, word) in [
            (["grant", "7", "reader", "2"], 1, "has that role"),
            (["grant", "7", "reader", "9"], 5, "there is no actor 9"),
            (["revoke", "7", "executor", "2"], 1, "does not have that role"),
            (["revoke", "7", "admin", "1"], 1, "only admin"),
            (["grant", "7", "boss", "2"], 2, "boss"),
        ] {
            let said = as_actor(ground, "ann", &[&["context"], &args[..]].concat()).exits(exit).stderr;
            assert!(said.contains(word), "{said}");
        }
        let shown = as_actor(ground, "ann", &["context", "show", "7", "--json"]).ok().json();
        assert_eq!((&shown["admins"], &shown["readers"]), (&json!([1]), &json!([2])));
    }

    fn runners_have_numbers(ground: &Ground) {
        let made = ground.run(&["runner", "register", "--type", "python,v", "--id", "20", "--json"]).ok().json();
        assert_eq!((&made["type"], &made["topic"], &made["local"]), (&json!("python,v"), &json!("runner20"), &json!(true)));
        let refused = ground.run(&["runner", "register", "--type", "osis", "--remote"]).exits(2).stderr;
        assert!(refused.contains("not supported yet"), "{refused}");
        assert_eq!(ground.run(&["runner", "register", "--type", "osis"]).ok().stdout, "1\n");
        ground.run(&["runner", "register", "--type", "osis", "--id", "20"]).exits(1);
        let listed = ground.run(&["runner", "list", "--json"]).ok().jsons();
        assert_eq!(listed.iter().map(|it| it["id"].clone()).collect::<Vec<_>>(), [1, 20]);
    }

    fn people_talk_across_contexts(ground: &Ground) {
        ground.run(&["context", "create", "--id", "7"]).ok();
        ground.run(&["context", "create", "--id", "8"]).ok();
        let mut supervisor = ground.start(&["supervisor", "--json"]);
        assert_eq!(crate::common::json(&supervisor.line())["event"], "ready");
        let sent = ground.run(&["message", "send", "8", "Good morning", "--context", "7"]).ok().stdout;
        assert_eq!(sent, "message:1:1\n");
        let came = eventually("the message has come", || {
            ground.run(&["message", "read", "--context", "8", "--json"]).ok().jsons().pop()
        });
        assert_eq!((&came["message"], &came["status"]), (&json!("Good morning"), &json!("processed")));
        // The sender knows that it was read.
        ground.run(&["message", "wait", "1:1", "--context", "7", "--timeout", "20"]).ok();
        let listed = ground.run(&["message", "list", "--context", "7", "--json"]).ok().jsons();
        assert_eq!((&listed[0]["status"], listed.len()), (&json!("processed"), 1));
        assert!(ground.run(&["message", "read", "--context", "8", "--json"]).ok().stdout.is_empty());
        for (args, exit, word) in [
            (&["message", "send", "9", "x", "--context", "7"][..], 5, "there is no context 9"),
            (&["message", "send", "8", "x", "--context", "7", "--timeout", "0"], 2, "a timeout is a whole number"),
            (&["message", "send", "8", "x", "--context", "7", "--timeout", "604801"], 2, "a timeout is a whole number"),
            (&["message", "wait", "1:99", "--context", "7"], 5, "there is no message:1:99"),
            (&["message", "wait", "x", "--context", "7"], 2, "CALLER:ID"),
        ] {
            let said = ground.run(args).exits(exit).stderr;
            assert!(said.contains(word), "{args:?}: {said}");
        }
        supervisor.stop();
    }
}

#[test]
fn a_database_in_use_is_no_context() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let mut plain = Plain::connect(&server.url_of(5)).unwrap();
    plain.ask::<()>(&["SET", "mine", "1"]).unwrap();
    let said = ground
        .run(&["context", "create", "--id", "5"])
        .exits(2)
        .stderr;
    assert!(said.contains("database 5 holds keys"), "{said}");
    assert_eq!(plain.ask::<Vec<String>>(&["KEYS", "*"]).unwrap(), ["mine"]);
    assert_eq!(ground.run(&["context", "list", "--json"]).ok().stdout, "");
    // One that a plain client made by hand is one, without an entry in the registry.
    let mut by_hand = Plain::connect(&server.url_of(6)).unwrap();
    by_hand
        .ask::<i64>(&["HSET", "context:6", "id", "6", "admins", "[1]"])
        .unwrap();
    assert_eq!(
        ground.run(&["context", "show", "6", "--json"]).ok().json()["admins"],
        json!([1])
    );
    // A registry that contradicts the keys.
    let mut node = Plain::connect(&server.url()).unwrap();
    node.ask::<i64>(&["HSET", "mw:contexts", "9", "db"])
        .unwrap();
    let said = ground.run(&["context", "show", "9"]).exits(5).stderr;
    assert!(said.contains("its record is not there"), "{said}");
    node.ask::<i64>(&["HSET", "mw:contexts", "9", "table"])
        .unwrap();
    let said = ground.run(&["context", "show", "9"]).exits(2).stderr;
    assert!(said.contains("write db or prefix"), "{said}");
}
