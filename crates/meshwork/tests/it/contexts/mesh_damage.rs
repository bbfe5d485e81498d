//! Damaged keys of one node: messages of the others are exchanged nevertheless.

use meshwork_model::envelope::Nonce;

use super::two_nodes::{Pair, Side, arrives};

/// Replaces a key of the node by one of another type.
async fn damage(side: &Side, database: u32, key: &str) {
    let world = &side.world;
    world.plain::<i64>(database, &["DEL", key]).await;
    world.plain::<i64>(database, &["SADD", key, "x"]).await;
}

#[tokio::test]
async fn damaged_keys_of_one_node_delay_no_other() {
    let carol = Box::pin(Side::new(3)).await;
    let of_carol = [
        format!("mw:peer-out:{}", carol.id),
        format!("mw:peer-in:{}", carol.id),
        format!("mw:peer:{}", carol.id),
        "mw:mesh-refused".to_owned(),
        "mw:audit".to_owned(),
    ];
    for key in &of_carol {
        let mut pair = Box::pin(Pair::new()).await;
        for side in [&pair.here, &pair.there] {
            side.trust(&carol, "carol").await;
            damage(side, 0, key).await;
        }
        // Something to count and to note.
        let exchange = &mut pair.there.exchange;
        let taken = exchange.receive(carol.daemon, b"MWF1", 0);
        taken.await.unwrap();
        pair.here.exchange.resend(0).await.unwrap();
        let sent = pair.send().await;
        let record = pair.until_ended(&sent, arrives).await;
        assert_eq!(record["status"], "processed", "{key}: {record:?}");
    }
}

#[tokio::test]
async fn a_damaged_origin_of_one_message_hides_no_other() {
    let mut pair = Box::pin(Pair::new()).await;
    let (from, nonce) = (pair.here.id, Nonce([15; 16]));
    let list = format!("mw:peer-in:{from}");
    let there = &pair.there.world;
    for number in 1..=5 {
        let entry = format!("7/9:{number}/{nonce}/8/100");
        there.plain::<i64>(0, &["ZADD", &list, "0", &entry]).await;
        let (origin, key) = (
            format!("{from}/7/9:{number}/{nonce}"),
            format!("message:9:{number}"),
        );
        let open = ["HSET", &key, "mw_origin", &origin, "status", "dispatched"];
        there.plain::<i64>(8, &open).await;
        let origin = format!("mw:origin:{origin}");
        there.plain::<String>(8, &["SET", &origin, &key]).await;
        if number == 3 {
            damage(&pair.there, 8, &origin).await;
        }
    }
    let key = pair.send().await;
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["status"], "processed", "{record:?}");
    for _ in 0..60 {
        pair.step(arrives).await;
    }
    let left: Vec<String> = there_list(&pair, &list).await;
    let ids = [1, 2, 4, 5].map(|number| format!("7/9:{number}/{nonce}/8/100"));
    assert_eq!(left, ids);
}

async fn there_list(pair: &Pair, list: &str) -> Vec<String> {
    let there = &pair.there.world;
    there.plain(0, &["ZRANGE", list, "0", "-1"]).await
}
