//! A worker that is stopped for longer than its lease between the claim of a job and its start.

use meshwork_test_servers::servers::RealServer;
use meshwork_test_servers::stalling::Stalling;
use rustix::process::Signal;

use crate::common::{Ground, wait};

/// Rounds of a race: what the server had sent meanwhile arrives all at once.
const ROUNDS: usize = 5;
const WORKER: [&str; 6] = ["--type", "exec", "--concurrency", "1", "--lease", "1"];

#[test]
fn a_worker_that_was_stopped_begins_no_job_that_another_has_run() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let begun = ground.path("begun");
    ground.file("first.sh", "#!/bin/sh\necho held up");
    ground.file(
        "second.sh",
        format!("#!/bin/sh\necho $JOB_ID >> {}", begun.display()),
    );
    let enqueue = |args: &[&str]| ground.run(&[&["job", "enqueue"], args].concat()).ok();
    let ends = |id: &str| ground.run(&["job", "wait", id]).ok();
    for round in 0..ROUNDS {
        let [first, second, last] = ["first", "second", "last"].map(|id| format!("{id}{round}"));
        let other = ground.worker(&WORKER);
        enqueue(&["first.sh", "--id", &first]);
        ends(&first);
        other.stop();
        // The worker has claimed the second job when it reads the result of the first.
        let proxy = wait(Stalling::at("held up", &server.url())).unwrap();
        let far = Ground::url(proxy.url());
        let stopped = far.worker(&WORKER);
        enqueue(&["second.sh", "--id", &second, "--depends-on", &first]);
        wait(proxy.stands_still());
        stopped.signal(Signal::STOP);
        let other = ground.worker(&WORKER);
        ends(&second);
        other.stop();
        proxy.goes_on();
        stopped.signal(Signal::CONT);
        // It has one slot, so a late start of the second job would come before the last one.
        enqueue(&["first.sh", "--id", &last]);
        ends(&last);
        stopped.stop();
        let begun = std::fs::read_to_string(&begun).unwrap();
        assert_eq!(
            begun.lines().filter(|id| *id == second).count(),
            1,
            "{begun}"
        );
    }
}
