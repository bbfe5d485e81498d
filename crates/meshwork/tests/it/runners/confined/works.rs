//! Work that a sandbox does not hinder.

use std::path::Path;
use std::time::Duration;

use meshwork::runtime::{
    ActionDelivery, ActionMessage, CALLS_VARIABLE, Confinement, StopReason, ask, builtin,
    sandbox_host,
};
use meshwork_model::nooble::Data;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::sandbox::Profile;

use super::super::support::{PATIENCE, failure, output, run_of, script, within};
use super::{need_sandbox, python_in, run_in};

#[tokio::test]
async fn a_script_has_its_input_its_folder_and_its_result() {
    need_sandbox!();
    for profile in Profile::ALL {
        let text = "import os, sys, tempfile
progress(0.5, 'half')
open('here', 'w').write(sys.stdin.read())
with tempfile.TemporaryFile() as file:
    file.write(b'x')
open('/tmp/there', 'w').close()
os.unlink('/tmp/there')
open('/dev/null', 'w').write('x')
os.urandom(1)
result = open('here').read()";
        let report = run_in(Confinement::of(profile), "python", text, "given").await;
        assert_eq!(output(&report), "given", "{profile}");
        let text = r##"{"script": "#!/bin/sh\ncat; pwd >there; ls there", "args": []}"##;
        let report = run_in(Confinement::of(profile), "exec", text, "given ").await;
        assert_eq!(output(&report), "given there\n", "{profile}");
    }
}

#[tokio::test]
async fn named_paths_are_read_and_written() {
    need_sandbox!();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let file = root.join("link/file");
    for profile in [Profile::Standard, Profile::Strict] {
        std::fs::write(root.join("real/file"), "content").unwrap();
        let mut confinement = Confinement::of(profile);
        confinement.read.push(root.join("link"));
        let read = format!("result = open({file:?}).read()");
        let report = run_in(confinement.clone(), "python", &read, "").await;
        assert_eq!(output(&report), "content");
        let write = format!("open({file:?}, 'a').write(' more')");
        let report = run_in(confinement.clone(), "python", &write, "").await;
        assert_eq!(failure(&report).kind, FailureKind::Script);
        confinement.write = std::mem::take(&mut confinement.read);
        let report = run_in(confinement, "python", &write, "").await;
        assert_eq!(output(&report), "");
        let content = std::fs::read_to_string(&file).unwrap();
        assert_eq!(content, "content more");
    }
}

