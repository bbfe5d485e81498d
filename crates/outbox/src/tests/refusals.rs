//! Rows that the store refuses, and programs that use the outbox wrongly.

use meshwork::Client;
use meshwork_model::route::Route;
use meshwork_test_servers::servers::RealServer;

use super::database::{TestDatabase, on_each_database};
use super::{Ground, Pay};
use crate::{Error, Outbox, Relay};

on_each_database!(
    a_bad_row_holds_up_no_other
    a_full_queue_is_tried_again
    a_failing_call_is_divided
    missing_tables_are_named
    only_refusals_are_attempts
);

impl<D: TestDatabase> Ground<D> {
    /// Returns the queue of a type.
    fn queue(&self, script_type: &str) -> String {
        let route = Route::to(script_type.parse().unwrap());
        route.queue(self.client.broker().keys())
    }
}

async fn a_bad_row_holds_up_no_other<D: TestDatabase>(ground: Ground<D>) {
    ground
        .change(
            "INSERT INTO ROWS (id, job) VALUES ('text', 'no json'), ('a b', '{}'), \
             ('later', '{\"type\":\"pay\",\"script\":\"{}\",\"timeout\":9,\"sooner\":1}'), \
             ('empty', '{\"type\":\"pay\",\"script\":\"\",\"timeout\":9}')",
        )
        .await;
    ground.commit(1).await;
    let mut tx = ground.pool.begin().await.unwrap();
    let call = ground.outbox.enqueue(&mut tx, Pay { order: 2 }).id("early");
    let missing = "nobody".parse().unwrap();
    call.with(|request| request.depends_on(missing))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    ground.relay().drain().await.unwrap();
    assert_eq!(ground.orders().await, [1]);
    let errors = ground.outbox.errors(&ground.pool, None).await.unwrap();
    let found: Vec<_> = errors
        .iter()
        .map(|row| (row.id.as_str(), row.set_aside))
        .collect();
    let expected = [
        ("text", true),
        ("a b", true),
        ("later", true),
        ("empty", true),
        ("early", false),
    ];
    assert_eq!(found, expected);
    for (row, part) in errors
        .iter()
        .zip(["job text", "a b", "`sooner`", "empty", "nobody"])
    {
        assert!(row.error.contains(part), "{}", row.error);
    }
    // The next page.
    let rest = ground
        .outbox
        .errors(&ground.pool, errors.get(3))
        .await
        .unwrap();
    assert_eq!(rest, errors[4..]);
    let ids = errors.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
    assert_eq!(
        ground.outbox.delete(&ground.pool, &ids[..2]).await.unwrap(),
        2
    );
    assert_eq!(ground.rows().await, (1, 2));
}

async fn a_full_queue_is_tried_again<D: TestDatabase>(ground: Ground<D>) {
    for order in 0..3 {
        ground.commit(order).await;
    }
    let queue = ground.queue("pay");
    let limit = async |most| {
        ground
            .client
            .set_max_length(Some(&queue), most)
            .await
            .unwrap();
    };
    limit(Some(2)).await;
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((1, 0), vec![0, 1])
    );
    // Not before its pause is over.
    limit(None).await;
    ground
        .change("UPDATE ROWS SET DUE = NOW + HOUR WHERE DUE > NOW")
        .await;
    ground.relay().drain().await.unwrap();
    assert_eq!(ground.rows().await, (1, 0));
    ground.change("UPDATE ROWS SET DUE = NOW").await;
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((0, 0), vec![0, 1, 2])
    );
}

/// A queue of another type is an error for a whole call to the store.
async fn a_failing_call_is_divided<D: TestDatabase>(mut ground: Ground<D>) {
    let Some(server) = RealServer::redis().start_for("divided") else {
        return;
    };
    ground.client = Client::open(&server.url()).await.unwrap();
    let queue = ground.queue("broken");
    server.say::<String>(&["SET", &queue, "no list"]).unwrap();
    ground.commit(1).await;
    let mut tx = ground.pool.begin().await.unwrap();
    let request = meshwork::JobRequest::new("broken".parse().unwrap(), "1");
    let broken = ground.outbox.enqueue(&mut tx, request).await.unwrap();
    tx.commit().await.unwrap();
    ground.commit(2).await;
    ground.relay().drain().await.unwrap();
    assert_eq!(
        (ground.rows().await, ground.orders().await),
        ((1, 0), vec![1, 2])
    );
    let errors = ground.outbox.errors(&ground.pool, None).await.unwrap();
    assert_eq!(
        (errors.len(), errors[0].id.as_str()),
        (1, broken.id.as_str())
    );
}

async fn missing_tables_are_named<D: TestDatabase>(ground: Ground<D>) {
    let other = Outbox::in_schema("nowhere").unwrap();
    let mut tx = ground.pool.begin().await.unwrap();
    let error = other.enqueue(&mut tx, Pay { order: 1 }).await.unwrap_err();
    assert!(
        matches!(&error, Error::NoTable { table } if *table == other.tables.outbox(D::SEPARATOR))
    );
    assert!(error.to_string().contains("meshwork outbox migrate"));
    let relay = Relay::new(&ground.pool, &Client::in_memory()).outbox(&other);
    let ended = relay.run_until(std::future::pending()).await;
    assert!(matches!(ended, Err(Error::NoTable { .. })), "{ended:?}");
}

async fn only_refusals_are_attempts<D: TestDatabase>(ground: Ground<D>) {
    let mut tx = ground.pool.begin().await.unwrap();
    let call = ground.outbox.enqueue(&mut tx, Pay { order: 1 });
    let missing = "nobody".parse().unwrap();
    call.with(|request| request.depends_on(missing))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    // An outage of the store, or a killed relay, leaves the row claimed.
    for _ in 0..20 {
        let relay = ground.relay();
        let retained = relay.retained().await.unwrap();
        assert_eq!(relay.claim(retained.now_ms).await.unwrap().rows.len(), 1);
        ground.lapse().await;
    }
    for attempts in [1, 2] {
        ground.relay().drain().await.unwrap();
        let errors = ground.outbox.errors(&ground.pool, None).await.unwrap();
        let found = errors.first().map(|row| (row.attempts, row.set_aside));
        assert_eq!(found, Some((attempts, false)));
        ground.change("UPDATE ROWS SET DUE = NOW").await;
    }
}
