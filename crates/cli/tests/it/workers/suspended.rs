//! A worker that is stopped for longer than its lease between the claim of a job and its start.

use meshwork_test_servers::servers::{RealServer, Tool, need};
use meshwork_test_servers::stalling::Stalling;
use rustix::process::Signal;

use crate::common::{Ground, eventually, json, wait};

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

/// A kind of worker, whose jobs write their input to a file.
struct Kind {
    start: &'static [&'static str],
    enqueue: &'static [&'static str],
}

const KINDS: [Kind; 3] = [
    Kind {
        start: &[
            "worker",
            "--protocol",
            "bananas",
            "--handler",
            "mark=mark.py",
        ],
        enqueue: &["bananas", "submit", "mark"],
    },
    Kind {
        start: &[
            "service",
            "--name",
            "demo",
            "--handler",
            "demo.mark=mark.py",
            "--dialect",
            "streams",
        ],
        enqueue: &["action", "send", "demo.mark"],
    },
    Kind {
        start: &[
            "service",
            "--name",
            "demo",
            "--handler",
            "demo.mark=mark.py",
            "--dialect",
            "lists",
        ],
        enqueue: &["action", "send", "--dialect", "lists", "demo.mark"],
    },
];

/// The server sends a job to the worker, which gets it after another one has run it.
#[test]
fn workers_of_other_systems_begin_no_job_late_either() {
    if need(Tool::Python).is_none() {
        return;
    }
    for kind in KINDS {
        let Some(server) = RealServer::redis().start() else {
            return;
        };
        let ground = Ground::url(server.url());
        let begun = ground.file("begun", "");
        let mark = format!(
            "import sys\nopen({begun:?}, 'a').write(sys.stdin.read() + '\\n')\nprint('{{}}')\n"
        );
        ground.file("mark.py", &mark);
        let began = |text: &str| {
            std::fs::read_to_string(&begun)
                .unwrap()
                .matches(text)
                .count()
        };
        let enqueue = |text: &str| {
            let data = format!("{{\"text\":\"{text}\"}}");
            ground.run(&[kind.enqueue, &[&data]].concat()).ok();
            text.to_owned()
        };
        let start = |ground: &Ground| {
            ground.file("mark.py", &mark);
            let words = ["--concurrency", "1", "--lease", "1", "--json"];
            let mut worker = ground.start(&[kind.start, &words].concat());
            assert_eq!(json(&worker.line())["event"], "listening");
            worker
        };
        for round in 0..ROUNDS {
            let proxy = wait(Stalling::at("held up", &server.url())).unwrap();
            let far = Ground::url(proxy.url());
            let stopped = start(&far);
            let late = enqueue(&format!("held up {round}"));
            wait(proxy.stands_still());
            stopped.signal(Signal::STOP);
            let other = start(&ground);
            eventually("another runs it", || (began(&late) == 1).then_some(()));
            other.stop();
            proxy.goes_on();
            stopped.signal(Signal::CONT);
            let last = enqueue(&format!("last {round}"));
            eventually(&format!("{} goes on", kind.start.join(" ")), || {
                (began(&last) == 1).then_some(())
            });
            stopped.stop();
            assert_eq!(began(&late), 1, "{:?}", kind.start);
        }
    }
}
