//! `meshwork action subscribe`: notifications and callbacks as they come, and how it ends.

use crate::common::{Ground, Running, eventually, json, on_all_data};
use meshwork_test_servers::servers::RealServer;
use rustix::process::Signal;
use serde_json::Value;

const COUNT: &str = "if parse_json(INPUT).contains(\"items\") { #{count: parse_json(INPUT).items.len()} } else { throw \"boom\" }";

/// A listener, when it listens.
fn listening(ground: &Ground, words: &[&str]) -> Running {
    let mut running = ground.start(&[&["action", "subscribe"], words].concat());
    while !running.said().contains("listening") {}
    running
}

/// The service `demo` with `demo.count`, which fails without items.
fn service(ground: &Ground, dialect: &str) -> Running {
    ground.file("count.rhai", COUNT);
    let words = [
        "service",
        "--name",
        "demo",
        "--handler",
        "demo.count=count.rhai",
    ];
    let more = ["--max-attempts", "1", "--dialect", dialect, "--json"];
    let mut running = ground.start(&[&words[..], &more].concat());
    assert_eq!(json(&running.line())["event"], "listening");
    running
}

on_all_data! {
    fn notifications_are_printed_as_they_come(ground: &Ground) {
        for dialect in ["streams", "lists"] {
            let of = ["--of", "documents", "--dialect", dialect];
            let mut text = listening(ground, &[&["updated"][..], &of].concat());
            let lines = listening(ground, &[&["updated", "deleted", "--json", "--count", "2"][..], &of].concat());
            let says = ["--as", "documents", "--dialect", dialect];
            let notify = |event: &str, data: &str| {
                let words = [&["action", "notify", event, data][..], &says].concat();
                ground.run(&words).ok().stdout.trim().to_owned()
            };
            assert_eq!(notify("updated", "{\"id\":1}"), "2");
            assert_eq!(text.line(), "updated {\"id\":1}\n");
            assert_eq!(notify("deleted", "{\"id\":2}"), "1");
            // It has ended by itself.
            let printed = lines.ended().ok().jsons();
            let events: Vec<_> = printed.iter().map(|line| line["event"].as_str().unwrap()).collect();
            assert_eq!(events, ["updated", "deleted"]);
            assert_eq!((&printed[0]["kind"], &printed[0]["from"]), (&Value::from("notification"), &Value::from("documents")));
            assert_eq!(printed[1]["data"]["id"], 2);
            assert!(printed[0]["trace_id"].is_string());
            text.signal(Signal::INT);
            text.ended().ok();
        }
    }

    fn a_callback_is_printed_once_with_what_was_asked(ground: &Ground) {
        for dialect in ["streams", "lists"] {
            let service = service(ground, dialect);
            let side = ["--as", "tester", "--dialect", dialect];
            let send = |data: &str, more: &[&str]| {
                let words = [&["action", "send", "demo.count", data, "--callback", "tester.done"], more, &side];
                ground.run(&words.concat()).ok().stdout.trim().to_owned()
            };
            let listen = |more: &[&str]| {
                let words = [&["action", "subscribe", "--callback", "tester.done", "--json", "--timeout", "60s"], more, &side];
                ground.run(&words.concat()).ok().jsons()
            };
            // The callbacks wait for who listens later.
            let first = send("{\"items\":[1,2]}", &["--remember", "{\"page\":3}"]);
            let second = send("{}", &[]);
            let printed = listen(&["--count", "2"]);
            let of = |id: &str| printed.iter().find(|line| line["correlation_id"] == id).unwrap();
            let (good, bad) = (of(&first), of(&second));
            assert_eq!((&good["success"], &good["data"]["count"]), (&json("true"), &json("2")));
            assert_eq!(good["request"]["remembers"]["page"], 3);
            assert_eq!(good["request"]["action_type"], "demo.count");
            assert_eq!((&bad["success"], &bad["request"]["remembers"]), (&json("false"), &Value::Null));
            assert!(bad["error"]["message"].as_str().unwrap().contains("boom"), "{bad}");
            // One with a list of its own.
            let third = send("{\"items\":[]}", &["--private-reply"]);
            let printed = listen(&["--count", "1", "--call", &third]);
            assert_eq!((printed.len(), &printed[0]["data"]["count"]), (1, &json("0")));
            // Each was printed once: what comes next is another one.
            let fourth = send("{\"items\":[7]}", &[]);
            let printed = listen(&["--count", "1"]);
            assert_eq!(printed[0]["correlation_id"], fourth.as_str());
            service.stop();
        }
    }

    /// Of three that wait, who takes one leaves two, at no cost.
    fn what_is_not_printed_is_handed_back(ground: &Ground) {
        let service = service(ground, "streams");
        let mut sent = Vec::new();
        for _ in 0..3 {
            let words = ["action", "send", "demo.count", "{\"items\":[1]}", "--callback", "meshwork.done"];
            sent.push(ground.run(&words).ok().stdout.trim().to_owned());
        }
        let mut came = Vec::new();
        for _ in 0..3 {
            let words = ["action", "subscribe", "--callback", "meshwork.done", "--count", "1", "--json", "--timeout", "60s"];
            let printed = ground.run(&words).ok().json();
            came.push(printed["correlation_id"].as_str().unwrap().to_owned());
        }
        sent.sort();
        came.sort();
        assert_eq!(came, sent);
        service.stop();
    }

    fn it_ends_when_its_time_is_over(ground: &Ground) {
        let listen = ["action", "subscribe", "updated", "--timeout", "50ms"];
        assert_eq!(ground.run(&listen).ok().stdout, "");
        ground.run(&[&listen[..], &["--count", "1"]].concat()).exits(4);
        ground.run(&["action", "subscribe", "--callback", "x.done", "--timeout", "50ms"]).ok();
        eventually("nothing of it is left", || {
            let words = ["action", "notify", "updated", "--as", "meshwork"];
            (ground.run(&words).ok().stdout.trim() == "0").then_some(())
        });
    }

    fn bad_words_are_refused(ground: &Ground) {
        for words in [
            &["action", "subscribe"][..],
            &["action", "subscribe", "updated", "--call", "01900000-0000-7000-8000-000000000001"],
            &["action", "subscribe", "updated", "--accept-unsolicited"],
            &["action", "subscribe", "updated", "--count", "0"],
            &["action", "subscribe", "updated", "--timeout", "soon"],
            &["action", "subscribe", "--callback", "x.done", "--call", "no"],
            &["action", "send", "a.b", "--remember", "1"],
            &["action", "send", "a.b", "--callback", "x", "--remember", "{"],
        ] {
            ground.run(words).exits(2);
        }
    }
}

