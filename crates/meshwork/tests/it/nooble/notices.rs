//! Notifications: subscribers receive them, and are informed of gaps.

use meshwork::protocol::nooble::{Client, Ids, MAX_UNREAD, Notice, Request, Subscription};
use meshwork_test_servers::eventually;
use serde::Deserialize;
use serde_json::{Value, json};

use super::support::{BOUND, Ground};

/// Notification of the document service.
#[derive(Debug, PartialEq, Deserialize)]
struct Document {
    id: u32,
}

fn updated(id: u32) -> Request {
    Request::new("documents.updated", &json!({ "id": id })).unwrap()
}

/// A service that announces things, of a name that no other test has: all databases of a server share their channels.
fn announcer(ground: &Ground) -> Client {
    Client::new(ground.broker.clone(), &Ids::default().task_id)
}

async fn next<T: serde::de::DeserializeOwned>(heard: &mut Subscription<T>) -> Notice<T> {
    let next = tokio::time::timeout(BOUND, heard.next()).await;
    next.expect("nothing was heard")
}

/// The data of the next one, which is a notification.
async fn data(heard: &mut Subscription<Document>) -> (String, Document) {
    match next(heard).await {
        Notice::Received(notification) => (notification.event, notification.data),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_announced_is_heard_by_all_who_listen() {
    for ground in Ground::both().await {
        let (says, hears) = (announcer(&ground), &ground.tester);
        // Nobody listens yet.
        assert_eq!(says.notify("updated", updated(1)).await.unwrap(), 0);
        let mut both = hears
            .subscribe::<Document>(says.service(), &["updated", "deleted"], None)
            .await
            .unwrap();
        let mut one = hears
            .subscribe::<Document>(says.service(), &["updated"], None)
            .await
            .unwrap();
        let mut tenant = hears
            .subscribe::<Document>(says.service(), &["updated"], Some("t1"))
            .await
            .unwrap();
        assert_eq!(says.notify("updated", updated(2)).await.unwrap(), 2);
        assert_eq!(says.notify("deleted", updated(3)).await.unwrap(), 1);
        let of_tenant = updated(4).context("t1");
        assert_eq!(says.notify("updated", of_tenant).await.unwrap(), 1);
        assert_eq!(
            data(&mut both).await,
            ("updated".to_owned(), Document { id: 2 })
        );
        assert_eq!(
            data(&mut both).await,
            ("deleted".to_owned(), Document { id: 3 })
        );
        assert_eq!(data(&mut one).await.1, Document { id: 2 });
        let Notice::Received(notification) = next(&mut tenant).await else {
            panic!("it is no notification");
        };
        assert_eq!(notification.data, Document { id: 4 });
        assert_eq!(
            notification.action.origin_service.as_deref(),
            Some(says.service())
        );
        assert_eq!(notification.action.action_type, "documents.updated");
    }
}

/// Anybody can publish anything.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_notification_is_told_as_it_came() {
    for ground in Ground::both().await {
        let says = announcer(&ground);
        let mut heard = ground
            .tester
            .subscribe::<Document>(says.service(), &["updated"], None)
            .await
            .unwrap();
        let channel = ground
            .broker
            .names()
            .notifications(says.service(), "updated", None);
        ground.say::<u8>(&["PUBLISH", &channel, "no json"]).await;
        let other = Request::new("demo.updated", &json!({ "id": "x" })).unwrap();
        says.notify("updated", other).await.unwrap();
        says.notify("updated", updated(1)).await.unwrap();
        match next(&mut heard).await {
            Notice::Unreadable {
                event,
                why,
                message,
            } => {
                assert_eq!(
                    (event.as_str(), message.as_slice()),
                    ("updated", &b"no json"[..])
                );
                assert!(why.contains("json_invalid"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        match next(&mut heard).await {
            Notice::Unreadable { why, .. } => assert!(why.contains("its data"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(data(&mut heard).await.1, Document { id: 1 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_is_made_again_and_the_gap_is_told() {
    for ground in Ground::both().await {
        let says = announcer(&ground);
        let mut heard = ground
            .tester
            .subscribe::<Document>(says.service(), &["updated"], None)
            .await
            .unwrap();
        let database = format!(" db={} ", ground.url().rsplit('/').next().unwrap());
        let clients: String = ground.say(&["CLIENT", "LIST", "TYPE", "PUBSUB"]).await;
        let mine = clients.lines().find(|line| line.contains(&database));
        let id = mine.and_then(|line| line.strip_prefix("id=")?.split(' ').next());
        ground
            .say::<u8>(&["CLIENT", "KILL", "ID", id.unwrap()])
            .await;
        assert!(matches!(next(&mut heard).await, Notice::Gap));
        says.notify("updated", updated(1)).await.unwrap();
        assert_eq!(data(&mut heard).await.1, Document { id: 1 });
    }
}

/// At any reading speed, items and reported gaps cover all notifications, in order.
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_too_slowly_knows_how_many_it_missed() {
    let Some(ground) = Ground::both().await.into_iter().next() else {
        return;
    };
    let says = announcer(&ground);
    let mut heard = ground
        .tester
        .subscribe::<Value>(says.service(), &["updated"], None)
        .await
        .unwrap();
    let all = MAX_UNREAD as u64 + 500;
    for n in 0..all {
        says.notify("updated", updated(n as u32)).await.unwrap();
    }
    let mut seen = 0;
    while seen < all {
        match next(&mut heard).await {
            Notice::Received(notification) => {
                assert_eq!(notification.data["id"], seen);
                seen += 1;
            }
            Notice::Dropped(many) => seen += many,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_listens_no_more_leaves_nothing_behind() {
    for ground in Ground::both().await {
        let says = announcer(&ground);
        let listens = ground
            .tester
            .subscribe::<Value>(says.service(), &["updated"], None)
            .await
            .unwrap();
        let channel = ground
            .broker
            .names()
            .notifications(says.service(), "updated", None);
        let listeners = async || {
            let subscribers: (String, usize) = ground.say(&["PUBSUB", "NUMSUB", &channel]).await;
            subscribers.1
        };
        assert_eq!(listeners().await, 1);
        drop(listens);
        eventually("nobody listens", BOUND, async || {
            (listeners().await == 0).then_some(())
        })
        .await;
        assert!(ground.say::<Vec<String>>(&["KEYS", "*"]).await.is_empty());
    }
}
