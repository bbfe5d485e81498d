//! A log that refuses writes: unlogged changes are not visible to any command.

use super::*;
use crate::session_command::command_table;

/// Commands that run while a write is in memory and not in the log; all others are refused.
const GOES_ON: [&str; 11] = [
    "PING",
    "ECHO a",
    "TIME",
    "INFO",
    "CONFIG GET appendonly",
    "CLIENT ID",
    "SELECT 0",
    "HELLO 2",
    "COMMAND COUNT",
    "SCRIPT EXISTS a",
    "UNWATCH",
];

/// Groups of commands that read no data.
const SESSION: [&str; 18] = [
    "auth",
    "bgrewriteaof",
    "client",
    "command",
    "config",
    "echo",
    "hello",
    "info",
    "lastsave",
    "ping",
    "pubsub",
    "quit",
    "reset",
    "role",
    "script",
    "select",
    "time",
    "unwatch",
];

/// Returns an engine whose log has refused `write`.
fn refusing(write: &str) -> (Handle, Session, Arc<Mutex<Book>>) {
    let (handle, book) = recorded();
    let mut one = handle.session();
    run(&mut one, "SET before v");
    book.lock().unwrap().full = true;
    assert!(is_misconf(&run(&mut one, write)));
    (handle, one, book)
}

/// Sends `EVAL` with a text that has spaces.
fn eval(session: &mut Session, script: &str) -> Reply {
    let args = [
        Bytes::from_static(b"EVAL"),
        script.to_owned().into(),
        "0".into(),
    ];
    session.call(&args).now_or_never().expect("no script waits")
}

#[test]
fn a_repetition_is_not_told_that_it_was_done() {
    let (handle, book) = recorded();
    let mut one = handle.session();
    book.lock().unwrap().full = true;
    let enqueue = "if redis.call('exists','job') == 1 then return 'exists' end \
                   redis.call('set','job','a') return 'stored'";
    for _ in 0..3 {
        assert!(is_misconf(&eval(&mut one, enqueue)));
    }
    book.lock().unwrap().full = false;
    assert_eq!(eval(&mut one, enqueue), Reply::Bulk("exists".into()));
    assert_eq!(
        book.lock().unwrap().appended.len(),
        1,
        "and now that is true"
    );
}

#[test]
fn every_command_that_looks_at_data_is_refused() {
    let (handle, mut one, _book) = refusing("SET k v");
    let listens = |name: &str| name.ends_with("subscribe");
    for info in command_table() {
        let group = info.name.split('|').next().unwrap();
        let ends = ["multi", "exec", "discard"].contains(&info.name);
        if info.container || ends || listens(info.name) || SESSION.contains(&group) {
            continue;
        }
        let needs = usize::try_from(info.arity.unsigned_abs()).unwrap();
        let mut args: Vec<Bytes> = info
            .name
            .split('|')
            .map(|word| word.to_owned().into())
            .collect();
        args.resize(needs.max(args.len()), Bytes::from_static(b"0"));
        let reply = one.call(&args).now_or_never().unwrap();
        assert!(is_misconf(&reply), "{}: {reply:?}", info.name);
    }
    for command in GOES_ON {
        let reply = run(&mut one, command);
        assert!(!matches!(reply, Reply::Error(_)), "{command}: {reply:?}");
    }
    let mut listener = handle.session();
    assert_eq!(run(&mut listener, "SUBSCRIBE news"), Reply::Nothing);
}

#[test]
fn a_transaction_that_was_queued_before_is_refused() {
    let (handle, book) = recorded();
    let (mut reads, mut watches) = (handle.session(), handle.session());
    for command in ["MULTI", "GET k"] {
        run(&mut reads, command);
    }
    for command in ["WATCH k", "MULTI"] {
        run(&mut watches, command);
    }
    book.lock().unwrap().full = true;
    assert!(is_misconf(&run(&mut handle.session(), "SET k v")));
    for session in [&mut reads, &mut watches] {
        let reply = run(session, "EXEC");
        assert!(
            matches!(&reply, Reply::Error(text) if text.starts_with("EXECABORT") && text.contains("MISCONF")),
            "{reply:?}"
        );
    }
}

