//! Files of a data directory that somebody deletes or replaces while an owner uses it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, path::Path};

use crate::support::{LOG, PATIENCE, Raw, Runs as _, attach_to, own};
use meshwork_embedded::{Fsync, LogError, OpenError, Options, Owner, Reply, attach, open};
use tokio::time::timeout;

/// Waits until the owner has lost its directory, by this file.
async fn loses(owner: &Owner, name: &str) {
    let reason = timeout(PATIENCE, owner.lost())
        .await
        .expect("it is noticed");
    assert!(
        matches!(&*reason, LogError::Lost { file, .. } if *file == name),
        "{reason}"
    );
    assert!(owner.is_lost().is_some());
}

async fn refuses_writes(owner: &Owner) {
    let refused = owner.handle().session().text("SET later 1").await;
    assert!(
        matches!(&refused, Reply::Error(error) if error.contains("deleted or replaced")),
        "{refused:?}"
    );
}

async fn has_keys(owner: &Owner, keys: i64) {
    let found = owner.handle().session().text("DBSIZE").await;
    assert_eq!(found, Reply::Int(keys));
}

/// An owner with a key, whose log has reserved space.
async fn with_a_key(dir: &Path) -> Owner {
    let owner = own(dir, Options::default()).await;
    owner.handle().session().done("SET first 1").await;
    owner
}

/// A fault and the file that it takes away.
type Fault = (&'static str, fn(&Path), &'static str);

const FAULTS: [Fault; 4] = [
    (
        "the lock is deleted",
        |dir| fs::remove_file(dir.join("lock")).unwrap(),
        "lock",
    ),
    (
        "the lock is replaced",
        |dir| {
            fs::write(dir.join("other"), "").unwrap();
            fs::rename(dir.join("other"), dir.join("lock")).unwrap();
        },
        "lock",
    ),
    (
        "the log is deleted",
        |dir| fs::remove_file(dir.join(LOG)).unwrap(),
        LOG,
    ),
    (
        "the log is replaced by a copy",
        |dir| {
            fs::copy(dir.join(LOG), dir.join("copy")).unwrap();
            fs::rename(dir.join("copy"), dir.join(LOG)).unwrap();
        },
        LOG,
    ),
];

#[tokio::test]
async fn an_owner_whose_files_are_taken_away_writes_no_more_and_ends_with_an_error() {
    for (fault, take_away, name) in FAULTS {
        let dir = tempfile::tempdir().unwrap();
        let owner = with_a_key(dir.path()).await;
        let mut client = Raw::to(&owner).await;
        client.done("SET second 1").await;
        take_away(dir.path());
        loses(&owner, name).await;
        refuses_writes(&owner).await;
        assert_eq!(
            client.reply().await,
            None,
            "{fault}: clients are disconnected"
        );
        let before = fs::read(dir.path().join(LOG)).ok();
        let error = owner.close().await.unwrap_err();
        assert!(
            error.to_string().contains("deleted or replaced"),
            "{fault}: {error}"
        );
        assert_eq!(fs::read(dir.path().join(LOG)).ok(), before, "{fault}");
        let kept = if fault == "the log is deleted" { 0 } else { 2 };
        has_keys(&own(dir.path(), Options::default()).await, kept).await;
    }
}

#[tokio::test]
async fn the_close_finds_a_lost_directory_itself() {
    for (fault, take_away, _) in FAULTS {
        let dir = tempfile::tempdir().unwrap();
        let owner = with_a_key(dir.path()).await;
        take_away(dir.path());
        let before = fs::read(dir.path().join(LOG)).ok();
        owner.close().await.expect_err(fault);
        assert_eq!(fs::read(dir.path().join(LOG)).ok(), before, "{fault}");
    }
}

#[tokio::test]
async fn with_every_write_synced_none_is_answered_after_the_loss() {
    for (fault, take_away, _) in FAULTS {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            fsync: Fsync::Always,
            ..Options::default()
        };
        let owner = own(dir.path(), options).await;
        take_away(dir.path());
        let answered = owner.handle().session().text("SET a 1").await;
        assert!(matches!(answered, Reply::Error(_)), "{fault}: {answered:?}");
    }
}

#[tokio::test]
async fn a_deleted_lock_never_makes_two_owners() {
    let dir = tempfile::tempdir().unwrap();
    let owner = with_a_key(dir.path()).await;
    fs::remove_file(dir.path().join("lock")).unwrap();
    // Before the owner has noticed, the next one finds the log locked, and becomes a client.
    attach_to(dir.path(), Options::default()).await;
    owner.handle().session().done("SET second 1").await;
    loses(&owner, "lock").await;
    let next = own(dir.path(), Options::default()).await;
    has_keys(&next, 2).await;
    next.handle().session().done("SET third 1").await;
    refuses_writes(&owner).await;
    owner.close().await.unwrap_err();
    assert_eq!(
        Raw::to(&next).await.text("DBSIZE").await,
        Reply::Int(3),
        "the socket is that of the next owner"
    );
    next.close().await.unwrap();
    has_keys(&own(dir.path(), Options::default()).await, 3).await;
}

#[tokio::test]
async fn a_rewrite_of_the_log_is_locked_too() {
    let dir = tempfile::tempdir().unwrap();
    let owner = with_a_key(dir.path()).await;
    crate::support::rewrite(&owner).await;
    fs::remove_file(dir.path().join("lock")).unwrap();
    attach_to(dir.path(), Options::default()).await;
    loses(&owner, "lock").await;
}

#[tokio::test]
async fn a_deleted_or_renamed_directory_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let (dir, aside) = (root.path().join("data"), root.path().join("aside"));
    let owner = with_a_key(&dir).await;
    fs::rename(&dir, &aside).unwrap();
    loses(&owner, "lock").await;
    refuses_writes(&owner).await;
    owner.close().await.unwrap_err();
    assert!(!dir.exists(), "nothing is made in its place");
    has_keys(&own(&aside, Options::default()).await, 1).await;

    let owner = with_a_key(&dir).await;
    fs::remove_dir_all(&dir).unwrap();
    loses(&owner, "lock").await;
    owner.close().await.unwrap_err();
    assert!(!dir.exists(), "nothing is made in its place");
    let options = Options {
        create: false,
        ..Options::default()
    };
    let error = open(&dir, options).await.unwrap_err();
    assert!(matches!(error, OpenError::Gone { .. }), "{error}");
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_deleted_socket_is_made_again_and_clients_stay() {
    let dir = tempfile::tempdir().unwrap();
    let owner = with_a_key(dir.path()).await;
    let mut client = Raw::to(&owner).await;
    for fault in ["deleted", "replaced"] {
        let socket = dir.path().join("redis.sock");
        fs::remove_file(&socket).unwrap();
        if fault == "replaced" {
            fs::write(&socket, "").unwrap();
        }
        let connected = async {
            loop {
                match attach(dir.path()).await {
                    Ok(stream) => break stream,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        let fresh = timeout(PATIENCE, connected).await.expect(fault);
        assert_eq!(Raw::new(fresh).text("DBSIZE").await, Reply::Int(1));
        assert_eq!(client.text("DBSIZE").await, Reply::Int(1), "{fault}");
    }
    assert!(owner.is_lost().is_none());
    owner.close().await.unwrap();
    assert!(!dir.path().join("redis.sock").exists());
}
