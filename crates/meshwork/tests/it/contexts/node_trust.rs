//! Trust between two nodes: what is refused here and there, and what a third node may not say.

use meshwork::context::{ContextError, new_key};
use meshwork_model::access::Role;
use meshwork_model::actor_key::SecretKey;
use meshwork_model::context::NodeId;
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::{Card, Frame, Item, MAX_FRAMES_A_SECOND, PeerState, SentFrom};

use super::two_nodes::{NOW, Pair, Side, arrives};

#[tokio::test]
async fn what_may_not_leave_this_node_is_refused_here() {
    let pair = Pair::new().await;
    let unsigned = pair.try_send(|new| new.signed = false).await.unwrap_err();
    assert!(unsigned.to_string().contains("signed"), "{unsigned}");
    let nobody = pair.try_send(|new| new.node = Some(NodeId([9; 32])));
    assert!(matches!(nobody.await, Err(ContextError::PeerNotTrusted(_))));
    // A plain client writes the record itself.
    let world = &pair.here.world;
    let job = r#"[{"id":9,"caller_id":1,"script":"1","script_type":"v"}]"#;
    let there = pair.there.id.to_string();
    let fields = [
        "message_type",
        "job",
        "job",
        job,
        "target_context",
        "8",
        "target_node",
        &there,
    ];
    let set: Vec<_> = ["HSET", "message:1:500"]
        .into_iter()
        .chain(fields)
        .collect();
    world.plain::<i64>(7, &set).await;
    world
        .plain::<i64>(7, &["LPUSH", "msg_out", "message:1:500"])
        .await;
    pair.here.settle().await;
    let record = pair.here.message("message:1:500").await;
    assert_eq!(
        (record["status"].as_str(), record["mw_reason"].as_str()),
        ("error", "unsigned")
    );
    assert!(pair.here.outbox(pair.there.id).await.is_empty());
}

#[tokio::test]
async fn a_plain_client_sends_a_signed_message_without_a_nonce_of_its_record() {
    let mut pair = Pair::new().await;
    let key = pair.send().await;
    let world = &pair.here.world;
    world.plain::<i64>(7, &["HDEL", &key, "mw_nonce"]).await;
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["status"], "processed", "{record:?}");
}

#[tokio::test]
async fn the_other_node_refuses_actors_without_a_role_and_revoked_ones_with_a_code() {
    for (revoke, code) in [(false, "forbidden"), (true, "revoked_key")] {
        let mut pair = Pair::new().await;
        let world = &pair.there.world;
        let actor = world.node.trusted(&pair.here.world.me.key().public()).await;
        let actor = actor.unwrap().id;
        match revoke {
            true => drop(world.node.revoke(actor).await.unwrap()),
            false => {
                let eight = world.context(8).await;
                let done = eight.revoke(&world.me, Role::Admin, actor).await;
                done.unwrap();
            }
        }
        let key = pair.send().await;
        let record = pair.until_ended(&key, arrives).await;
        assert_eq!(record["status"], "error");
        assert_eq!(record["mw_reason"], code);
        assert!(pair.there.world.list(8, "msg_in:8").await.is_empty());
        assert!(pair.there.world.list(8, "queue:v").await.is_empty());
    }
    // An actor of whom the other node knows nothing.
    let mut pair = Pair::of_strangers().await;
    let key = pair.send().await;
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["mw_reason"], "unknown_key");
}

#[tokio::test]
async fn frames_of_a_revoked_node_are_refused() {
    let mut pair = Pair::new().await;
    let alice = "alice".parse().unwrap();
    pair.there.world.node.revoke_node(&alice).await.unwrap();
    let key = pair.try_send(|new| new.timeout = 60).await.unwrap();
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["mw_reason"], "not_delivered");
    assert!(pair.there.exchange.refused()["unknown_node"] > 0);
    let keys: Vec<String> = pair.there.world.plain(8, &["KEYS", "message:*"]).await;
    assert!(keys.is_empty(), "{keys:?}");
}

/// A third node, trusted by the first one, says what only the second one may say.
#[tokio::test]
async fn a_notice_or_result_of_a_third_node_changes_nothing() {
    let mut pair = Pair::new().await;
    let third = Side::new(3).await;
    pair.here.trust(&third, "carol").await;
    let key = pair.send().await;
    for _ in 0..5 {
        pair.step(arrives).await;
    }
    let before = pair.here.message(&key).await;
    assert_eq!(before["status"], "acknowledged");
    let context = ContextId::new(7).unwrap();
    let of = SentFrom {
        context,
        message: MessageKey::of_numbers("1:1").unwrap(),
        nonce: meshwork_model::envelope::Nonce::from_text(&before["mw_nonce"]).unwrap(),
    };
    let at = ContextId::new(8).unwrap();
    let json = br#"{"status":"processed","job":[{"id":1,"caller_id":1,"script":"","script_type":"v","status":"finished","result":{"rows":"666"}}]}"#;
    let items = vec![
        Item::State {
            of,
            at,
            state: PeerState::Failed,
            reason: None,
        },
        Item::Result {
            re: of,
            from: SentFrom { context: at, ..of },
            json: json.to_vec(),
        },
    ];
    let frame = Frame {
        dst: pair.here.id,
        src: third.id,
        sent_ms: NOW * 1000 + pair.mono,
        items,
    };
    let bytes = frame.seal(&third.key).unwrap();
    // Once over its own daemon, and once over that of the node that it pretends to be.
    for daemon in [third.daemon, pair.there.daemon] {
        let taken = pair.here.exchange.receive(daemon, &bytes, pair.mono);
        taken.await.unwrap();
    }
    assert_eq!(pair.here.message(&key).await, before);
    assert!(pair.here.world.list(7, "msg_in").await.is_empty());
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["status"], "processed");
    let result = pair.here.world.field(7, &record["mw_result"], "job").await;
    assert!(!result.contains("666"), "{result}");
}