#[test]
fn a_message_comes_after_the_writes_that_it_belongs_to() {
    let (handle, book) = recorded();
    let (mut one, mut listener) = (handle.session(), handle.session());
    run(&mut listener, "SUBSCRIBE news");
    listener.try_push().expect("the confirmation");
    book.lock().unwrap().full = true;
    let script = "local n = redis.call('publish','news','done') redis.call('set','k','v') return n";
    assert!(is_misconf(&eval(&mut one, script)));
    assert_eq!(
        listener.try_push(),
        None,
        "nobody learns of what is not logged"
    );
    assert!(is_misconf(&run(&mut one, "PUBLISH news later")));
    book.lock().unwrap().full = false;
    run(&mut one, "GET k");
    assert!(listener.try_push().is_some(), "now it is");
    assert_eq!(eval(&mut one, script), Reply::Int(1));
    for command in ["MULTI", "PUBLISH news too", "EXEC"] {
        run(&mut one, command);
    }
    assert!(listener.try_push().is_some() && listener.try_push().is_some());
    assert_eq!(listener.try_push(), None);
}

#[test]
fn a_log_that_says_before_that_it_has_no_room_stops_no_reader() {
    let (handle, book) = recorded();
    let mut one = handle.session();
    run(&mut one, "SET before v");
    {
        let mut book = book.lock().unwrap();
        (book.full, book.warns) = (true, true);
    }
    assert!(is_misconf(&run(&mut one, "SET k v")));
    let late = "redis.call('set','k','v') return 1";
    assert!(matches!(eval(&mut one, late), Reply::Error(text) if text.contains("MISCONF")));
    run(&mut one, "MULTI");
    assert!(is_misconf(&run(&mut one, "SET k v")));
    run(&mut one, "DISCARD");
    for (read, value) in [
        ("GET before", Reply::Bulk("v".into())),
        ("EXISTS k", Reply::Int(0)),
    ] {
        assert_eq!(run(&mut one, read), value);
    }
    assert_eq!(
        eval(&mut one, "return redis.call('get','before')"),
        Reply::Bulk("v".into())
    );
    let info = format!("{:?}", run(&mut one, "INFO persistence"));
    assert!(info.contains("aof_last_write_status:err"), "{info}");
    book.lock().unwrap().full = false;
    assert_eq!(run(&mut one, "SET k v"), Reply::ok());
    assert_eq!(
        book.lock().unwrap().appended.len(),
        2,
        "nothing had been done"
    );
}

#[tokio::test]
async fn who_waits_goes_on_waiting_while_the_log_takes_nothing() {
    let (handle, book) = recorded();
    let (mut one, mut first, mut second) = (handle.session(), handle.session(), handle.session());
    let (a, b) = (words("BLPOP a 0"), words("BLPOP b 0"));
    let (mut first, mut second) = (pin!(first.call(&a)), pin!(second.call(&b)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    book.lock().unwrap().full = true;
    for command in ["MULTI", "RPUSH a x", "RPUSH b y"] {
        run(&mut one, command);
    }
    assert!(is_misconf(&run(&mut one, "EXEC")));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    book.lock().unwrap().full = false;
    run(&mut one, "EXISTS a");
    let pair = |key: &'static str, value: &'static str| {
        Reply::Array([key, value].map(|text| Reply::Bulk(text.into())).to_vec())
    };
    assert_eq!(
        (first.await, second.await),
        (pair("a", "x"), pair("b", "y"))
    );
}

#[tokio::test]
async fn what_waits_for_the_log_gets_there_without_another_call() {
    let (handle, book) = recorded();
    let mut one = handle.session();
    run(&mut one, "SET lives v PX 100000000");
    book.lock().unwrap().full = true;
    assert!(is_misconf(&run(&mut one, "RPUSH l a")));
    book.lock().unwrap().full = false;
    // The task that removes expired keys runs once a second at the latest.
    let logged = async {
        while book.lock().unwrap().appended.len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, logged).await;
    outcome.expect("the log gets it");
}
