//! Commands that a verb sends when there is nothing to claim: idle workers and contexts are many.

use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Broker, MessageTasks};
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use meshwork_test_servers::servers::RealServer;

/// Returns the number of calls of `command` since the counters were reset.
fn calls(server: &RealServer, command: &str) -> u64 {
    let stats: String = server.say(&["INFO", "commandstats"]).unwrap();
    let named = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&named));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_list_without_actions_is_looked_at_once_however_many_are_wanted() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
    let names = NoobleKeys::new(Namespace::nooble(), None, Dialect::Lists);
    let nooble = Nooble::connect(&target, names).await.unwrap();
    let source = nooble.actions("demo", None);
    nooble.send(source.queue(), "m1", None).await.unwrap();
    server.say::<()>(&["CONFIG", "RESETSTAT"]).unwrap();
    let got = nooble.receive("mw.w1", &source, 32).await.unwrap();
    assert_eq!(got.len(), 1);
    assert_eq!(calls(&server, "lmove"), 2, "one for it, one for the end");
    assert_eq!(nooble.receive("mw.w1", &source, 32).await.unwrap(), []);
    assert_eq!(calls(&server, "lmove"), 3);
}

#[tokio::test]
async fn a_look_for_messages_finds_lists_and_the_first_time() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
    let keys = JobKeys::default();
    let conn = Conn::open(&target, keys.namespace()).await.unwrap();
    let node = Broker::new(conn, keys);
    let keys = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Prefix);
    let context = node.of_context(keys.clone()).await.unwrap();
    let say = |words: &[&str]| server.say::<redis::Value>(words).unwrap();
    let found = async || context.look_for_messages().await.unwrap();
    say(&["CONFIG", "RESETSTAT"]);
    assert_eq!(found().await, MessageTasks::default());
    assert_eq!((calls(&server, "exists"), calls(&server, "zrange")), (1, 0));

    say(&["LPUSH", &keys.msg_in(), "message:12:1"]);
    let listed = MessageTasks {
        listed: true,
        next: None,
    };
    assert_eq!(found().await, listed);
    let at = (node.now().await.unwrap() + 60_000).to_string();
    say(&["ZADD", &keys.sent(), &at, "message:12:2"]);
    let next = found().await.next.unwrap();
    assert!((1..=60_000).contains(&next), "{next}");
    say(&["ZADD", &keys.open(), "1", "message:12:3"]);
    assert_eq!(found().await.next, Some(0));
    // A key of another type is for the step to report.
    say(&["DEL", &keys.open()]);
    say(&["SET", &keys.outbound(), "x"]);
    assert_eq!(found().await.next, Some(0));
    assert_eq!(
        node.look_for_messages().await.unwrap(),
        MessageTasks::default()
    );
}