#[tokio::test]
async fn two_nodes_behind_one_daemon_are_both_heard_each_with_its_own_key() {
    let mut pair = Pair::new().await;
    // A third node uses the daemon of the second one.
    let third = Side::new(2).await;
    assert_eq!(third.daemon, pair.there.daemon);
    pair.here.trust(&third, "carol").await;
    let frame = |src, key: &SecretKey| {
        let frame = Frame {
            dst: pair.here.id,
            src,
            sent_ms: NOW * 1000,
            items: vec![Item::Ping { id: 1 }],
        };
        frame.seal(key).unwrap()
    };
    let both = [
        frame(pair.there.id, &pair.there.key),
        frame(third.id, &third.key),
    ];
    let forged = [
        frame(pair.there.id, &third.key),
        frame(third.id, &pair.there.key),
    ];
    let exchange = &mut pair.here.exchange;
    for bytes in &both {
        exchange.receive(third.daemon, bytes, 0).await.unwrap();
    }
    assert!(exchange.refused().is_empty(), "{:?}", exchange.refused());
    // More than the frames of a second: they do not use up the rate of the node that they name.
    for _ in 0..MAX_FRAMES_A_SECOND {
        for bytes in &forged {
            exchange.receive(third.daemon, bytes, 0).await.unwrap();
        }
    }
    let count = u64::from(MAX_FRAMES_A_SECOND) * 2;
    assert_eq!(exchange.refused()["tampered"], count);
    for _ in 1..MAX_FRAMES_A_SECOND {
        exchange.receive(third.daemon, &both[0], 0).await.unwrap();
    }
    assert!(!exchange.refused().contains_key("busy"));
    exchange.receive(third.daemon, &both[0], 0).await.unwrap();
    assert_eq!(exchange.refused()["busy"], 1);
    exchange.receive(third.daemon, &both[1], 0).await.unwrap();
    assert_eq!(exchange.refused()["busy"], 1, "each node has its own rate");
    // Another daemon than that of the card.
    let other = pair.here.daemon;
    exchange.receive(other, &both[1], 0).await.unwrap();
    assert_eq!(exchange.refused()["unknown_node"], 1);
}

#[tokio::test]
async fn an_envelope_in_the_frame_of_another_node_is_refused() {
    let mut pair = Pair::new().await;
    let third = Side::new(3).await;
    pair.there.trust(&third, "carol").await;
    let key = pair.send().await;
    let envelope = pair.here.message(&key).await["envelope"].clone();
    let frame = Frame {
        dst: pair.there.id,
        src: third.id,
        sent_ms: NOW * 1000,
        items: vec![Item::Message(envelope.into_bytes())],
    };
    let bytes = frame.seal(&third.key).unwrap();
    let taken = pair.there.exchange.receive(third.daemon, &bytes, 0);
    taken.await.unwrap();
    assert_eq!(pair.there.exchange.refused()["wrong_actor"], 1);
    assert!(pair.there.world.list(8, "msg_in:8").await.is_empty());
}

#[tokio::test]
async fn a_changed_card_is_refused_and_a_renewed_one_is_signed_by_the_known_key() {
    let pair = Pair::new().await;
    let (node, bob) = (&pair.here.world.node, "bob".parse().unwrap());
    let card = |key: &SecretKey, before: Option<&SecretKey>| {
        let card = Card {
            node: pair.there.id,
            key: key.public(),
            daemon: pair.there.daemon,
            created_at: NOW + 1,
            expires_at: NOW + 1_000,
        };
        card.seal(key, before)
    };
    let other = new_key();
    let forged = node.trust_node(card(&other, None).as_bytes(), &bob).await;
    let said = forged.unwrap_err().to_string();
    assert!(said.contains("is known with another key"), "{said}");
    let renewed = card(&other, Some(&pair.there.key));
    let renewed = node.trust_node(renewed.as_bytes(), &bob).await.unwrap();
    assert_eq!(renewed.card.key, other.public());
    let own = node.trust_node(pair.here.card().as_bytes(), &bob).await;
    assert!(matches!(own, Err(ContextError::OwnCard)));
    let third = Side::new(3).await;
    let taken = node.trust_node(third.card().as_bytes(), &bob).await;
    assert!(matches!(taken, Err(ContextError::PeerNameTaken(_))));
    // A new name replaces the old one.
    let robert = "robert".parse().unwrap();
    let card = card(&other, None);
    node.trust_node(card.as_bytes(), &robert).await.unwrap();
    assert!(matches!(
        node.peer_named(&bob).await,
        Err(ContextError::NoPeer(_))
    ));
    node.revoke_node(&robert).await.unwrap();
    let named = node.peer_named(&robert).await.unwrap();
    assert_eq!(named.revoked_at, Some(NOW));
}
