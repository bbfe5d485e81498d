//! A full disk, and the reserved space of the log. These tests need a file system of their own, which only root may
//! mount.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use crate::support::{
    LOG, PATIENCE, Raw, Runs as _, assert_same, content_of, info_says, own, rewrite,
};
use meshwork_embedded::{Options, Reply};
use meshwork_test_servers::{SmallDisk, servers::RealServer};
use rustix::fs::{FallocateFlags, fallocate};

/// Size of a disk for a log and its reservation.
const DISK: u64 = 2 * 1024 * 1024;

/// More writes than any disk here has room for.
const MANY: usize = 100_000;

/// Checks that a file of this length uses no reserved space.
fn takes_no_more(path: &Path) -> bool {
    let about = fs::metadata(path).unwrap();
    about.blocks() * 512 <= about.len() + 64 * 1024
}

/// Returns a write that does not fit where a smaller one did not.
fn large(list: &str) -> String {
    format!("RPUSH {list} {}", "x".repeat(2_000))
}

/// Writes until a write is refused, and returns the number of successful ones.
async fn write_until_full(session: &mut impl crate::support::Runs) -> i64 {
    let value = "x".repeat(1_000);
    for number in 0..MANY {
        match session.text(&format!("RPUSH list {number}:{value}")).await {
            Reply::Int(_) => {}
            Reply::Error(error) => {
                assert!(error.starts_with("MISCONF"), "{error}");
                return i64::try_from(number).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the disk is never full");
}

#[tokio::test]
async fn a_write_is_refused_before_it_is_done_and_readers_go_on() {
    let name = "a_write_is_refused_before_it_is_done_and_readers_go_on";
    let Some(disk) = SmallDisk::mount(name, DISK) else {
        return;
    };
    let dir = disk.path().join("data");
    let owner = own(&dir, Options::default()).await;
    let mut session = owner.handle().session();
    session.done("SET before v").await;
    disk.fill();
    let acked = write_until_full(&mut session).await;
    assert!(acked > 0, "what was set aside is used");
    for _ in 0..3 {
        let again = session.text(&large("list")).await;
        assert!(matches!(again, Reply::Error(_)), "{again:?}");
        assert_eq!(session.text("LLEN list").await, Reply::Int(acked));
    }
    // After a kill at this point, the data would be the same.
    let expected = content_of(&owner).await;
    let copy = tempfile::tempdir().unwrap();
    fs::copy(dir.join(LOG), copy.path().join(LOG)).unwrap();
    let other = own(copy.path(), Options::default()).await;
    assert_eq!(content_of(&other).await, expected);

    disk.free();
    assert_eq!(session.text("RPUSH list last").await, Reply::Int(acked + 1));
    owner.close().await.unwrap();
}

#[tokio::test]
async fn what_is_set_aside_is_no_part_of_the_log_and_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join(LOG);
    let owner = own(dir.path(), Options::default()).await;
    let mut session = owner.handle().session();
    session.done("SET k v").await;
    let set_aside = !takes_no_more(&log);
    let expected = content_of(&owner).await;
    assert_same(RealServer::redis(), &fs::read(&log).unwrap(), &expected).await;
    rewrite(&owner).await;
    session.done("SET k v").await;
    assert_eq!(!takes_no_more(&log), set_aside, "also after a rewrite");
    assert_same(RealServer::redis(), &fs::read(&log).unwrap(), &expected).await;
    owner.close().await.unwrap();
    assert!(takes_no_more(&log));

    // An owner that was killed has left the reservation.
    let file = File::options().write(true).open(&log).unwrap();
    let left = fallocate(
        &file,
        FallocateFlags::KEEP_SIZE,
        file.metadata().unwrap().len(),
        DISK,
    );
    if left.is_ok() {
        assert!(!takes_no_more(&log));
    }
    let owner = own(dir.path(), Options::default()).await;
    assert_eq!(content_of(&owner).await, expected);
    owner.close().await.unwrap();
    assert!(takes_no_more(&log));
}

#[tokio::test]
async fn a_rewrite_on_a_full_disk_leaves_the_log_as_it_is() {
    let name = "a_rewrite_on_a_full_disk_leaves_the_log_as_it_is";
    let Some(disk) = SmallDisk::mount(name, DISK) else {
        return;
    };
    let dir = disk.path().join("data");
    let owner = own(&dir, Options::default()).await;
    let mut session = owner.handle().session();
    for number in 0..400 {
        let value = "x".repeat(1_000);
        session.done(&format!("SET k{number} {value}")).await;
    }
    disk.fill();
    let before = fs::read(dir.join(LOG)).unwrap();
    session.done("BGREWRITEAOF").await;
    let info = info_says(&owner, "aof_rewrite_in_progress:0").await;
    assert!(info.contains("aof_last_bgrewrite_status:err"), "{info}");
    assert!(!dir.join("appendonly.aof.rewrite").exists());
    assert_eq!(fs::read(dir.join(LOG)).unwrap(), before);
    session.done("DEL k0").await;
    let expected = content_of(&owner).await;

    disk.free();
    rewrite(&owner).await;
    session.done("SET k0 back").await;
    session.done("DEL k0").await;
    owner.close().await.unwrap();
    let owner = own(&dir, Options::default()).await;
    assert_eq!(content_of(&owner).await, expected);
    drop(owner);
}

#[tokio::test]
async fn who_waits_at_the_socket_is_served_when_the_disk_has_room_again() {
    let name = "who_waits_at_the_socket_is_served_when_the_disk_has_room_again";
    let Some(disk) = SmallDisk::mount(name, DISK) else {
        return;
    };
    let dir = disk.path().join("data");
    let owner = own(&dir, Options::default()).await;
    let mut waiting = Raw::to(&owner).await;
    waiting.send("BLPOP later 0").await;
    let mut session = owner.handle().session();
    session.done("SET k v").await;
    disk.fill();
    write_until_full(&mut session).await;
    let refused = session.text(&large("later")).await;
    assert!(matches!(refused, Reply::Error(_)), "{refused:?}");
    disk.free();
    session.done("RPUSH later b").await;
    let reply = tokio::time::timeout(PATIENCE, waiting.reply()).await;
    let pair = ["later", "b"].map(|text| Reply::Bulk(text.into())).to_vec();
    assert_eq!(
        reply.unwrap(),
        Some(Reply::Array(pair)),
        "and not of what was refused"
    );
    owner.close().await.unwrap();
}
