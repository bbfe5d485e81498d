//! Secrets in a worker's environment: scripts cannot read them from the system.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Ground, Running, json};
use meshwork_test_servers::servers::{Tool, need};
use rustix::process::geteuid;
use serde_json::{Value, json as value};

const SECRET: &str = "geheim-4711";
/// A user that owns nothing.
const NOBODY: &str = "65534";

/// Looks at all processes above it, up to the first one of the system.
const SEARCH: &str = "
import os
shown, readable, chain = [], [], []
pid = os.getppid()
while pid > 1:
    chain.append(pid)
    for name in ('environ', 'cmdline'):
        try:
            with open('/proc/%d/%s' % (pid, name), 'rb') as file:
                if b'geheim-4711' in file.read():
                    shown.append([pid, name])
        except PermissionError:
            pass
    for name in ('environ', 'mem', 'fd/0'):
        try:
            open('/proc/%d/%s' % (pid, name), 'rb').close()
            readable.append([len(chain), name])
        except OSError:
            pass
    with open('/proc/%d/stat' % pid) as file:
        pid = int(file.read().rpartition(')')[2].split()[1])
result = {'shown': shown, 'readable': [r for r in readable if r[0] <= 2], 'above': len(chain)}
";

/// A worker's command, whose environment holds secrets; none without what the test needs.
fn worker() -> Option<(Ground, Command)> {
    need(Tool::Python)?;
    let ground = Ground::redis()?;
    ground.raw(&format!("ACL SETUSER mwsecret on >{SECRET} ~* &* +@all"));
    let mut worker = ground.command(&["worker", "--json", "--type", "python"]);
    let url = worker.get_envs().find(|(name, _)| *name == "REDIS_URL");
    let url = url.unwrap().1.unwrap().to_str().unwrap();
    let login = format!("redis://mwsecret:{SECRET}@");
    let url = url.replacen("redis://", &login, 1);
    worker.env("REDIS_URL", url);
    worker.env("MESHWORK_GATEWAY_TOKEN", SECRET);
    worker.env("CLOUD_API_KEY", SECRET);
    Some((ground, worker))
}

fn result_of(ground: &Ground, worker: Command, script: &str) -> Value {
    let mut worker = Running::start(worker);
    assert_eq!(json(&worker.line())["event"], "listening");
    ground.file("job.py", script);
    let id = ground.run(&["job", "submit", "job.py"]).ok().stdout;
    let job = ground
        .run(&["job", "wait", id.trim(), "--json"])
        .ok()
        .json();
    worker.stop();
    job["output"].clone()
}

#[test]
fn a_script_finds_no_secret_in_any_process_above_it() {
    let Some((ground, worker)) = worker() else {
        return;
    };
    let found = result_of(&ground, worker, SEARCH);
    assert_eq!(found["shown"], value!([]), "{found}");
    assert!(found["above"].as_u64() > Some(2), "{found}");
}

#[test]
fn a_script_of_an_ordinary_user_reads_no_process_of_its_worker() {
    let Some((ground, mut worker)) = worker() else {
        return;
    };
    if geteuid().is_root() {
        let python = ["/usr/bin/python3", "/usr/local/bin/python3"];
        let python = python.into_iter().find(|path| Path::new(path).exists());
        let (Some(python), true) = (python, Path::new("/usr/bin/setpriv").exists()) else {
            return;
        };
        let (program, folder) = (ground.path("meshwork"), ground.path("tmp"));
        fs::copy(worker.get_program(), &program).unwrap();
        fs::create_dir(&folder).unwrap();
        for path in [&ground.path("."), &program, &folder] {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        let mut nobody = Command::new("/usr/bin/setpriv");
        nobody.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        nobody.arg(program).args(worker.get_args()).env_clear();
        nobody.envs(
            worker
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        nobody.env("TMPDIR", folder).env("MESHWORK_PYTHON", python);
        nobody.current_dir(ground.path("."));
        worker = nobody;
    }
    let found = result_of(&ground, worker, SEARCH);
    assert_eq!(found["shown"], value!([]), "{found}");
    assert_eq!(found["readable"], value!([]), "{found}");
}

#[test]
fn what_a_worker_starts_inherits_no_secret() {
    let Some((ground, mut worker)) = worker() else {
        return;
    };
    let shim = ground.file(
        "python",
        "#!/bin/sh\nenv > inherited\nexec python3 \"$@\"\n",
    );
    fs::set_permissions(&shim, Permissions::from_mode(0o755)).unwrap();
    worker.env("MESHWORK_PYTHON", shim);
    result_of(&ground, worker, "result = 1");
    let inherited = fs::read_to_string(ground.path("inherited")).unwrap();
    assert!(inherited.contains("PATH=") && !inherited.contains(SECRET));
}

#[test]
fn secrets_are_used_and_not_shown() {
    let Some((ground, worker)) = worker() else {
        return;
    };
    for args in [
        &["--help"][..],
        &["worker", "--help"],
        &["action", "gateway", "--help"],
        &["run", "-h"],
    ] {
        let mut help = ground.command(args);
        help.envs(
            worker
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let help = Running::start(help).ended().ok();
        // The options of the connection are in the help of the whole command.
        let is_whole = args.len() == 1;
        assert_eq!(
            help.stdout.contains("REDIS_URL"),
            is_whole,
            "{}",
            help.stdout
        );
        assert!(!help.stdout.contains(SECRET) && !help.stderr.contains(SECRET));
    }
    // Handed to a script by its name.
    ground.file(
        "job.py",
        "import os\nresult = len(os.environ['CLOUD_API_KEY'])",
    );
    let mut run = ground.command(&["run", "job.py", "--env", "CLOUD_API_KEY"]);
    run.envs(
        worker
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let done = Running::start(run).ended().ok();
    assert_eq!(done.stdout.trim(), SECRET.len().to_string());
}