/// Anybody can push anything.
#[test]
fn what_is_no_callback_is_a_dead_letter() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let side = ["--dialect", "lists", "--timeout", "60s"];
    let listen = ["action", "subscribe", "--callback", "meshwork.done"];
    let listens = listening(&ground, &[&listen[2..], &side].concat());
    ground.raw("LPUSH nooble4:dev:meshwork:callbacks:meshwork.done junk");
    let list = [
        "action",
        "dead",
        "list",
        "meshwork",
        "--dialect",
        "lists",
        "--json",
    ];
    let of_callbacks = ["--callback", "meshwork.done"];
    let dead = eventually("it is a dead letter", || {
        let words = [&list[..], &of_callbacks].concat();
        ground.run(&words).ok().jsons().pop()
    });
    assert_eq!(
        (&dead["message"], &dead["runs"]),
        (&json("\"junk\""), &json("1"))
    );
    assert_eq!(ground.run(&list).ok().stdout, "");
    ground
        .run(&[&list[..], &of_callbacks, &["--context", "t1"]].concat())
        .exits(2);
    listens.stop();
}

/// A user of the server that may not say that it is there.
#[test]
fn its_time_is_over_although_it_was_never_known() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let nobody = ["ACL", "SETUSER", "ann", "on", ">sesame", "~hero:*", "+@all"];
    server.say::<()>(&nobody).unwrap();
    let url = server
        .url_without_login()
        .replace("redis://", "redis://ann:sesame@");
    let ground = Ground::url(url);
    let words = [
        "action",
        "subscribe",
        "--callback",
        "x.done",
        "--timeout",
        "1s",
    ];
    ground.run(&words).ok();
    ground
        .run(&[&words[..], &["--count", "1"]].concat())
        .exits(4);
}
