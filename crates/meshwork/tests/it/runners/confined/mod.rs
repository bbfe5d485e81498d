//! Scripts in a sandbox.

mod calls;
mod environment;
mod escape;
#[cfg(feature = "sal")]
mod escape_sal;
mod files;
mod limits;
mod published;
mod works;

use std::os::unix::process::CommandExt;
use std::process::Command;

use meshwork::runtime::{Confinement, builtin};
use meshwork_model::outcome::{FailureKind, Report};
use meshwork_model::sandbox::Profile;

use super::support::{PATIENCE, failure, job, run_of, within};
use meshwork_test_servers::servers::{Tool, need};

/// User without rights.
const NOBODY: u32 = 65534;

/// Runs a script of a type with an input.
async fn run_in(confinement: Confinement, script_type: &str, script: &str, input: &str) -> Report {
    let runtime = builtin(script_type).expect("a runtime that comes with Meshwork");
    let job = job(&[
        ("script", script.as_bytes()),
        ("mw_input", input.as_bytes()),
    ]);
    let (mut run, _stop) = run_of(job, PATIENCE);
    run.confinement = confinement;
    within(runtime.run(run)).await
}

async fn python_in(profile: Profile, script: &str) -> Report {
    run_in(Confinement::of(profile), "python", script, "").await
}

/// Ends a test in a program without a launcher, or on a host without Python.
macro_rules! need_sandbox {
    () => {
        if !super::super::LAUNCHED || super::need_python().is_none() {
            return;
        }
    };
}
use need_sandbox;

fn need_python() -> Option<()> {
    need(Tool::Python).map(drop)
}

/// A program that has not called `init()` cannot confine scripts.
#[tokio::test]
async fn without_a_launcher_a_profile_is_refused() {
    if super::LAUNCHED || need_python().is_none() {
        return;
    }
    for profile in [Profile::Standard, Profile::Strict] {
        let report = python_in(profile, "result = 1").await;
        let failure = failure(&report);
        assert_eq!(failure.kind, FailureKind::Permanent);
        assert!(failure.message.contains("no launcher"), "{failure:?}");
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs an ignored test of this program in a process that `around` starts, as root or as another user.
#[track_caller]
fn run_again(test: &str, around: &[&str], user: Option<u32>, environment: &str) {
    let program = std::env::current_exe().unwrap();
    let mut command = match around {
        [] => Command::new(&program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&program);
            command
        }
    };
    command.args(["--ignored", "--exact", test, "--nocapture"]);
    command.env(escape::ENVIRONMENT, environment);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
