//! A denied channel of Bananas: a call whose user may not publish the end of its job changes nothing.

use std::time::Duration;

use meshwork_broker::bananas::{Bananas, Claim, Claimed, Completion};
use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_conformance::snapshot::snapshot;
use meshwork_model::bananas::{ClientVariant, NewJob};
use meshwork_model::keys::bananas::BananasKeys;
use meshwork_model::route::Priority;
use meshwork_test_servers::servers::RealServer;

use crate::common::{PATIENCE, WORKER};

const PREFIX: &str = "rights";
const TOOK: Duration = Duration::from_millis(17);
/// Runs of a job whose record sets no number.
const MOST_RUNS: u32 = 3;

async fn claimed(bananas: &Bananas, id: &str) -> Claimed {
    let jobs = [NewJob::new(id.parse().unwrap(), "count", "{}")];
    let enqueued = bananas.enqueue(&jobs, ClientVariant::Go);
    enqueued.await.unwrap();
    let claim = Claim {
        lists: &[bananas.keys().plain(Priority::Normal)],
        want: 1,
        lease: PATIENCE,
        worker: WORKER,
        token: id,
    };
    let mut taken = bananas.claim(claim).await.unwrap();
    taken.jobs.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_channel_of_bananas_changes_nothing() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
    let keys = BananasKeys::new(PREFIX.parse().unwrap());
    let scheduled = keys.scheduled();
    let bananas = Bananas::connect(&target, keys).await.unwrap();
    let completing = claimed(&bananas, "completing").await;
    let failing = claimed(&bananas, "failing").await;
    // An entry without a record becomes a dead letter.
    server
        .say::<()>(&["ZADD", &scheduled, "1", "unreadable"])
        .unwrap();
    let due = bananas.due().await.unwrap();
    let before = snapshot(bananas.conn(), PREFIX).await.unwrap();

    let call = async |verb: &str| {
        let (claimed, took) = (&completing, TOOK);
        match verb {
            "complete" => {
                let result = Some("1");
                let completion = Completion {
                    claimed,
                    result,
                    took,
                };
                bananas.complete(&[completion]).await.map(drop)
            }
            "retry" => bananas
                .fail(&failing, "boom", true, MOST_RUNS, took)
                .await
                .map(drop),
            "fail" => bananas
                .fail(&failing, "boom", false, MOST_RUNS, took)
                .await
                .map(drop),
            _ => bananas.promote(&due, ClientVariant::Go).await.map(drop),
        }
    };
    let verbs = ["complete", "retry", "fail", "promote"];
    let user = |rule: &str| {
        let set = ["ACL", "SETUSER", "default", rule];
        server.say::<()>(&set).unwrap();
    };
    user("resetchannels");
    for verb in verbs {
        let denied = call(verb).await.unwrap_err();
        assert!(denied.is_denied(), "{verb}: {denied}");
        let after = snapshot(bananas.conn(), PREFIX).await.unwrap();
        assert_eq!(after, before, "{verb}");
    }
    // The calls were valid, and are repeated with the right.
    user("allchannels");
    for verb in ["complete", "retry", "promote"] {
        call(verb).await.unwrap();
        let after = snapshot(bananas.conn(), PREFIX).await.unwrap();
        assert_ne!(after, before, "{verb}");
    }
}
