//! Checksums beside the log: each damage is found, and nothing that may happen to the two files locks the owner out.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, path::Path};

use crate::support::{Content, LOG, Player, Runs as _, assert_same, content_of, own, rewrite};
use meshwork_embedded::{LogError, OpenError, Options, check_store, open, repair_store};
use meshwork_test_servers::servers::RealServer;

const SUMS: &str = "appendonly.aof.sums";
/// The script in the log. The random digits of the annotation may contain its digits, too.
const SCRIPT: &str = "\r\n42\r\n";

/// Fills a data directory, and returns its content.
async fn filled(dir: &Path, rewritten: bool) -> Content {
    let owner = own(dir, Options::default()).await;
    let mut session = owner.handle().session();
    for line in [
        "HSET job:1 status queued script 42 retries 3",
        "ZADD leases 1700000000123 job:1",
        "SELECT 3",
        "RPUSH list a b c",
    ] {
        session.done(line).await;
    }
    if rewritten {
        rewrite(&owner).await;
    }
    session.done("HSET job:2 status queued").await;
    let content = content_of(&owner).await;
    owner.close().await.unwrap();
    content
}

async fn content_in(dir: &Path) -> Content {
    let owner = own(dir, Options::default()).await;
    let content = content_of(&owner).await;
    owner.close().await.unwrap();
    content
}

#[tokio::test]
async fn a_flipped_bit_anywhere_in_the_log_is_an_error_or_changes_nothing() {
    for rewritten in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let content = filled(dir.path(), rewritten).await;
        let (log, sums) = (dir.path().join(LOG), dir.path().join(SUMS));
        let (whole, checked) = (fs::read(&log).unwrap(), fs::read(&sums).unwrap());
        let mut found = 0;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&log, &bytes).unwrap();
            fs::write(&sums, &checked).unwrap();
            let opened = open(dir.path(), Options::default()).await.map(drop);
            match opened {
                // In the annotation itself, which only names the checksums.
                Ok(()) => assert_eq!(content_in(dir.path()).await, content, "byte {at}"),
                Err(OpenError::Log(LogError::Damaged { from, to, .. })) => {
                    let at = at as u64;
                    assert!((from..to).contains(&at), "{at} is not in {from}..{to}");
                    assert_eq!(fs::read(&log).unwrap(), bytes, "nothing is changed");
                    found += 1;
                }
                Err(OpenError::Log(LogError::Corrupt { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let annotation = "#SUMS:0123456789abcdef\r\n".len();
        assert!(
            found >= whole.len() - annotation,
            "{found} of {}",
            whole.len()
        );
    }
}

#[tokio::test]
async fn the_error_says_how_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let content = filled(dir.path(), false).await;
    let log = dir.path().join(LOG);
    let whole = String::from_utf8(fs::read(&log).unwrap()).unwrap();
    fs::write(&log, whole.replacen(SCRIPT, "\r\n43\r\n", 1)).unwrap();
    let error = open(dir.path(), Options::default()).await.unwrap_err();
    let aside = "move appendonly.aof.sums away";
    assert!(error.to_string().contains(aside), "{error}");
    fs::rename(dir.path().join(SUMS), dir.path().join("aside")).unwrap();
    let changed = content_in(dir.path()).await;
    assert_eq!(changed.len(), content.len());
    assert_ne!(changed, content);
}

#[tokio::test]
async fn checksums_that_are_cut_or_missing_or_of_another_log_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let content = filled(dir.path(), false).await;
    let (log, sums) = (dir.path().join(LOG), dir.path().join(SUMS));
    let (whole, checked) = (fs::read(&log).unwrap(), fs::read(&sums).unwrap());
    let other = tempfile::tempdir().unwrap();
    filled(other.path(), false).await;
    let foreign = fs::read(other.path().join(SUMS)).unwrap();
    let cuts = (0..checked.len()).map(|cut| checked[..cut].to_vec());
    for bytes in cuts.chain([foreign, vec![b'x'; 100]]) {
        fs::write(&log, &whole).unwrap();
        fs::write(&sums, &bytes).unwrap();
        assert_eq!(content_in(dir.path()).await, content);
        // They are there again after the next write.
        let owner = own(dir.path(), Options::default()).await;
        owner.handle().session().done("SET next 1").await;
        owner.close().await.unwrap();
        let mut bytes = fs::read(&log).unwrap();
        let whole = String::from_utf8_lossy(&bytes);
        let script = whole.find(SCRIPT).unwrap() + "\r\n".len();
        bytes[script] ^= 1;
        fs::write(&log, bytes).unwrap();
        let error = open(dir.path(), Options::default()).await.unwrap_err();
        assert!(
            matches!(error, OpenError::Log(LogError::Damaged { .. })),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_older_copy_of_the_log_is_loaded_and_protected_again() {
    let dir = tempfile::tempdir().unwrap();
    let content = filled(dir.path(), false).await;
    let log = dir.path().join(LOG);
    let older = fs::read(&log).unwrap();
    let owner = own(dir.path(), Options::default()).await;
    owner.handle().session().done("SET later 1").await;
    owner.close().await.unwrap();
    fs::write(&log, &older).unwrap();
    assert_eq!(content_in(dir.path()).await, content);
    let owner = own(dir.path(), Options::default()).await;
    owner.handle().session().done("SET other 1").await;
    let content = content_of(&owner).await;
    owner.close().await.unwrap();
    assert_eq!(content_in(dir.path()).await, content);
}

#[tokio::test]
async fn a_killed_owner_leaves_no_wrong_checksum() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let mut owner = Player::start("p", dir.path());
        owner.hears("owner");
        for _ in 0..300 {
            owner.hears("ack");
        }
        owner.kill();
        content_in(dir.path()).await;
    }
}

#[tokio::test]
async fn a_log_with_checksums_is_loaded_by_redis_and_valkey() {
    let dir = tempfile::tempdir().unwrap();
    let content = filled(dir.path(), true).await;
    let log = fs::read(dir.path().join(LOG)).unwrap();
    assert!(
        log.starts_with(b"#SUMS:"),
        "{}",
        String::from_utf8_lossy(&log)
    );
    assert_same(RealServer::redis(), &log, &content).await;
    assert_same(RealServer::valkey(), &log, &content).await;
}

/// Fills a data directory whose checksums have several entries.
async fn filled_in_parts(dir: &Path) -> Content {
    for part in 0..4 {
        let owner = own(dir, Options::default()).await;
        let mut session = owner.handle().session();
        session
            .done(&format!("HSET job:{part} script 42 retries 3"))
            .await;
        session.done(&format!("RPUSH list {part}")).await;
        drop(session);
        owner.close().await.unwrap();
    }
    content_in(dir).await
}

#[tokio::test]
async fn a_log_that_is_shorter_than_its_checksums_is_a_fault_at_every_length() {
    let dir = tempfile::tempdir().unwrap();
    let content = filled_in_parts(dir.path()).await;
    let (log, sums) = (dir.path().join(LOG), dir.path().join(SUMS));
    let (whole, checked) = (fs::read(&log).unwrap(), fs::read(&sums).unwrap());
    let check = check_store(dir.path()).unwrap();
    assert_eq!((check.faults, check.checked), (Vec::new(), check.bytes));
    let entries = (checked.len() - 32) / 16;
    assert_eq!(entries, 4);
    for len in 0..whole.len() {
        fs::write(&log, &whole[..len]).unwrap();
        let faults = check_store(dir.path()).unwrap().faults;
        let shorter = |what: &str| what.contains("shorter than its checksums");
        assert!(
            faults.iter().any(|fault| shorter(&fault.what)),
            "{len}: {faults:?}"
        );
    }
    fs::remove_file(&log).unwrap();
    let faults = check_store(dir.path()).unwrap().faults;
    assert!(faults[0].what.contains("is missing"), "{faults:?}");
    // It is opened in any case, and the checksums are kept.
    assert!(content_in(dir.path()).await.is_empty());
    let kept = dir.path().join("appendonly.aof.sums.kept");
    assert_eq!(fs::read(kept).unwrap(), checked);
    fs::write(&log, &whole).unwrap();
    fs::write(&sums, &checked).unwrap();
    assert_eq!(content_in(dir.path()).await, content);
}

/// A change of the checksums hides no change of the log.
#[tokio::test]
async fn a_changed_bit_of_the_log_is_found_beside_one_of_the_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let content = filled_in_parts(dir.path()).await;
    let (log, sums) = (dir.path().join(LOG), dir.path().join(SUMS));
    let (whole, checked) = (fs::read(&log).unwrap(), fs::read(&sums).unwrap());
    let text = String::from_utf8_lossy(&whole).into_owned();
    let annotation = text.find("#SUMS:").unwrap();
    let scripts = text.match_indices(SCRIPT).map(|(at, _)| at + "\r\n".len());
    for script in scripts {
        let mut bytes = whole.clone();
        bytes[script] ^= 1;
        let refused = async |what: &str| {
            let error = open(dir.path(), Options::default()).await.unwrap_err();
            let damaged = matches!(error, OpenError::Log(LogError::Damaged { .. }));
            assert!(damaged, "{script}, {what}: {error}");
        };
        for bit in 0..checked.len() * 8 {
            let mut changed = checked.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(&log, &bytes).unwrap();
            fs::write(&sums, &changed).unwrap();
            refused(&format!("bit {bit}")).await;
        }
        for at in annotation..annotation + "#SUMS:0123456789abcdef".len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            fs::write(&log, &bytes).unwrap();
            fs::write(&sums, &checked).unwrap();
            refused(&format!("byte {at} of the log")).await;
        }
    }
    // A changed bit of the checksums alone is a fault, and locks nobody out.
    for bit in 0..checked.len() * 8 {
        let mut changed = checked.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        fs::write(&log, &whole).unwrap();
        fs::write(&sums, &changed).unwrap();
        let faults = check_store(dir.path()).unwrap().faults;
        assert!(faults[0].what.contains("damaged"), "{bit}: {faults:?}");
    }
    assert_eq!(content_in(dir.path()).await, content);
}

