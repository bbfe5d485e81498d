//! The log of a worker whose data is away or full: a line for each change, not for each try.

use crate::common::{Ground, Running, json};
use meshwork_test_servers::SmallDisk;
use meshwork_test_servers::servers::RealServer;

/// Calls that fail before the data is well again.
const FAILURES: usize = 50;
/// The most lines from `warn` on: one for the first error of each kind, and the recovery.
const MOST: usize = 6;
/// The size of a disk that is filled, in bytes.
const DISK: u64 = 2 * 1024 * 1024;
/// The size of a large script, in bytes.
const LARGE: usize = 50_000;

/// A worker of two types, whose repeated failures can be counted, but are no warnings.
fn worker(ground: &Ground) -> Running {
    let args = ["worker", "--json", "--type", "osis,python", "--lease", "1"];
    let mut command = ground.command(&args);
    command.env("RUST_LOG", "warn,meshwork_broker::outages=debug");
    let mut worker = Running::start(command);
    assert_eq!(json(&worker.line())["event"], "listening");
    worker
}

/// Collects the lines from `warn` on, until `done` says so of a line of any level.
fn warnings(worker: &mut Running, warnings: &mut Vec<String>, mut done: impl FnMut(&str) -> bool) {
    loop {
        let line = worker.said();
        if !line.contains(" DEBUG ") {
            warnings.push(line.clone());
        }
        if done(&line) {
            return;
        }
    }
}

/// Waits until enough calls have failed, mends the data, waits for the recovery, and checks the log.
fn is_quiet(mut worker: Running, mend: impl FnOnce()) -> Vec<String> {
    let (mut logged, mut failures) = (Vec::new(), 0);
    warnings(&mut worker, &mut logged, |line| {
        failures += usize::from(line.contains("server call failed"));
        failures >= FAILURES
    });
    mend();
    let recovered = |line: &str| line.contains("server calls recovered");
    warnings(&mut worker, &mut logged, recovered);
    assert!(logged.len() <= MOST, "{logged:#?}");
    let last = logged.last().unwrap();
    let count = last.split("errors=").nth(1).unwrap().split(' ').next();
    assert!(
        count.unwrap().parse::<usize>().unwrap() >= FAILURES,
        "{last}"
    );
    worker.stop();
    logged
}

#[test]
fn a_server_that_is_gone() {
    let Some(mut server) = RealServer::redis().append_only().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let worker = worker(&ground);
    server.kill9();
    is_quiet(worker, || server.start_again());
}

#[test]
fn a_server_whose_memory_is_full() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let worker = worker(&ground);
    let memory = |most: &str| {
        server
            .say::<()>(&["CONFIG", "SET", "maxmemory", most])
            .unwrap();
    };
    memory("1");
    let logged = is_quiet(worker, || memory("0"));
    assert!(
        logged.iter().any(|line| line.contains("memory is full")),
        "{logged:#?}"
    );
}

/// Submits jobs until one is refused: the log has set some space aside.
fn use_up_the_reserve(ground: &Ground) {
    ground.file("large.rhai", format!("// {}", "x".repeat(LARGE)));
    for _ in 0..DISK / LARGE as u64 {
        let mut submit = ground.start(&["job", "submit", "large.rhai"]);
        if let Some(said) = submit.says() {
            assert!(said.contains("MISCONF"), "{said}");
            return submit.kill();
        }
    }
    panic!("the disk is not full");
}

#[test]
fn an_engine_whose_disk_is_full() {
    let Some(disk) = SmallDisk::mount("an_engine_whose_disk_is_full", DISK) else {
        return;
    };
    let ground = Ground::directory(disk.path().join("data"));
    let worker = worker(&ground);
    disk.fill();
    use_up_the_reserve(&ground);
    is_quiet(worker, || disk.free());
}

#[test]
fn an_owner_that_dies() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let owner = ground.worker(&["--type", "osis"]);
    let mut worker = worker(&ground);
    owner.kill();
    let mut logged = Vec::new();
    let recovered = |line: &str| line.contains("server calls recovered");
    warnings(&mut worker, &mut logged, recovered);
    assert!(logged.len() <= 3, "{logged:#?}");
    worker.stop();
}

/// A check every 15 s; the first one is at once.
#[test]
fn a_worker_says_that_the_server_evicts_by_now() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let mut worker = ground.worker(&["--type", "osis"]);
    let set = ["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"];
    server.say::<()>(&set).unwrap();
    let said = std::iter::from_fn(|| worker.says()).find(|line| line.contains("may delete jobs"));
    assert!(said.unwrap().contains("allkeys-lru"));
    worker.kill();
}
