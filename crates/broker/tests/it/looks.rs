//! Commands that a verb sends when there is nothing to claim: idle workers are many.

use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
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
