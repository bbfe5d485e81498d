//! Attempts to leave a sandbox, in one table. Each attempt succeeds in the profile `open`, so that the table can fail.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command};

use meshwork::runtime::{Confinement, sandbox_host};
use meshwork_model::outcome::{FailureKind, Report};
use meshwork_model::sandbox::Profile;
use tempfile::TempDir;

use super::super::LAUNCHED;
use super::super::support::{failure, output};
use super::works::requests_are_answered;
use super::{NOBODY, is_root, run_again, run_in};

/// Variable that describes the process in which [`attempts`] runs.
pub(super) const ENVIRONMENT: &str = "MESHWORK_TEST_ENVIRONMENT";

const PYTHON: &str = include_str!("attempts.py");
const SHELL: &str = include_str!("attempts.sh");

/// Right that an attempt needs to succeed in `open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// The user 0.
    User,
    /// Root with all capabilities.
    Root,
    /// Another user than 0, who gains privileges by programs of user 0.
    Privileges,
    /// User namespaces.
    Namespaces,
    /// A host on which this exists.
    Perhaps,
    /// Attributes of files on the temporary file system.
    Attributes,
}
use Needs::{Attributes, Namespaces, Nothing, Perhaps, Privileges, Root, User};

/// Profiles in which an attempt succeeds, besides `open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Succeeds {
    Never,
    /// In `standard` without namespaces: a gap in docs/sandbox.md.
    WithoutNamespaces,
    /// In `standard`.
    InStandard,
}
use Succeeds::{InStandard, Never, WithoutNamespaces};

/// An attempt of `attempts.py`.
const ATTEMPTS: &[(&str, Needs, Succeeds)] = &[
    ("read_by_path", Nothing, Never),
    ("read_by_symlink", Nothing, Never),
    ("read_by_parents", Nothing, Never),
    ("read_by_hard_link", Nothing, Never),
    ("read_by_race", Nothing, Never),
    ("read_through_worker_root", Nothing, Never),
    ("read_shadow", User, Never),
    ("list_outside", Nothing, Never),
    ("stat_outside", Nothing, WithoutNamespaces),
    ("write_outside", Nothing, Never),
    ("append_outside", Nothing, Never),
    ("truncate_outside", Nothing, Never),
    ("make_folder_outside", Nothing, Never),
    ("rename_outside", Nothing, Never),
    ("remove_outside", Nothing, Never),
    ("chmod_outside", Nothing, WithoutNamespaces),
    ("chown_outside", Nothing, WithoutNamespaces),
    ("utime_outside", Nothing, WithoutNamespaces),
    ("setxattr_outside", Attributes, WithoutNamespaces),
    ("write_system", User, Never),
    ("write_sysctl", User, Never),
    ("write_sysrq", Perhaps, Never),
    ("environment_of_worker", Nothing, Never),
    ("environment_of_victim", Nothing, Never),
    ("environment_of_first", Perhaps, Never),
    ("memory_of_victim", Nothing, Never),
    ("descriptors_of_worker", Nothing, Never),
    ("command_line_of_victim", Nothing, WithoutNamespaces),
    ("signal_victim", Nothing, Never),
    ("signal_worker", Nothing, Never),
    ("signal_group_of_worker", Nothing, Never),
    ("stop_launcher", Nothing, Never),
    ("trace_victim", Nothing, Never),
    ("vm_read_victim", Nothing, Never),
    ("unix_socket", Nothing, Never),
    ("unix_datagram_of_pair", Nothing, Never),
    ("abstract_socket", Nothing, Never),
    ("netlink_socket", Nothing, Never),
    ("raw_socket", Root, Never),
    ("packet_socket", Root, Never),
    ("vsock_socket", Perhaps, Never),
    ("tcp", Nothing, InStandard),
    ("udp", Nothing, InStandard),
    ("io_uring", Perhaps, Never),
    ("bpf", Root, Never),
    ("keyring", Nothing, Never),
    ("perf", Root, Never),
    ("user_faults", Root, Never),
    ("file_handle", Root, Never),
    ("user_namespace", Namespaces, Never),
    ("user_namespace_by_clone3", Namespaces, Never),
    ("mount_namespace", Root, Never),
    ("mount", Root, Never),
    ("change_root", Root, Never),
    ("make_device", Root, Never),
    ("set_clock", Root, Never),
    ("set_host_name", Root, Never),
    ("other_user", Root, Never),
    ("set_user_id", Privileges, Never),
];

