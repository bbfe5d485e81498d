//! The engine and its journal: one append for each command, script and transaction, before any reply; and a journal
//! that refuses writes.

use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, poll};

mod full_log;

use super::{Handle, Session};
use crate::{Reply, store::Effect, world::Journal};

/// Appended effects, and the behaviour of the journal.
#[derive(Default)]
struct Book {
    appended: Vec<Vec<String>>,
    /// True if appends fail.
    full: bool,
    /// True if reserving space fails, too.
    warns: bool,
}

struct Recorder(Arc<Mutex<Book>>);

impl Journal for Recorder {
    fn append(&mut self, effects: &[Effect]) -> io::Result<()> {
        let mut book = self.0.lock().unwrap();
        if book.full {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let line = |effect: &Effect| {
            let words: Vec<_> = effect
                .args
                .iter()
                .map(|arg| String::from_utf8_lossy(arg))
                .collect();
            words.join(" ")
        };
        book.appended.push(effects.iter().map(line).collect());
        Ok(())
    }

    fn make_room(&mut self, _: u64) -> io::Result<()> {
        let book = self.0.lock().unwrap();
        match book.full && book.warns {
            true => Err(io::Error::from(io::ErrorKind::StorageFull)),
            false => Ok(()),
        }
    }

    fn snapshot_taken(&mut self) {}

    fn start_rewrite(&mut self) -> Result<(), String> {
        Err("not this one".to_owned())
    }

    fn info(&self) -> Vec<String> {
        vec!["aof_rewrite_in_progress:0".to_owned()]
    }
}

fn recorded() -> (Handle, Arc<Mutex<Book>>) {
    let (handle, book) = (Handle::in_memory(), Arc::<Mutex<Book>>::default());
    handle.attach(Box::new(Recorder(book.clone())));
    (handle, book)
}

fn words(command: &str) -> Vec<Bytes> {
    command
        .split(' ')
        .map(|word| Bytes::copy_from_slice(word.as_bytes()))
        .collect()
}

fn run(session: &mut Session, command: &str) -> Reply {
    session
        .call(&words(command))
        .now_or_never()
        .expect("it does not wait")
}

fn is_misconf(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with("MISCONF Errors writing to the AOF file: "))
}

#[test]
fn each_command_script_and_transaction_is_one_append() {
    let (handle, book) = recorded();
    let mut one = handle.session();
    run(&mut one, "RPUSH l a b");
    run(&mut one, "GET none");
    let script = "redis.call('set',KEYS[1],'v') redis.call('incr','n') error('late')";
    let eval = [&words("EVAL")[..], &[script.into()], &words("1 k")].concat();
    let reply = one.call(&eval).now_or_never();
    assert!(
        matches!(reply, Some(Reply::Error(_))),
        "and what it wrote before stays"
    );
    for command in ["MULTI", "DEL k", "SELECT 3", "SET x y", "EXEC"] {
        run(&mut one, command);
    }
    let appended = &book.lock().unwrap().appended;
    let lower: Vec<String> = appended
        .iter()
        .map(|unit| unit.join("; ").to_lowercase())
        .collect();
    assert_eq!(lower[0], "rpush l a b");
    assert!(lower[1].starts_with("set k v; "), "{lower:?}");
    assert_eq!(lower[2], "del k; set x y");
    assert_eq!(lower.len(), 3);
}

#[tokio::test]
async fn a_full_journal_stops_writers_and_tells_nobody_of_what_it_lacks() {
    let (handle, book) = recorded();
    let (mut one, mut waiting) = (handle.session(), handle.session());
    let pop = words("BLPOP l 0");
    let mut waits = pin!(waiting.call(&pop));
    assert!(poll!(&mut waits).is_pending());
    run(&mut one, "SET before v");
    book.lock().unwrap().full = true;
    assert!(is_misconf(&run(&mut one, "RPUSH l a")));
    assert!(
        poll!(&mut waits).is_pending(),
        "what is not logged is not handed out"
    );
    for refused in ["SET k v", "DEL before", "GET before", "LLEN l"] {
        assert!(is_misconf(&run(&mut one, refused)), "{refused}");
    }
    assert!(matches!(run(&mut one, "PING"), Reply::Status(_)));
    run(&mut one, "MULTI");
    assert!(is_misconf(&run(&mut one, "SET k v")));
    assert!(matches!(run(&mut one, "EXEC"), Reply::Error(text) if text.starts_with("EXECABORT")));

    book.lock().unwrap().full = false;
    assert_eq!(run(&mut one, "SET k v"), Reply::ok());
    assert_eq!(
        waits.await,
        Reply::Array(["l", "a"].map(|text| Reply::Bulk(text.into())).to_vec())
    );
    let appended: Vec<String> = book
        .lock()
        .unwrap()
        .appended
        .iter()
        .map(|unit| unit.join("; ").to_lowercase())
        .collect();
    assert_eq!(appended, ["set before v", "rpush l a", "lpop l", "set k v"]);
}

#[tokio::test]
async fn a_pop_that_cannot_be_logged_goes_back() {
    let (handle, book) = recorded();
    let (mut one, mut waiting) = (handle.session(), handle.session());
    run(&mut one, "RPUSH other x");
    let pop = words("BLPOP l 0");
    let mut waits = pin!(waiting.call(&pop));
    assert!(poll!(&mut waits).is_pending());
    // The journal fails only for the pop: the push is accepted.
    struct OnceOnly(Recorder);
    impl Journal for OnceOnly {
        fn append(&mut self, effects: &[Effect]) -> io::Result<()> {
            let done = self.0.append(effects);
            self.0.0.lock().unwrap().full = true;
            done
        }
        fn make_room(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn snapshot_taken(&mut self) {}
        fn start_rewrite(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn info(&self) -> Vec<String> {
            Vec::new()
        }
    }
    handle.attach(Box::new(OnceOnly(Recorder(book.clone()))));
    assert_eq!(run(&mut one, "RPUSH l a b"), Reply::Int(2));
    assert!(is_misconf(&waits.await));
    assert!(is_misconf(&run(&mut one, "LRANGE l 0 -1")));
    book.lock().unwrap().full = false;
    let left = run(&mut one, "LRANGE l 0 -1");
    assert_eq!(
        left,
        Reply::Array(["a", "b"].map(|text| Reply::Bulk(text.into())).to_vec())
    );
}

/// Timeout for the end of a runtime, which might hang.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn a_runtime_may_end_while_somebody_waits_and_a_key_has_a_deadline() {
    let handle = Handle::in_memory();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut waiting = handle.session();
    runtime.spawn(async move { waiting.call(&words("BLPOP list 0")).await });
    runtime.block_on(tokio::task::yield_now());
    // Outside of a runtime nothing sweeps: the blocked client removes the key when it ends.
    let mut other = handle.session();
    let set = other.call(&words("SET key value PX 100000")).now_or_never();
    assert_eq!(set, Some(Reply::ok()));
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(runtime);
        ended.send(())
    });
    let outcome = end.recv_timeout(PATIENCE);
    if outcome.is_err() {
        // Its end would also wait for the lock.
        std::mem::forget(other);
        panic!("the runtime does not end: {outcome:?}");
    }
    let get = other.call(&words("GET key")).now_or_never();
    assert_eq!(get, Some(Reply::Bulk("value".into())));
}
