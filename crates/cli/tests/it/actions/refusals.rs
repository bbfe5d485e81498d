//! Errors of actions that the server refuses name the key, the command and the remedy. The keys of a call always get a
//! TTL.

use crate::common::{Ground, Running, eventually};
use meshwork_test_servers::servers::RealServer;
use rustix::process::Signal;

const QUEUE: &str = "nooble4:dev:demo:streams:main";
const LIST: &str = "nooble4:dev:demo:actions";
const DEAD: &str = "nooble4:dev:demo:actions:dead_letter";

/// The service `demo`.
fn service(ground: &Ground, more: &[&str]) -> Running {
    ground.file("a.rhai", "#{}");
    let words = ["service", "--name", "demo", "--handler", "demo.x=a.rhai"];
    ground.start(&[&words[..], more].concat())
}

/// A user of the server with these rules, and where it finds its data.
fn as_user(server: &RealServer, rules: &[&str]) -> Ground {
    let user = ["ACL", "SETUSER", "ann", "on", ">sesame"];
    server.say::<()>(&[&user[..], rules].concat()).unwrap();
    let url = server.url_without_login();
    Ground::url(url.replace("redis://", "redis://ann:sesame@"))
}

#[test]
fn a_key_of_another_kind_is_named() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    for (queue, dialect) in [(QUEUE, "streams"), (LIST, "lists")] {
        server
            .say::<()>(&["XADD", DEAD, "1-1", "data", "{}", "queue", queue])
            .unwrap();
        server.say::<()>(&["SET", queue, "x"]).unwrap();
        let words = [
            "action",
            "dead",
            "replay",
            "demo",
            "1-1",
            "--dialect",
            dialect,
        ];
        let said = ground.run(&words).exits(3).stderr;
        let holds = format!("{queue} (now a string)");
        assert!(
            said.contains(&holds) && said.contains("rename or delete"),
            "{said}"
        );
        let mut running = service(&ground, &["--dialect", dialect]);
        let mut lines = std::iter::repeat_with(|| running.said());
        let said = lines.find(|line| line.contains("holds a value of another kind"));
        assert!(
            said.as_ref().is_some_and(|line| line.contains(queue)),
            "{said:?}"
        );
        server.say::<()>(&["DEL", DEAD]).unwrap();
    }
}

#[test]
fn what_the_acl_forbids_is_named() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    // All commands, but not these keys.
    let ground = as_user(&server, &["~hero:*", "&*", "+@all"]);
    for (queue, dialect) in [(QUEUE, "streams"), (LIST, "lists")] {
        let said = service(&ground, &["--dialect", dialect])
            .ended()
            .exits(3)
            .stderr;
        for word in [queue, "evalsha", "docs/operations.md", "~nooble4:*"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    let said = ground.run(&["action", "call", "demo.x"]).exits(3).stderr;
    assert!(
        said.contains(QUEUE) && said.contains("docs/operations.md"),
        "{said}"
    );
    // These keys, but not all commands: a script does not say which it is.
    server
        .say::<()>(&["ACL", "SETUSER", "ann", "~nooble4:*", "-xdel"])
        .unwrap();
    server
        .say::<()>(&["XADD", DEAD, "1-1", "data", "{}"])
        .unwrap();
    let said = ground
        .run(&["action", "dead", "replay", "demo", "1-1"])
        .exits(3)
        .stderr;
    assert!(
        said.contains("it may not send xdel") && said.contains(DEAD),
        "{said}"
    );
}

/// It may take from one of its queues, and goes on with that.
#[test]
fn a_service_goes_on_with_what_it_may_take() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = as_user(
        &server,
        &[
            "~nooble4:dev:demo:t1:*",
            "~nooble4:dev:meshwork:*",
            "~nooble4:dev:mw:*",
            "+@all",
        ],
    );
    let mut running = service(&ground, &["--context", "t1"]);
    let said = running.said();
    assert!(
        said.contains(QUEUE) && said.contains("docs/operations.md"),
        "{said}"
    );
    assert!(!said.contains("demo:t1"), "{said}");
    let call = ["action", "call", "demo.x", "--context", "t1"];
    assert_eq!(ground.run(&call).ok().stdout, "{}\n");
    running.stop();
}

/// An answer that comes late ends with the word that lies in the list.
#[test]
fn a_call_leaves_nothing_without_an_end() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let lists = || {
        server
            .say::<Vec<String>>(&["KEYS", "*:responses:*"])
            .unwrap()
    };
    let all_end = || {
        let ttl = |list: &String| server.say::<i64>(&["TTL", list]).unwrap();
        lists().iter().all(|list| ttl(list) > 0)
    };
    for (number, more) in [&[][..], &["--private-reply"]].iter().enumerate() {
        let words = ["action", "call", "demo.x", "--wait", "600"];
        let call = ground.start(&[&words[..], more].concat());
        eventually("it is sent", || {
            let sent: usize = server.say(&["XLEN", QUEUE]).unwrap();
            (sent > number).then_some(())
        });
        call.signal(Signal::INT);
        call.ended().exits(130);
        assert_eq!(lists().len(), number + 1, "{more:?}");
        assert!(all_end(), "{more:?}");
    }
    server.say::<()>(&["FLUSHALL"]).unwrap();
    server.say::<()>(&["SET", QUEUE, "x"]).unwrap();
    // Without waiting for it, some of them would leave nothing.
    for calls in 1..=10 {
        let said = ground.run(&["action", "call", "demo.x"]).exits(3).stderr;
        assert!(said.contains(QUEUE), "{said}");
        assert_eq!(lists().len(), calls);
    }
    assert!(all_end());
}

#[test]
fn a_dead_letter_is_shown_byte_for_byte() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let message = "{\"a\": 1}\r";
    server
        .say::<()>(&["XADD", DEAD, "1-1", "data", message])
        .unwrap();
    let show = ["action", "dead", "show", "demo", "1-1"];
    let output = ground.command(&show).output().unwrap();
    assert_eq!(output.stdout, message.as_bytes());
    let shown = ground.run(&[&show[..], &["--json"]].concat()).ok().json();
    assert_eq!(shown["message"], message);
}
