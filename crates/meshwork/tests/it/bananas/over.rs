//! Import of Bananas jobs: the ones that are not imported.

use meshwork::Client;
use meshwork::protocol::bananas::migrate::Migrator;

use super::support::Ground;

const NORMAL: &str = "bananas:queue:normal";

/// A scheduler of Bananas pushed them once more. A worker for Bananas drops such jobs, by the same rule.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_does_not_become_a_job_of_ours() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let ours = Client::open(&ground.url()).await.unwrap();
    let pending =
        "{\"name\":\"echo\",\"status\":\"pending\",\"updated_at\":\"2026-11-20T11:33:27Z\"}";
    let completed = pending.replace("pending", "completed");
    ground.put(NORMAL, "completed", &completed).await;
    ground.put(NORMAL, "fresh", pending).await;
    ground.put(NORMAL, "pushed", pending).await;
    let (status, at) = (["status", "completed"], "2026-11-20T11:33:57Z");
    let key = "bananas:result:pushed";
    ground
        .say::<()>(&["HSET", key, status[0], status[1], "completed_at", at])
        .await;
    let migrator = Migrator::new(&ground.client, &ours).function("echo");
    let moved = migrator.import(|_| ()).await.unwrap();
    assert_eq!((moved.waiting, moved.skipped_count()), (1, 2));
    for left in &moved.skipped {
        assert!(left.reason.contains("done already"), "{}", left.reason);
    }
    let stays: Vec<String> = ground.say(&["LRANGE", NORMAL, "0", "-1"]).await;
    assert_eq!(stays, ["pushed", "completed"]);
}