#[tokio::test]
async fn a_repair_cuts_before_the_first_fault_and_keeps_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    filled_in_parts(dir.path()).await;
    let log = dir.path().join(LOG);
    let whole = fs::read(&log).unwrap();
    let sound = repair_store(dir.path()).unwrap();
    assert_eq!((sound.check.faults, sound.kept), (Vec::new(), None));
    let text = String::from_utf8_lossy(&whole).into_owned();
    let last = text.rfind(SCRIPT).unwrap() + "\r\n".len();
    let mut bytes = whole.clone();
    bytes[last] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let cut = check_store(dir.path()).unwrap().cut().unwrap() as usize;
    assert!(cut < last && whole[cut..].starts_with(b"*"), "{cut}");
    let done = repair_store(dir.path()).unwrap();
    assert_eq!(fs::read(&log).unwrap(), whole[..cut]);
    assert_eq!(fs::read(done.kept.unwrap()).unwrap(), bytes[cut..]);
    assert_eq!(check_store(dir.path()).unwrap().faults, Vec::new());
    let content = content_in(dir.path()).await;
    assert_eq!(content.len(), 4, "{content:?}");
    // A process that uses the directory keeps its log.
    let owner = own(dir.path(), Options::default()).await;
    let refused = repair_store(dir.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Used { .. }), "{refused}");
    owner.close().await.unwrap();
}
