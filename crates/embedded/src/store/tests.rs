//! The store by itself: deadlines, scans, versions, snapshots.

use super::*;

fn key(name: &'static str) -> Bytes {
    Bytes::from_static(name.as_bytes())
}

fn put(store: &mut Store, db: usize, name: &'static str) {
    store.put(db, &key(name), Value::Str(key("value")));
}

fn commands(effects: &[Effect]) -> Vec<String> {
    let text = |effect: &Effect| {
        let args: Vec<_> = effect
            .args
            .iter()
            .map(|arg| String::from_utf8_lossy(arg).into_owned())
            .collect();
        format!("{} {}", effect.db, args.join(" "))
    };
    effects.iter().map(text).collect()
}

#[test]
fn a_sweep_removes_what_is_due_in_bounded_steps() {
    let mut store = Store::new();
    for (name, deadline) in [("c", 30), ("a", 10), ("b", 20), ("d", 40)] {
        put(&mut store, 3, name);
        store.set_deadline(3, &key(name), Some(deadline));
    }
    put(&mut store, 3, "stays");
    let mut effects = Vec::new();
    assert_eq!(
        store.expire_some(10, 9, &mut effects),
        Some(11),
        "due after its deadline"
    );
    assert_eq!(store.expire_some(35, 2, &mut effects), Some(31));
    assert_eq!(commands(&effects), ["3 DEL a", "3 DEL b"]);
    assert_eq!(store.expire_some(35, 2, &mut effects), Some(41));
    assert_eq!(store.expire_some(41, 2, &mut effects), None);
    assert_eq!((store.len(3), store.volatile(3)), (1, 0));
}

#[test]
fn nothing_is_due_in_a_replay() {
    let mut store = Store::new();
    put(&mut store, 0, "a");
    store.set_deadline(0, &key("a"), Some(-5));
    assert!(!store.is_due(0, b"a", 0));
    assert_eq!(store.expire_some(0, 9, &mut Vec::new()), Some(0));
    assert!(store.is_due(0, b"a", 1));
}

#[test]
fn a_deadline_goes_with_its_key() {
    let mut store = Store::new();
    for db in [0, 1] {
        put(&mut store, db, "a");
        store.set_deadline(db, &key("a"), Some(5));
    }
    store.remove(0, &key("a"));
    put(&mut store, 0, "a");
    assert_eq!(store.deadline(0, b"a"), None);
    store.flush(1);
    put(&mut store, 1, "a");
    assert_eq!(store.expire_some(100, 9, &mut Vec::new()), None);
    assert_eq!((store.len(0), store.len(1), store.volatile(1)), (1, 1, 0));
}

#[test]
fn a_watched_key_changes_its_version_with_every_write() {
    let mut store = Store::new();
    put(&mut store, 0, "a");
    let version = store.watch(0, &key("a"));
    let absent = store.watch(0, &key("absent"));
    assert_eq!(store.watch(0, &key("a")), version);
    store.touch(0, b"b");
    store.touch(1, b"a");
    assert_eq!(store.version(0, b"a"), Some(version));
    store.flush(0);
    assert_ne!(store.version(0, b"a"), Some(version));
    assert_eq!(
        store.version(0, b"absent"),
        Some(absent),
        "a flush changes only what is there"
    );
    store.unwatch(0, b"a");
    assert!(store.version(0, b"a").is_some(), "it is watched once more");
    store.unwatch(0, b"a");
    assert_eq!(store.version(0, b"a"), None);
}

#[test]
fn a_snapshot_is_commands_of_bounded_length() {
    let mut store = Store::new();
    let list: List = (0..130)
        .map(|index| Bytes::from(index.to_string()))
        .collect();
    store.put(2, &key("list"), Value::List(list));
    let mut zset = Zset::default();
    zset.set(&key("m"), 0.1);
    zset.set(&key("inf"), f64::INFINITY);
    store.put(2, &key("zset"), Value::Zset(Box::new(zset)));
    let mut hash = Hash::default();
    hash.set(&key("f"), key("v"));
    store.put(15, &key("hash"), Value::Hash(hash));
    store.set_deadline(15, &key("hash"), Some(77));
    let effects: Vec<_> = store.snapshot().collect();
    let lengths: Vec<_> = effects.iter().map(|effect| effect.args.len()).collect();
    assert_eq!(lengths, [66, 66, 4, 6, 4, 3]);
    assert_eq!(
        commands(&effects[2..]),
        [
            "2 RPUSH list 128 129",
            "2 ZADD zset 0.10000000000000001 m inf inf",
            "15 HSET hash f v",
            "15 PEXPIREAT hash 77",
        ]
    );
}
