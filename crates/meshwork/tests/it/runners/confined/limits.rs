//! Limits of runs, and the resources that they have used.

use std::sync::Arc;
use std::time::Duration;

use meshwork::model::outcome::FailureKind;
use meshwork::model::sandbox::Usage;
use meshwork::model::sandbox::{Limit, Profile};
use meshwork::runtime::{Confinement, builtin};

use super::super::support::{PATIENCE, failure, output, run_of, script, within};
use super::{need_sandbox, python_in};

fn limited(profile: Profile, limit: Limit, value: u64) -> Confinement {
    let mut confinement = Confinement::of(profile);
    confinement.limits.set(limit, Some(value));
    confinement
}

async fn message(confinement: Confinement, text: &str) -> String {
    let runtime = builtin("python").unwrap();
    let (mut run, _stop) = run_of(script(text), PATIENCE);
    run.confinement = confinement;
    let report = within(runtime.run(run)).await;
    let failure = failure(&report);
    assert_eq!(failure.kind, FailureKind::Limit);
    failure.message.clone()
}

#[tokio::test]
async fn a_run_that_exceeds_a_limit_ends_by_its_name() {
    need_sandbox!();
    let fills = "import time
with open('file', 'wb') as file:
    while True:
        try:
            file.write(b'x' * (1 << 20))
            file.flush()
        except OSError:
            pass
        time.sleep(0.001)";
    for (limit, value, text, expected) in [
        (
            Limit::Memory,
            256 << 20,
            "all = []\nwhile True:\n    all.append(b'x' * (16 << 20))",
            "memory limit 256 MiB exceeded",
        ),
        (
            Limit::Memory,
            64 << 20,
            "bytes(bytearray(10 << 30))",
            "memory limit 64 MiB exceeded",
        ),
        (
            Limit::Cpu,
            500,
            "while True:\n    pass",
            "cpu limit 500 ms exceeded",
        ),
        (
            Limit::Processes,
            8,
            "import os, time\nwhile os.fork():\n    time.sleep(0.005)\ntime.sleep(1000)",
            "processes limit 8 exceeded",
        ),
        (Limit::Disk, 8 << 20, fills, "disk limit 8 MiB exceeded"),
        (
            Limit::Output,
            1 << 20,
            "while True:\n    print('x' * 1000)",
            "output limit 1 MiB exceeded",
        ),
    ] {
        for profile in Profile::ALL {
            let said = message(limited(profile, limit, value), text).await;
            assert_eq!(said, expected, "{profile}");
        }
    }
}

#[tokio::test]
#[ignore = "it can stall the host: the launcher counts the processes 20 times a second, and a bomb grows faster"]
async fn a_fork_bomb_ends_only_its_run() {
    need_sandbox!();
    let neighbour = tokio::spawn(async {
        let text = "import time\ntime.sleep(1)\nresult = 'done'";
        python_in(Profile::Standard, text).await
    });
    let bomb =
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass";
    let said = message(limited(Profile::Standard, Limit::Processes, 64), bomb).await;
    assert_eq!(said, "processes limit 64 exceeded");
    assert_eq!(output(&neighbour.await.unwrap()), "done");
}

#[tokio::test]
async fn open_files_of_a_process_are_limited() {
    need_sandbox!();
    for profile in Profile::ALL {
        let text = "import resource\nresult = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nopen('/dev/null')";
        let runtime = builtin("python").unwrap();
        let (mut run, _stop) = run_of(script(text), PATIENCE);
        run.confinement = limited(profile, Limit::Files, 64);
        let report = within(runtime.run(run)).await;
        assert_eq!(output(&report), "64", "{profile}");
    }
}

#[tokio::test]
async fn the_usage_of_all_processes_is_told() {
    need_sandbox!();
    for profile in Profile::ALL {
        let text = "import os, time
keep = b'x' * (64 << 20)
pid = os.fork()
if pid == 0:
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    open('file', 'wb').write(b'x' * (3 << 20))
    os._exit(0)
os.waitpid(pid, 0)";
        let runtime = builtin("python").unwrap();
        let (mut run, _stop) = run_of(script(text), PATIENCE);
        run.confinement = Confinement::of(profile);
        let usage = Arc::clone(&run.usage);
        output(&within(runtime.run(run)).await);
        let usage: Usage = *usage.get().unwrap();
        let cpu = Duration::from_millis(usage.user_ms + usage.system_ms);
        assert!(cpu >= Duration::from_millis(300), "{profile}: {usage:?}");
        assert!(usage.peak_memory >= 64 << 20, "{profile}: {usage:?}");
        assert!(usage.peak_memory < 1 << 30, "{profile}: {usage:?}");
        let written = (3 << 20)..(4 << 20);
        assert!(written.contains(&usage.written), "{profile}: {usage:?}");
    }
}
