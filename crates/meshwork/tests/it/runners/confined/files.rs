//! Files of a run: flags of its mounts, set-id bits, links, limits of disk and memory, and its input.

use std::os::unix::fs::{PermissionsExt, symlink};

use meshwork::runtime::{Confinement, builtin, sandbox_host};
use meshwork_model::outcome::FailureKind;
use meshwork_model::sandbox::{Limit, Profile};

use super::super::LAUNCHED;
use super::super::support::{PATIENCE, failure, output, run_of, script, within};
use super::escape::WITHOUT_NAMESPACES;
use super::{NOBODY, is_root, need_python, need_sandbox, python_in, run_again, run_in};

/// Tries to set bits by each system call that has a mode. Prints what succeeded, and what failed that has to work.
const SET_IDS: &str = r#"
import ctypes, os, sys

folder, calls = sys.stdin.read().split("\n")[0], {}
exec("calls = dict(chmod=90, fchmod=91, fchmodat=268, fchmodat2=452, creat=85, open=2, openat=257, mkdir=83, mkdirat=258, mknod=133, mknodat=259)"
     if os.uname().machine == "x86_64" else
     "calls = dict(fchmod=52, fchmodat=53, fchmodat2=452, openat=56, mkdirat=34, mknodat=33)")
libc, done, wrong = ctypes.CDLL(None, use_errno=True), [], []

def call(number, *args):
    args = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in args]
    return libc.syscall(ctypes.c_long(number), *args)

count = 0
def path():
    global count
    count += 1
    return os.path.join(folder, "file%d" % count).encode()

def made():
    name = path()
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
    return name

def arguments(name, mode):
    tmpfile = 0o20000000 | os.O_DIRECTORY | os.O_WRONLY
    return {
        "chmod": lambda: [(made(), mode)],
        "fchmod": lambda: [(os.open(made(), os.O_RDONLY), mode)],
        "fchmodat": lambda: [(-100, made(), mode)],
        "fchmodat2": lambda: [(-100, made(), mode, 0)],
        "creat": lambda: [(path(), mode)],
        "open": lambda: [(path(), os.O_CREAT | os.O_RDWR, mode), (folder.encode(), tmpfile, mode)],
        "openat": lambda: [(-100, path(), os.O_CREAT | os.O_RDWR, mode), (-100, folder.encode(), tmpfile, mode)],
        "mkdir": lambda: [(path(), mode)],
        "mkdirat": lambda: [(-100, path(), mode)],
        "mknod": lambda: [(path(), 0o100000 | mode, 0)],
        "mknodat": lambda: [(-100, path(), 0o100000 | mode, 0)],
    }[name]()

for name, number in calls.items():
    for bits in (0o4755, 0o2755, 0o6711):
        for args in arguments(name, bits):
            if call(number, *args) >= 0:
                done.append(name)
    for args in arguments(name, 0o1755 if "chmod" in name else 0o755):
        # A file system or a kernel may lack a call.
        if call(number, *args) < 0 and ctypes.get_errno() not in (38, 95, 21):
            wrong.append([name, ctypes.get_errno()])
# Without a new file, the mode has no meaning.
if "open" in calls and call(calls["open"], made(), os.O_RDONLY, 0o6777) < 0:
    wrong.append(["open", ctypes.get_errno()])
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
if libc.syscall(ctypes.c_long(437), ctypes.c_long(-100), path(), how, ctypes.c_long(24)) >= 0:
    done.append("openat2")
result = {"done": sorted(set(done)), "wrong": wrong}
"#;

/// Calls of [`SET_IDS`] that leave no bit: the kernel ignores the bits of a new folder.
const IGNORED: [&str; 2] = ["mkdir", "mkdirat"];