#[tokio::test]
async fn a_path_that_does_not_exist_starts_nothing() {
    need_sandbox!();
    let mut confinement = Confinement::of(Profile::Standard);
    confinement.read.push("/no/such/path".into());
    let report = run_in(confinement, "python", "result = 1", "").await;
    let failure = failure(&report);
    assert_eq!(failure.kind, FailureKind::NotStarted);
    assert!(
        failure.message.contains("--read /no/such/path"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_script_hears_that_it_is_to_end() {
    need_sandbox!();
    for profile in Profile::ALL {
        let text = "import signal, sys
signal.signal(15, lambda *_: sys.exit('heard'))
print('ready', flush=True)
signal.pause()";
        let runtime = builtin("python").unwrap();
        let (mut run, stop) = run_of(script(text), PATIENCE);
        run.confinement = Confinement::of(profile);
        run.grace = PATIENCE;
        let mut log = run.log.drain(10);
        let ended = tokio::spawn(async move { runtime.run(run).await });
        within(log.next()).await.expect("it is ready");
        stop.stop(StopReason::Requested);
        let report = within(ended).await.unwrap();
        let said = String::from_utf8_lossy(&report.stderr);
        assert!(said.contains("heard"), "{profile}: {report:?}");
    }
}

/// Argument of a process that nothing else has.
const UNIQUE: &str = "98765.4321";

fn is_there(word: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = entries.map(|entry| std::fs::read(entry.path().join("cmdline")));
    lines.any(|line| {
        let line = String::from_utf8_lossy(&line.unwrap_or_default()).into_owned();
        line.starts_with("sleep") && line.contains(word)
    })
}

#[tokio::test]
async fn nothing_of_a_run_remains() {
    need_sandbox!();
    let text = format!(
        "import os, subprocess
subprocess.Popen(['sleep', '{UNIQUE}'], start_new_session=True)
os.makedirs('a/b')
os.chmod('a', 0)
result = os.path.dirname(os.getcwd())"
    );
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    for profile in Profile::ALL {
        let report = python_in(profile, &text).await;
        let folder = output(&report);
        assert!(
            !std::path::Path::new(folder).exists(),
            "{profile}: {folder}"
        );
        assert!(!is_there(UNIQUE), "{profile}");
        assert!(!mounts().contains(folder), "{profile}");
    }
}

/// Returns true if a control group of this name exists.
fn has_group(name: &str) -> bool {
    let mut pending = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy() == name {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
        }
    }
    false
}

#[tokio::test]
async fn a_run_is_in_control_groups_until_its_end() {
    need_sandbox!();
    if let Err(reason) = &sandbox_host().await.unwrap().groups {
        eprintln!("skipped: no control groups: {reason}");
        return;
    }
    let text = "result = [line.rsplit('/', 1)[1].strip() for line in open('/proc/self/cgroup') if 'meshwork-run-' in line][0]";
    for profile in Profile::ALL {
        let report = python_in(profile, text).await;
        let name = output(&report);
        assert!(name.starts_with("meshwork-run-"), "{profile}: {name}");
        assert!(!has_group(name), "{profile}: {name}");
    }
}

#[tokio::test]
async fn a_script_that_stops_itself_ends_at_its_deadline() {
    need_sandbox!();
    for profile in Profile::ALL {
        let text = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)";
        let runtime = builtin("python").unwrap();
        let (mut run, _stop) = run_of(script(text), Duration::from_secs(1));
        run.confinement = Confinement::of(profile);
        let report = within(runtime.run(run)).await;
        assert_eq!(failure(&report), &Failure::timeout(), "{profile}");
    }
}

/// Runs a Python script that reads a folder, and checks the message of its failure.
async fn fails_with(profile: Profile, read: &Path, text: &str, parts: [&str; 2]) {
    if sandbox_host().await.unwrap().allows(profile).is_err() {
        return;
    }
    let mut confinement = Confinement::of(profile);
    confinement.read.push(read.to_owned());
    let report = run_in(confinement, "python", text, "").await;
    let message = &failure(&report).message;
    for part in parts {
        assert!(message.contains(part), "{text}: {message}");
    }
    let has_hint = message.contains("sandbox") || message.contains("--input");
    assert!(!parts[1].is_empty() || !has_hint, "{text}: {message}");
}

#[tokio::test]
async fn an_error_at_the_border_ends_with_a_hint() {
    need_sandbox!();
    const NETWORK: &str = "`strict` has no network; `standard` has one";
    let shown = Path::new("/usr");
    let request = |url: &str| format!("from urllib.request import urlopen\nurlopen('{url}')");
    let requests = ["http://127.0.0.1:1/", "http://meshwork.invalid/"].map(request);
    for (profile, text, parts) in [
        (
            Profile::Standard,
            "open('/etc/shadow')",
            [
                "FileNotFoundError",
                "hides /etc/shadow; `--read /etc/shadow`",
            ],
        ),
        (
            Profile::Standard,
            "open('/srv/new.txt', 'w')",
            ["", "hides /srv; `--read /srv` or `--write /srv`"],
        ),
        (
            Profile::Standard,
            "open('/tmp/of-the-host')",
            ["FileNotFoundError", "hides /tmp/of-the-host"],
        ),
        (
            Profile::Standard,
            "open('/nothing-is-here/x')",
            ["FileNotFoundError", ""],
        ),
        (
            Profile::Standard,
            "open('data.csv')",
            ["FileNotFoundError", "pass a file with `--input @FILE`"],
        ),
        (
            Profile::Open,
            "import helper",
            ["ModuleNotFoundError", "put the code into it"],
        ),
        (Profile::Strict, &requests[0], ["", NETWORK]),
        (Profile::Strict, &requests[1], ["", NETWORK]),
    ] {
        fails_with(profile, shown, text, parts).await;
    }
    let exec = r##"{"script": "#!/bin/sh\ntouch /usr/x", "args": []}"##;
    let report = run_in(Confinement::of(Profile::Standard), "exec", exec, "").await;
    let message = &failure(&report).message;
    assert!(
        message.starts_with("exit status 1; the sandbox profile `standard`"),
        "{message}"
    );
}

#[tokio::test]
async fn a_folder_that_is_only_read_says_so() {
    need_sandbox!();
    let shown = tempfile::tempdir().unwrap();
    let folder = shown.path().canonicalize().unwrap();
    let path = folder.display();
    let connected = format!("import sqlite3\nc = sqlite3.connect('{path}/a.db')\n");
    let made = "c.execute('pragma journal_mode=wal')\nc.execute('create table t(x)')\nc.close()";
    output(&python_in(Profile::Open, &format!("{connected}{made}")).await);
    for (text, hint) in [
        (format!("open('{path}/x', 'w')"), "read-only; `--write "),
        (
            format!("{connected}c.execute('select * from t')"),
            "`file:PATH?immutable=1`",
        ),
    ] {
        fails_with(Profile::Standard, &folder, &text, ["Error: ", hint]).await;
    }
}

/// Work with the parts of a system that programs use most.
const PROGRAMS: &str = include_str!("programs.py");

#[tokio::test]
async fn usual_programs_work() {
    need_sandbox!();
    let report = python_in(Profile::Standard, PROGRAMS).await;
    let said = output(&report);
    assert!(said.starts_with("[12,"), "{said}");
    eprintln!("skipped: {said}");
}

/// Paths of the recipes in docs/sandbox.md.
#[tokio::test]
async fn sockets_and_devices_of_named_paths_work() {
    need_sandbox!();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let has_sockets = sandbox_host().await.unwrap().namespaces.is_ok();
    if has_sockets {
        let text = format!(
            "import socket\nsocket.socket(socket.AF_UNIX).connect({socket:?})\nresult = 'connected'"
        );
        let mut confinement = Confinement::of(Profile::Standard);
        confinement.read.push(folder.path().to_owned());
        let report = run_in(confinement, "python", &text, "").await;
        assert_eq!(output(&report), "connected");
    }
    let devices = ["/dev/fuse", "/dev/kvm", "/dev/net/tun"];
    let opens = |device: &&str| {
        let mut file = std::fs::File::options();
        file.read(true).write(true).open(device).is_ok()
    };
    let Some(device) = devices.into_iter().find(opens) else {
        eprintln!("skipped: there is no device");
        return;
    };
    let text = format!("open({device:?}, 'r+b', buffering=0)\nresult = 'opened'");
    let hidden = python_in(Profile::Standard, &text).await;
    assert_eq!(failure(&hidden).kind, FailureKind::Script);
    let mut confinement = Confinement::of(Profile::Standard);
    confinement.write.push(device.into());
    let report = run_in(confinement, "python", &text, "").await;
    assert_eq!(output(&report), "opened");
}

/// Checks that the worker answers requests of scripts and of programs.
pub(super) async fn requests_are_answered(profile: Profile) {
    let answer = "works only in jobs of Meshwork";
    let text = "try: add_child('1')\nexcept RuntimeError as error: result = str(error)";
    let report = python_in(profile, text).await;
    assert!(output(&report).contains(answer), "{profile}: {report:?}");
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nexec {} --ignored --exact confined::works::asks --nocapture",
        program.display()
    );
    let text = serde_json::json!({ "script": script, "args": [] }).to_string();
    let mut confinement = Confinement::of(profile);
    confinement.read.push(program);
    let report = run_in(confinement, "exec", &text, "").await;
    assert!(
        output(&report).contains("answer: "),
        "{profile}: {report:?}"
    );
}

/// Runs in a sandbox, as a program that sends an action.
#[tokio::test]
#[ignore = "started by another test"]
async fn asks() {
    let socket = std::env::var_os(CALLS_VARIABLE).unwrap();
    let action = ActionMessage {
        delivery: ActionDelivery::Call,
        action_type: "service.operation".to_owned(),
        data: Data::empty(),
        timeout: None,
        callback: None,
        remember: serde_json::Value::Null,
    };
    let answer = ask(Path::new(&socket), action).await.unwrap();
    println!("answer: {}", answer.error.unwrap());
}