/// Attempts of `attempts.sh`, of the same names.
const IN_SHELL: &[&str] = &[
    "read_by_path",
    "read_by_symlink",
    "read_by_parents",
    "read_by_hard_link",
    "read_through_worker_root",
    "read_shadow",
    "list_outside",
    "stat_outside",
    "write_outside",
    "append_outside",
    "make_folder_outside",
    "chmod_outside",
    "utime_outside",
    "write_system",
    "environment_of_worker",
    "environment_of_victim",
    "environment_of_first",
    "command_line_of_victim",
    "signal_victim",
    "signal_worker",
    "tcp",
    "udp",
    "user_namespace",
    "mount",
    "make_device",
    "set_clock",
];

/// The process that runs the attempts.
#[derive(Debug, Clone, Copy)]
struct Environment {
    is_user_0: bool,
    has_capabilities: bool,
    has_namespaces: bool,
}

impl Environment {
    fn of(text: &str) -> Self {
        Self {
            is_user_0: text.contains("root"),
            has_capabilities: text.contains("capabilities"),
            has_namespaces: text.contains("namespaces"),
        }
    }

    /// Returns true if an attempt has to succeed in `open`.
    fn allows(self, needs: Needs) -> bool {
        match needs {
            Nothing => true,
            User => self.is_user_0,
            Root => self.has_capabilities,
            // The environment without namespaces has no new privileges either.
            Privileges => !self.is_user_0 && self.has_namespaces,
            Namespaces => self.has_namespaces,
            Perhaps | Attributes => false,
        }
    }

    fn expects(self, profile: Profile, needs: Needs, succeeds: Succeeds) -> bool {
        self.allows(needs)
            && match (profile, succeeds) {
                (Profile::Open, _) | (Profile::Standard, InStandard) => true,
                (Profile::Standard, WithoutNamespaces) => !self.has_namespaces,
                (Profile::Standard, Never) | (Profile::Strict, _) => false,
            }
    }
}

/// Targets of the attempts.
struct Targets {
    outside: TempDir,
    _socket: UnixListener,
    _datagrams: UnixDatagram,
    _abstract: UnixListener,
    tcp: TcpListener,
    udp: UdpSocket,
    victim: Child,
    name: String,
}

impl Targets {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        let at = |name: &str| outside.path().join(name);
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("filled"), "filled").unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o700)).unwrap();
        let name = format!("meshwork-escape-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self {
            _socket: UnixListener::bind(at("socket")).unwrap(),
            _datagrams: UnixDatagram::bind(at("datagrams")).unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            victim: Command::new("sleep")
                .arg("1000")
                .env("SECRET", "1")
                .spawn()
                .unwrap(),
            name,
            outside,
        }
    }

    fn path(&self) -> &str {
        self.outside.path().to_str().unwrap()
    }

    fn ports(&self) -> [u16; 2] {
        let [tcp, udp] = [self.tcp.local_addr(), self.udp.local_addr()];
        [tcp, udp].map(|address| address.unwrap().port())
    }

    /// Returns the input of the scripts in Python and SAL.
    fn as_input(&self, round: Profile) -> String {
        for start in ["", "sal-"] {
            let name = format!("{start}removed-{round}");
            fs::write(self.outside.path().join(name), "").unwrap();
        }
        let [tcp, udp] = self.ports();
        let names: Vec<&str> = ATTEMPTS.iter().map(|(name, ..)| *name).collect();
        serde_json::json!({
            "outside": self.path(),
            "victim": self.victim.id(),
            "worker": std::process::id(),
            "abstract": self.name,
            "tcp": tcp,
            "udp": udp,
            "round": round.as_str(),
            "attempts": names,
            "sal": in_sal(),
            "calls": {
                "bpf": libc::SYS_bpf,
                "keyctl": libc::SYS_keyctl,
                "perf_event_open": libc::SYS_perf_event_open,
                "userfaultfd": libc::SYS_userfaultfd,
            },
        })
        .to_string()
    }

    /// Returns the script with its arguments.
    fn for_shell(&self) -> String {
        let [tcp, udp] = self.ports();
        let numbers = [self.victim.id(), std::process::id(), tcp.into(), udp.into()];
        let numbers = numbers.map(|number| number.to_string());
        let args = [self.path()].into_iter();
        let args = args.chain(numbers.iter().map(String::as_str));
        let args: Vec<&str> = args.chain(IN_SHELL.iter().copied()).collect();
        serde_json::json!({ "script": SHELL, "args": args }).to_string()
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

#[cfg(feature = "sal")]
fn in_sal() -> Vec<&'static str> {
    let attempts = super::escape_sal::attempts().into_iter();
    attempts.map(|(name, _)| name).collect()
}

#[cfg(not(feature = "sal"))]
fn in_sal() -> Vec<&'static str> {
    Vec::new()
}