async fn set_ids() {
    for profile in Profile::ALL {
        if sandbox_host().await.unwrap().allows(profile).is_err() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut confinement = Confinement::of(profile);
        confinement
            .write
            .push(folder.path().canonicalize().unwrap());
        let input = confinement.write[0].to_str().unwrap().to_owned();
        let report = run_in(confinement, "python", SET_IDS, &input).await;
        let said: serde_json::Value = serde_json::from_str(output(&report)).unwrap();
        assert_eq!(said["wrong"], serde_json::json!([]), "{profile}");
        let files = std::fs::read_dir(folder.path()).unwrap().flatten();
        let modes = files.map(|file| file.metadata().unwrap().permissions().mode());
        let has_bit = modes.filter(|mode| mode & 0o6000 != 0).count();
        let done = said["done"].as_array().unwrap();
        if profile == Profile::Open {
            assert!(has_bit >= 9 && done.len() > IGNORED.len(), "{said}");
        } else {
            assert_eq!((has_bit, done.len()), (0, 0), "{profile}: {said}");
        }
    }
}

async fn mounts() {
    if sandbox_host().await.unwrap().namespaces.is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [read, write] = ["read", "write"].map(|name| folder.path().join(name));
    for path in [&read, &write] {
        std::fs::create_dir(path).unwrap();
    }
    let text = "
import os
for device in ('/dev/null', '/dev/urandom'):
    open(device, 'w').write('x')
    for change in (lambda: os.chmod(device, 0o666), lambda: os.utime(device), lambda: os.chown(device, 0, 0)):
        try:
            change()
        except OSError:
            continue
        raise SystemExit('a device of the host was changed')
lines = [line.split() for line in open('/proc/self/mountinfo')]
result = [[line[4], line[5]] for line in lines]";
    for profile in [Profile::Standard, Profile::Strict] {
        for disk in [1 << 20, 2 << 30] {
            let mut confinement = Confinement::of(profile);
            confinement.read.push(read.clone());
            confinement
                .write
                .extend([write.clone(), "/dev/urandom".into()]);
            confinement.limits.set(Limit::Disk, Some(disk));
            let report = run_in(confinement, "python", text, "").await;
            let all: Vec<[String; 2]> = serde_json::from_str(output(&report)).unwrap();
            assert!(all.len() > 10, "{all:?}");
            for [path, flags] in &all {
                let has = |flag: &str| flags.split(',').any(|word| word == flag);
                let is_device = path.starts_with("/dev/") && path != "/dev/shm";
                assert!(has("nosuid"), "{path} {flags}");
                assert!(has("nodev") || is_device, "{path} {flags}");
                let is_terminal = path == "/dev/pts";
                assert!(has("ro") || is_terminal || !is_device, "{path} {flags}");
            }
        }
    }
}

async fn limits_of_files() {
    let has_root = sandbox_host().await.unwrap().namespaces.is_ok();
    let text = "
import os, resource
shm = os.statvfs('/dev/shm')
result = [list(resource.getrlimit(resource.RLIMIT_CORE)), shm.f_blocks * shm.f_frsize]";
    let mut confinement = Confinement::of(Profile::Standard);
    confinement.limits.set(Limit::Disk, Some(2 << 30));
    confinement.limits.set(Limit::Memory, Some(256 << 20));
    let report = run_in(confinement.clone(), "python", text, "").await;
    let (core, shm): ([u64; 2], u64) = serde_json::from_str(output(&report)).unwrap();
    assert_eq!(core, [0, 0]);
    assert!(!has_root || shm == 256 << 20, "{shm}");
    // On the disk, where removed files have no name.
    let size = (1 << 30) + (16 << 20);
    confinement
        .limits
        .set(Limit::Disk, Some((1 << 30) + (1 << 20)));
    for folder in ["", "/tmp/"] {
        if !has_root && !folder.is_empty() {
            continue;
        }
        let text = format!(
            "import os, signal\nfile = os.open('{folder}file', os.O_CREAT | os.O_RDWR)\nos.unlink('{folder}file')
os.posix_fallocate(file, 0, {size})\nsignal.pause()"
        );
        let report = run_in(confinement.clone(), "python", &text, "").await;
        let failure = failure(&report);
        assert_eq!(failure.kind, FailureKind::Limit, "{report:?}");
        assert!(failure.message.starts_with("disk limit"), "{failure:?}");
    }
}

