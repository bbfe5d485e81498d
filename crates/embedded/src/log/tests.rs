//! The log alone: written data is read, whatever is cut off, whatever fails.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use bytes::Bytes;
use proptest::prelude::*;

use super::{
    LOG_FILE, LogError, TEMP_FILE,
    append::{Appender, encode_transaction},
    claim::lock_log,
    load::{Loaded, load},
    read::REWRITTEN,
};
use crate::store::Effect;

fn effect(db: usize, args: &[&str]) -> Effect {
    Effect {
        db,
        args: args
            .iter()
            .map(|arg| Bytes::copy_from_slice(arg.as_bytes()))
            .collect(),
    }
}

fn set(db: usize, key: &str) -> Effect {
    effect(db, &["SET", key, "1"])
}

fn load_all(dir: &Path) -> Result<(Loaded, Vec<Vec<Effect>>), LogError> {
    let mut seen = Vec::new();
    let file = lock_log(dir)?.expect("nobody else has locked it");
    let loaded = load(dir, file, |effects| {
        seen.push(effects.to_vec());
        Ok(())
    })?;
    Ok((loaded, seen))
}

fn append_all(dir: &Path, transactions: &[Vec<Effect>]) -> Vec<u64> {
    let (loaded, _) = load_all(dir).unwrap();
    let mut appender = Appender::new(&loaded.path, loaded.file, loaded.len, loaded.sums);
    let append = |effects: &Vec<Effect>| {
        appender.append(effects).unwrap();
        appender.len()
    };
    transactions.iter().map(append).collect()
}

fn write(dir: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(dir.join(LOG_FILE), bytes).unwrap();
}

fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn transactions() -> impl Strategy<Value = Vec<Vec<Effect>>> {
    let args = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 1..4);
    let effect = (0..3_usize, args).prop_map(|(db, args)| {
        let mut args: Vec<Bytes> = args.into_iter().map(Bytes::from).collect();
        // Commands of the log itself are not effects.
        args.insert(0, Bytes::from_static(b"SET"));
        Effect { db, args }
    });
    let transaction = proptest::collection::vec(effect, 1..5);
    proptest::collection::vec(transaction, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_log_cut_anywhere_is_a_prefix_of_its_transactions(
        transactions in transactions(),
        more in transactions(),
        cut in any::<prop::sample::Index>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let ends = append_all(dir.path(), &transactions);
        let whole = fs::read(dir.path().join(LOG_FILE)).unwrap();
        let cut = cut.index(whole.len() + 1);
        write(dir.path(), &whole[..cut]);

        let kept = ends.iter().take_while(|end| **end <= cut as u64).count();
        let (_, seen) = load_all(dir.path()).unwrap();
        prop_assert_eq!(&seen, &transactions[..kept]);

        // The log continues from there, and nothing of the torn end returns.
        append_all(dir.path(), &more);
        let (_, seen) = load_all(dir.path()).unwrap();
        prop_assert_eq!(&seen[..kept], &transactions[..kept]);
        prop_assert_eq!(&seen[kept..], &more[..]);
    }

    #[test]
    fn a_byte_changed_in_the_middle_never_panics_and_never_brings_more(
        transactions in transactions(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let dir = tempfile::tempdir().unwrap();
        append_all(dir.path(), &transactions);
        let mut bytes = fs::read(dir.path().join(LOG_FILE)).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        write(dir.path(), &bytes);
        match load_all(dir.path()) {
            Ok(_) => {}
            Err(LogError::Corrupt { .. } | LogError::Database { .. }) => {
                prop_assert_eq!(fs::read(dir.path().join(LOG_FILE)).unwrap(), bytes);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn a_torn_tail_is_kept_aside() {
    let dir = tempfile::tempdir().unwrap();
    let ends = append_all(
        dir.path(),
        &[vec![set(0, "a")], vec![set(3, "b"), set(0, "c")]],
    );
    let whole = fs::read(dir.path().join(LOG_FILE)).unwrap();
    let first = usize::try_from(ends[0]).unwrap();
    write(dir.path(), &whole[..whole.len() - 1]);

    let (loaded, seen) = load_all(dir.path()).unwrap();
    assert_eq!((loaded.len, seen.len()), (ends[0], 1));
    let tail = fs::read(dir.path().join(format!("{LOG_FILE}.torn-{first}"))).unwrap();
    assert_eq!(tail, whole[first..whole.len() - 1]);
}

#[test]
fn only_the_last_torn_tails_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Vec::new();
    for key in 0..20 {
        encode_transaction(&[set(0, &key.to_string())], None, &mut log);
        write(dir.path(), [&log[..], b"*1\r\n"].concat());
        load_all(dir.path()).unwrap();
    }
    assert_eq!(files(dir.path()).len(), 8 + 1);
}

#[test]
fn zeros_that_a_power_cut_leaves_are_a_torn_tail() {
    for whole_size in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Vec::new();
        encode_transaction(&[set(0, "a")], None, &mut log);
        let kept = log.len();
        if whole_size {
            log.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$8\r\n\0\0");
        }
        log.extend_from_slice(&[0; 4096]);
        write(dir.path(), &log);
        let (loaded, seen) = load_all(dir.path()).unwrap();
        assert_eq!((loaded.len, seen), (kept as u64, vec![vec![set(0, "a")]]));
    }
}

#[test]
fn garbage_in_the_middle_is_refused_by_name_and_place() {
    let mut good = Vec::new();
    encode_transaction(&[set(0, "a")], None, &mut good);
    for bad in [
        "hello\r\n",
        "*1\r\n+PING\r\n",
        "*1\r\n$4\r\nPINGxx",
        "*0\r\n",
        "*1\r\n$-1\r\n",
        "*99999999\r\n",
        "*1\r\n$1 \r\n",
        "*1\r\n$4\r\nEXEC\r\n",
        "*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nMULTI\r\n",
        "*1\r\n$6\r\nSELECT\r\n",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let log = [&good[..], bad.as_bytes(), &good].concat();
        write(dir.path(), &log);
        let error = load_all(dir.path()).unwrap_err();
        assert!(
            matches!(error, LogError::Corrupt { .. }),
            "{bad:?}: {error}"
        );
        assert!(
            error.to_string().contains(dir.path().to_str().unwrap()),
            "{error}"
        );
        assert!(error.to_string().contains("redis-check-aof"), "{error}");
        assert_eq!(
            fs::read(dir.path().join(LOG_FILE)).unwrap(),
            log,
            "unchanged"
        );
        assert_eq!(files(dir.path()), [LOG_FILE]);
    }
}

#[test]
fn a_command_that_cannot_be_replayed_is_named_by_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let ends = append_all(dir.path(), &[vec![set(0, "a")], vec![effect(0, &["XADD"])]]);
    let file = lock_log(dir.path()).unwrap().unwrap();
    let error = load(dir.path(), file, |effects| {
        if effects[0].args[0] == "XADD" {
            Err("ERR unknown".into())
        } else {
            Ok(())
        }
    });
    let error = error.unwrap_err();
    assert!(
        matches!(&error, LogError::Replay { offset, reply, .. }
            if *offset == ends[0] && reply == "ERR unknown"),
        "{error}"
    );
}

#[test]
fn a_database_that_there_is_not_is_refused() {
    for index in ["16", "-1", "x"] {
        let dir = tempfile::tempdir().unwrap();
        let log = format!("*2\r\n$6\r\nselect\r\n${}\r\n{index}\r\n", index.len());
        write(dir.path(), log);
        let error = load_all(dir.path()).unwrap_err();
        assert!(
            matches!(error, LogError::Database { offset: 0, .. }),
            "{error}"
        );
    }
}

#[test]
fn files_of_a_redis_server_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "REDIS0010\u{fa}");
    assert!(matches!(load_all(dir.path()), Err(LogError::Rdb { .. })));

    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("appendonlydir")).unwrap();
    assert!(matches!(
        load_all(dir.path()),
        Err(LogError::TakenOver { .. })
    ));
    assert_eq!(
        files(dir.path()),
        ["appendonlydir"],
        "no empty log beside it"
    );
}

#[test]
fn annotations_of_redis_are_skipped_and_ours_tells_the_size_of_the_rewrite() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = b"#TS:1700000000\r\n".to_vec();
    encode_transaction(&[set(0, "a")], None, &mut log);
    log.extend_from_slice(REWRITTEN);
    let base = log.len() as u64;
    encode_transaction(&[set(0, "b")], None, &mut log);
    write(dir.path(), &log);
    let (loaded, seen) = load_all(dir.path()).unwrap();
    assert_eq!(
        (loaded.base, loaded.len, seen.len()),
        (base, log.len() as u64, 2)
    );
}

#[test]
fn the_log_is_for_its_owner_alone_and_leftovers_go() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(TEMP_FILE), "half").unwrap();
    load_all(dir.path()).unwrap();
    assert_eq!(files(dir.path()), [LOG_FILE]);
    let mode = fs::metadata(dir.path().join(LOG_FILE))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