/// Returns the attempts of SAL that did not end as expected.
#[cfg(feature = "sal")]
async fn compare_sal(environment: Environment, profile: Profile, targets: &Targets) -> Vec<String> {
    let input = targets.as_input(profile);
    let outside = targets.outside.path();
    let said = match super::escape_sal::tried(profile, &input, outside).await {
        Ok(said) => said,
        Err(report) => {
            let refuses = profile == Profile::Strict && !environment.has_namespaces;
            assert!(refuses, "{report:?}");
            return Vec::new();
        }
    };
    let mut wrong = Vec::new();
    for (name, same_as) in super::escape_sal::attempts() {
        let known = ATTEMPTS.iter().find(|(name, ..)| *name == same_as);
        let (_, needs, succeeds) = known.unwrap();
        if *needs == Perhaps {
            continue;
        }
        let expected = environment.expects(profile, *needs, *succeeds);
        let (answer, succeeded) = &said[name];
        if *succeeded != expected {
            wrong.push(format!("{name} of SAL in {profile}: {answer}"));
        }
    }
    wrong
}

/// Returns the attempts that succeeded.
async fn try_all(targets: &Targets, profile: Profile) -> [Result<String, Report>; 2] {
    let confinement = || Confinement::of(profile);
    let input = targets.as_input(profile);
    let python = run_in(confinement(), "python", PYTHON, &input).await;
    let shell = run_in(confinement(), "exec", &targets.for_shell(), "").await;
    [python, shell].map(|report| match report.result {
        Ok(_) => Ok(output(&report).to_owned()),
        Err(_) => Err(report),
    })
}

/// Returns the attempts that did not end as expected.
fn compare(environment: Environment, profile: Profile, python: &str, shell: &str) -> Vec<String> {
    let said: serde_json::Map<String, serde_json::Value> = serde_json::from_str(python).unwrap();
    let lines: BTreeSet<&str> = shell.lines().collect();
    let mut wrong = Vec::new();
    for (name, needs, succeeds) in ATTEMPTS {
        let expected = environment.expects(profile, *needs, *succeeds);
        let is_uncertain = matches!(needs, Perhaps | Attributes)
            && (profile == Profile::Open || *succeeds != Never);
        if is_uncertain {
            continue;
        }
        let answer = said[*name].as_str().unwrap();
        if (answer == "ok") != expected {
            wrong.push(format!("{name} in {profile}: {answer}"));
        }
        let line = format!("{name} {}", if expected { "ok" } else { "refused" });
        if IN_SHELL.contains(name) && !lines.contains(&*line) {
            wrong.push(format!("{name} of the shell in {profile}: not `{line}`"));
        }
    }
    wrong
}

/// Runs all attempts in all profiles, in this process.
async fn all_profiles(environment: Environment) {
    let host = sandbox_host().await.unwrap();
    assert_eq!(
        host.namespaces.is_ok(),
        environment.has_namespaces,
        "{host:?}"
    );
    let targets = Targets::new();
    let mut wrong = Vec::new();
    for profile in Profile::ALL {
        let [python, shell] = try_all(&targets, profile).await;
        #[cfg(feature = "sal")]
        wrong.extend(compare_sal(environment, profile, &targets).await);
        if profile == Profile::Strict && !environment.has_namespaces {
            for report in [python, shell].map(Result::unwrap_err) {
                let failure = failure(&report);
                assert_eq!(failure.kind, FailureKind::Permanent);
                assert!(
                    failure.message.contains("namespaces do not work"),
                    "{failure:?}"
                );
            }
            continue;
        }
        let [python, shell] = [python, shell].map(|said| said.unwrap_or_else(|r| panic!("{r:?}")));
        wrong.extend(compare(environment, profile, &python, &shell));
        requests_are_answered(profile).await;
    }
    assert_eq!(wrong, Vec::<String>::new(), "{environment:?}, {host:?}");
}

/// Runs in processes that the tests below start.
#[tokio::test]
#[ignore = "started by other tests"]
async fn attempts() {
    let text = std::env::var(ENVIRONMENT).unwrap();
    all_profiles(Environment::of(&text)).await;
}

/// Takes user namespaces and all capabilities from a program.
pub(super) const NESTED: &str = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \
    --no-new-privs \"$@\"";

#[test]
fn nothing_leaves_a_sandbox() {
    if !LAUNCHED || !is_root() {
        eprintln!("skipped: it needs root and a launcher");
        return;
    }
    let nested = ["unshare", "-Ur", "sh", "-c", NESTED, "sh"];
    for (around, user, environment) in [
        (&[][..], None, "root, capabilities, namespaces"),
        (&[][..], Some(NOBODY), "namespaces"),
        (&nested[..], None, "root"),
        (&nested[..], Some(NOBODY), ""),
    ] {
        run_again("confined::escape::attempts", around, user, environment);
    }
}