/// Runs in processes that the test below starts.
#[tokio::test]
#[ignore = "started by another test"]
async fn on_a_host() {
    set_ids().await;
    mounts().await;
    limits_of_files().await;
    the_input_can_be_opened_by_its_name().await;
}

#[test]
fn files_of_a_run_are_bounded_and_gain_no_privileges() {
    if !LAUNCHED || need_python().is_none() {
        return;
    }
    let hosts = [
        (&[][..], None),
        (&[][..], Some(NOBODY)),
        // Root runs only `open` without namespaces.
        (&WITHOUT_NAMESPACES[..], Some(NOBODY)),
    ];
    // Only root can be both.
    let hosts = if is_root() { &hosts[..] } else { &hosts[..1] };
    for (around, user) in hosts {
        run_again("confined::files::on_a_host", around, *user, "");
    }
}

async fn the_input_can_be_opened_by_its_name() {
    let text = "result = open('/dev/stdin').read() + open('/dev/stdin').read()";
    for profile in Profile::ALL {
        if sandbox_host().await.unwrap().allows(profile).is_ok() {
            let report = run_in(Confinement::of(profile), "python", text, "given ").await;
            assert_eq!(output(&report), "given given ", "{profile}");
            let report = run_in(Confinement::of(profile), "python", text, "").await;
            assert_eq!(output(&report), "", "{profile}");
        }
    }
}

#[tokio::test]
async fn a_script_without_input_has_no_device_of_the_host() {
    need_sandbox!();
    if sandbox_host().await.unwrap().namespaces.is_err() {
        return;
    }
    let text = "import os, stat, sys
assert stat.S_ISCHR(os.fstat(0).st_mode) and sys.stdin.read() == ''
try:
    os.fchmod(0, 0o666)
    result = 'changed'
except OSError:
    result = 'refused'";
    for profile in [Profile::Standard, Profile::Strict] {
        let (mut run, _stop) = run_of(script(text), PATIENCE);
        run.confinement = Confinement::of(profile);
        let report = within(builtin("python").unwrap().run(run)).await;
        assert_eq!(output(&report), "refused", "{profile}");
    }
}

#[tokio::test]
async fn a_path_that_a_run_replaced_by_a_link_is_not_shown() {
    need_sandbox!();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("rw/in")).unwrap();
    std::fs::create_dir(root.join("secret")).unwrap();
    std::fs::write(root.join("secret/file"), "secret").unwrap();
    let mut confinement = Confinement::of(Profile::Standard);
    confinement.read.push(root.join("rw/in"));
    confinement.write.push(root.join("rw"));
    let first = format!(
        "import os\nos.chdir({root:?} + '/rw')\nos.rmdir('in')\nos.symlink({root:?} + '/secret', 'in')\nresult = 1"
    );
    let report = run_in(confinement.clone(), "python", &first, "").await;
    assert_eq!(output(&report), "1");
    let second = format!("result = open({root:?} + '/secret/file').read()");
    let report = run_in(confinement, "python", &second, "").await;
    let refused = failure(&report);
    assert_eq!(refused.kind, FailureKind::NotStarted);
    assert!(
        refused.message.contains("rw/in is a symbolic link"),
        "{refused:?}"
    );
    // In a folder that no run writes, links work.
    symlink(root.join("secret"), root.join("link")).unwrap();
    let mut confinement = Confinement::of(Profile::Standard);
    confinement.read.push(root.join("link"));
    let report = run_in(confinement, "python", &second, "").await;
    assert_eq!(output(&report), "secret");
    let hidden = python_in(Profile::Standard, &second).await;
    assert_eq!(failure(&hidden).kind, FailureKind::Script);
}
