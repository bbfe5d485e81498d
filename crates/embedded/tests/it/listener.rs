//! The listener as clients see it: pipelines, blocked commands, disconnects, pushed messages, limits, shutdown.

use crate::support::{PATIENCE, Raw, Runs as _, own};
use bytes::Bytes;
use meshwork_embedded::{Options, Owner, Reply, encode_command};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

async fn fresh(options: Options) -> (TempDir, Owner) {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), options).await;
    (dir, owner)
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

fn bulks(texts: &[&str]) -> Vec<Reply> {
    texts.iter().map(|text| bulk(text)).collect()
}

/// Waits until a field of `INFO clients` has a value.
async fn info_says(client: &mut Raw, wanted: &str) {
    let look = async {
        loop {
            let info = match client.text("INFO clients").await {
                Reply::Bulk(text) => String::from_utf8(text.into()).unwrap(),
                Reply::Verbatim(text) => text,
                other => panic!("INFO: {other:?}"),
            };
            if info.lines().any(|line| line == wanted) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, look)
        .await
        .unwrap_or_else(|_| panic!("INFO never says {wanted}"));
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order() {
    let (_dir, owner) = fresh(Options::default()).await;
    let mut client = Raw::to(&owner).await;
    let mut bytes = b"PING\r\n".to_vec();
    for number in 0..1_000 {
        encode_command(&["RPUSH", "list", &number.to_string()], &mut bytes);
    }
    client.stream.write_all(&bytes).await.unwrap();
    assert_eq!(client.reply().await, Some(Reply::Status("PONG".into())));
    for number in 1..=1_000 {
        assert_eq!(client.reply().await, Some(Reply::Int(number)));
    }
}

#[tokio::test]
async fn a_client_may_send_far_more_than_the_sockets_hold_before_it_reads() {
    let (_dir, owner) = fresh(Options::default()).await;
    let mut client = Raw::to(&owner).await;
    let value = "v".repeat(4096);
    client.done(&format!("SET key {value}")).await;
    let mut bytes = Vec::new();
    let count = 8_000;
    for _ in 0..count {
        // As many bytes are read as written.
        encode_command(&["GET", "key"], &mut bytes);
        encode_command(&["SET", "key", &value], &mut bytes);
    }
    let write = client.stream.write_all(&bytes);
    timeout(PATIENCE, write)
        .await
        .expect("all is taken before a reply is read")
        .unwrap();
    for _ in 0..count {
        assert_eq!(client.reply().await, Some(bulk(&value)));
        assert_eq!(client.reply().await, Some(Reply::ok()));
    }
}

#[tokio::test]
async fn one_who_waits_does_not_keep_the_others_waiting() {
    let (_dir, owner) = fresh(Options::default()).await;
    let (mut waits, mut works) = (Raw::to(&owner).await, Raw::to(&owner).await);
    waits.send("BLPOP list 0").await;
    info_says(&mut works, "blocked_clients:1").await;
    works.done("RPUSH list a").await;
    assert_eq!(
        waits.reply().await,
        Some(Reply::Array(bulks(&["list", "a"])))
    );
}

#[tokio::test]
async fn replies_before_a_waiting_command_go_out_at_once_and_those_behind_after_it() {
    let (_dir, owner) = fresh(Options::default()).await;
    let (mut waits, mut works) = (Raw::to(&owner).await, Raw::to(&owner).await);
    for line in ["SET a 1", "BLPOP list 0", "GET a"] {
        waits.send(line).await;
    }
    assert_eq!(waits.reply().await, Some(Reply::ok()));
    works.done("RPUSH list x").await;
    assert_eq!(
        waits.reply().await,
        Some(Reply::Array(bulks(&["list", "x"])))
    );
    assert_eq!(waits.reply().await, Some(bulk("1")));
}

#[tokio::test]
async fn one_who_leaves_while_it_waits_takes_nothing() {
    let (_dir, owner) = fresh(Options::default()).await;
    let (mut waits, mut works) = (Raw::to(&owner).await, Raw::to(&owner).await);
    waits.send("BLPOP list 0").await;
    // Sent behind it, and must never run.
    waits.send("SET never 1").await;
    info_says(&mut works, "blocked_clients:1").await;
    drop(waits);
    info_says(&mut works, "blocked_clients:0").await;
    works.done("RPUSH list a").await;
    assert_eq!(works.text("LLEN list").await, Reply::Int(1));
    assert_eq!(works.text("EXISTS never").await, Reply::Int(0));
}

#[tokio::test]
async fn messages_are_pushed_as_each_protocol_has_them() {
    let (_dir, owner) = fresh(Options::default()).await;
    let (mut two, mut three) = (Raw::to(&owner).await, Raw::to(&owner).await);
    let mut works = Raw::to(&owner).await;
    assert!(matches!(three.text("HELLO 3").await, Reply::Map(_)));
    for client in [&mut two, &mut three] {
        client.send("SUBSCRIBE news").await;
    }
    let mut confirmed = bulks(&["subscribe", "news"]);
    confirmed.push(Reply::Int(1));
    assert_eq!(two.reply().await, Some(Reply::Array(confirmed.clone())));
    assert_eq!(three.reply().await, Some(Reply::Push(confirmed)));

    assert_eq!(works.text("PUBLISH news hello").await, Reply::Int(2));
    let message = bulks(&["message", "news", "hello"]);
    assert_eq!(two.reply().await, Some(Reply::Array(message.clone())));
    assert_eq!(three.reply().await, Some(Reply::Push(message)));
    // A subscriber of RESP3 can send other commands.
    assert_eq!(three.text("GET nothing").await, Reply::Nil);
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_cut_off_and_the_others_are_not() {
    let (_dir, owner) = fresh(Options::default()).await;
    let (mut lazy, mut works) = (Raw::to(&owner).await, Raw::to(&owner).await);
    lazy.send("SUBSCRIBE news").await;
    lazy.reply().await.unwrap();
    let message = "m".repeat(1024);
    let mut sent = 0_u64;
    while works.text(&format!("PUBLISH news {message}")).await == Reply::Int(1) {
        sent += 1;
        assert!(sent < 1_000_000, "never cut off");
    }
    // The client still gets earlier messages, and then the end.
    let mut got = 0;
    while lazy.reply().await.is_some() {
        got += 1;
    }
    assert!(got <= sent, "{got} of {sent}");
}

#[tokio::test]
async fn what_breaks_the_protocol_is_answered_and_closed() {
    let (_dir, owner) = fresh(Options::default()).await;
    let mut client = Raw::to(&owner).await;
    client
        .stream
        .write_all(b"PING\r\n*1\r\n:1\r\nPING\r\n")
        .await
        .unwrap();
    assert_eq!(client.reply().await, Some(Reply::Status("PONG".into())));
    let words = "ERR Protocol error: expected '$', got ':'".to_owned();
    assert_eq!(client.reply().await, Some(Reply::Error(words)));
    assert_eq!(client.reply().await, None);
}

#[tokio::test]
async fn quit_is_answered_and_closed() {
    let (_dir, owner) = fresh(Options::default()).await;
    let mut client = Raw::to(&owner).await;
    assert_eq!(client.text("QUIT").await, Reply::ok());
    assert_eq!(client.reply().await, None);
}

#[tokio::test]
async fn one_too_many_is_told_so() {
    let (_dir, owner) = fresh(Options {
        max_clients: 2,
        ..Options::default()
    })
    .await;
    let (mut one, mut two) = (Raw::to(&owner).await, Raw::to(&owner).await);
    one.done("PING").await;
    two.done("PING").await;
    let mut three = Raw::to(&owner).await;
    let words = "ERR max number of clients reached".to_owned();
    assert_eq!(three.reply().await, Some(Reply::Error(words)));
    assert_eq!(three.reply().await, None);

    drop(two);
    info_says(&mut one, "connected_clients:1").await;
    let again = async {
        loop {
            let mut two = Raw::to(&owner).await;
            two.stream.write_all(b"PING\r\n").await.ok();
            if two.reply().await == Some(Reply::Status("PONG".into())) {
                return;
            }
        }
    };
    timeout(PATIENCE, again)
        .await
        .expect("the place is free again");
}

#[tokio::test]
async fn the_end_answers_what_has_run_and_lets_nobody_wait() {
    let (dir, owner) = fresh(Options::default()).await;
    let (mut waits, mut works) = (Raw::to(&owner).await, Raw::to(&owner).await);
    waits.send("RPUSH other a").await;
    waits.send("BLPOP list 0").await;
    info_says(&mut works, "blocked_clients:1").await;
    timeout(PATIENCE, owner.close())
        .await
        .expect("nobody holds it up")
        .unwrap();
    assert_eq!(waits.reply().await, Some(Reply::Int(1)));
    assert_eq!(waits.reply().await, None);
    assert_eq!(works.reply().await, None);
    let owner = own(dir.path(), Options::default()).await;
    assert_eq!(
        owner.handle().session().text("LLEN other").await,
        Reply::Int(1)
    );
}

#[tokio::test]
async fn at_the_end_replies_that_wait_are_still_taken() {
    let (_dir, owner) = fresh(Options::default()).await;
    let (mut slow, mut works) = (Raw::to(&owner).await, Raw::to(&owner).await);
    let value = "v".repeat(4096);
    slow.done(&format!("SET key {value}")).await;
    // More than the socket's buffers.
    let count = 500;
    for _ in 0..count {
        slow.send("GET key").await;
    }
    slow.send("SET done 1").await;
    let done = async { while works.text("EXISTS done").await != Reply::Int(1) {} };
    timeout(PATIENCE, done).await.expect("all have run");
    let reads = async {
        for _ in 0..count {
            assert_eq!(slow.reply().await, Some(bulk(&value)));
        }
        assert_eq!(slow.reply().await, Some(Reply::ok()));
        assert_eq!(slow.reply().await, None);
    };
    let (closed, ()) = tokio::join!(owner.close(), reads);
    closed.unwrap();
}

#[tokio::test]
async fn tcp_is_served_as_the_socket_is() {
    let tcp = Some("127.0.0.1:0".parse().unwrap());
    let (_dir, owner) = fresh(Options {
        tcp,
        ..Options::default()
    })
    .await;
    let mut stream = tokio::net::TcpStream::connect(owner.tcp().unwrap())
        .await
        .unwrap();
    stream
        .write_all(b"SET a 1\r\nGET a\r\nQUIT\r\n")
        .await
        .unwrap();
    let mut all = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut all))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(all, "+OK\r\n$1\r\n1\r\n+OK\r\n");
}
