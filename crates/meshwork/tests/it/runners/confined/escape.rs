//! Attempts to leave a sandbox, in one table. Each attempt succeeds in the profile `open`, so that the table can fail.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
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

/// The attempts, with the features of the kernel that they concern.
pub(super) const TABLE: &str = include_str!("attempts.txt");

const IN_C: [(&str, &str); 2] = [
    ("attempts.c", include_str!("attempts.c")),
    ("attempts.inc", include_str!("attempts.inc")),
];
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
    /// User namespaces, in a process that may gain privileges.
    Namespaces,
    /// A host on which this exists.
    Perhaps,
    /// Attributes of files on the temporary file system.
    Attributes,
}
use Needs::{Attributes, Namespaces, Nothing, Perhaps, Privileges, Root, User};

/// Profiles in which an attempt succeeds, besides `open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Succeeds {
    Never,
    /// In `standard` without namespaces: a gap in docs/sandbox.md.
    WithoutNamespaces,
    /// In `standard`.
    InStandard,
    /// In all: a gap in docs/security.md.
    Always,
}
use Succeeds::{Always, InStandard, Never, WithoutNamespaces};

/// Names of the columns of `attempts.txt`.
const NEEDS: [(&str, Needs); 7] = [
    ("nothing", Nothing),
    ("user-0", User),
    ("capabilities", Root),
    ("setuid", Privileges),
    ("user-namespaces", Namespaces),
    ("perhaps", Perhaps),
    ("attributes", Attributes),
];
const SUCCEEDS: [(&str, Succeeds); 4] = [
    ("never", Never),
    ("without-namespaces", WithoutNamespaces),
    ("standard", InStandard),
    ("always", Always),
];

/// An attempt of the table, in one or several languages.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) name: &'static str,
    pub(super) languages: Vec<&'static str>,
    needs: Needs,
    pub(super) succeeds: Succeeds,
}

/// Parses a row of the table; `None` for other lines.
pub(super) fn attempt(line: &'static str) -> Option<Attempt> {
    let [name, languages, needs, succeeds] = line
        .split_whitespace()
        .collect::<Vec<_>>()
        .try_into()
        .ok()?;
    Some(Attempt {
        name,
        languages: languages.split(',').collect(),
        needs: NEEDS.iter().find(|(word, _)| *word == needs)?.1,
        succeeds: SUCCEEDS.iter().find(|(word, _)| *word == succeeds)?.1,
    })
}

/// Returns all attempts, or those in one language.
fn attempts_in(language: &'static str) -> impl Iterator<Item = Attempt> {
    let all = TABLE.lines().filter_map(attempt);
    all.filter(move |one| one.languages.contains(&language))
}

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
                (Profile::Open, _) | (_, Always) | (Profile::Standard, InStandard) => true,
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
    /// The attempts in C, in a folder that runs may read.
    program: PathBuf,
    _programs: TempDir,
}

impl Targets {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        let at = |name: &str| outside.path().join(name);
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("filled"), "filled").unwrap();
        fs::copy("/bin/true", at("program")).unwrap();
        let programs = tempfile::tempdir().unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o700)).unwrap();
        let name = format!("meshwork-escape-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let targets = Self {
            program: compile(programs.path(), "attempts", &IN_C),
            _programs: programs,
            _socket: UnixListener::bind(at("socket")).unwrap(),
            _datagrams: UnixDatagram::bind(at("datagrams")).unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            victim: Command::new("sleep")
                .arg("1000")
                .env("SECRET", "1")
                .process_group(0)
                .spawn()
                .unwrap(),
            name,
            outside,
        };
        targets.in_c("make");
        targets
    }

    /// Returns the arguments of the attempts in C.
    fn for_c(&self, word: &str) -> Vec<String> {
        let [tcp, udp] = self.ports().map(|port| port.to_string());
        let [victim, key] = [self.victim.id(), std::process::id()].map(|id| id.to_string());
        let rest = [victim, tcp, udp, key, self.name.clone(), word.to_owned()];
        std::iter::once(self.path().to_owned())
            .chain(rest)
            .collect()
    }

    /// Makes or removes the IPC objects of the host that the attempts in C look for.
    fn in_c(&self, word: &str) {
        let done = Command::new(&self.program).args(self.for_c(word)).status();
        assert!(done.unwrap().success(), "{word}");
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
        let names: Vec<&str> = attempts_in("py").map(|one| one.name).collect();
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
        let args: Vec<&str> = args.chain(attempts_in("sh").map(|one| one.name)).collect();
        serde_json::json!({ "script": SHELL, "args": args }).to_string()
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        self.in_c("remove");
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Compiles a program in C, whose first file is named like it.
pub(super) fn compile(folder: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let program = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-o"]).arg(&program);
    compiler.arg(program.with_extension("c"));
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    program
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
            assert!(refusal(environment, profile).is_some(), "{report:?}");
            return Vec::new();
        }
    };
    let mut wrong = Vec::new();
    for (name, same_as) in super::escape_sal::attempts() {
        let known = attempts_in("py").find(|one| one.name == same_as).unwrap();
        if known.needs == Perhaps {
            continue;
        }
        let expected = environment.expects(profile, known.needs, known.succeeds);
        let (answer, succeeded) = &said[name];
        if *succeeded != expected {
            wrong.push(format!("{name} of SAL in {profile}: {answer}"));
        }
    }
    wrong
}

/// Runs the attempts in Python, the shell and C.
async fn try_all(targets: &Targets, profile: Profile) -> [Result<String, Report>; 3] {
    let confinement = || Confinement::of(profile);
    let input = targets.as_input(profile);
    let python = run_in(confinement(), "python", PYTHON, &input).await;
    let shell = run_in(confinement(), "exec", &targets.for_shell(), "").await;
    let mut with_program = confinement();
    with_program.read.push(targets.program.clone());
    let path = targets.program.to_str().unwrap();
    let script = format!("#!/bin/sh\nexec {path} \"$@\"");
    let script = serde_json::json!({ "script": script, "args": targets.for_c("try") });
    let c = run_in(with_program, "exec", &script.to_string(), "").await;
    [python, shell, c].map(|report| match report.result {
        Ok(_) => Ok(output(&report).to_owned()),
        Err(_) => Err(report),
    })
}

/// Returns the attempts that did not end as expected. Each of them has a line with its name and `ok`, or how it failed.
fn compare(
    environment: Environment,
    profile: Profile,
    language: &'static str,
    said: &str,
) -> Vec<String> {
    let answers: BTreeMap<&str, &str> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let mut wrong = Vec::new();
    for one in attempts_in(language) {
        let is_uncertain = matches!(one.needs, Perhaps | Attributes)
            && (profile == Profile::Open || one.succeeds != Never);
        if is_uncertain {
            continue;
        }
        let expected = environment.expects(profile, one.needs, one.succeeds);
        let answer = answers.get(one.name).copied().unwrap_or("nothing");
        if (answer == "ok") != expected || answer == "nothing" {
            wrong.push(format!("{} in {language}, {profile}: {answer}", one.name));
        }
    }
    wrong
}

/// Returns the reason for which a profile runs nothing in an environment.
fn refusal(environment: Environment, profile: Profile) -> Option<&'static str> {
    match profile {
        _ if environment.has_namespaces => None,
        Profile::Open => None,
        Profile::Standard if environment.is_user_0 => Some("run the worker as another user"),
        Profile::Standard => None,
        Profile::Strict => Some("namespaces do not work"),
    }
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
        let said = try_all(&targets, profile).await;
        #[cfg(feature = "sal")]
        wrong.extend(compare_sal(environment, profile, &targets).await);
        if let Some(reason) = refusal(environment, profile) {
            for report in said.map(Result::unwrap_err) {
                let failure = failure(&report);
                assert_eq!(failure.kind, FailureKind::Permanent);
                assert!(failure.message.contains(reason), "{failure:?}");
            }
            continue;
        }
        for (language, said) in ["py", "sh", "c"].into_iter().zip(said) {
            let said = said.unwrap_or_else(|report| panic!("{language}: {report:?}"));
            wrong.extend(compare(environment, profile, language, &said));
        }
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
const NESTED: &str = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --bounding-set=-all \
    --inh-caps=-all --no-new-privs \"$@\"";
/// Starts a program in this way, in a user namespace in which the user keeps its number.
pub(super) const WITHOUT_NAMESPACES: [&str; 8] = [
    "unshare",
    "-U",
    "--map-current-user",
    "--keep-caps",
    "sh",
    "-c",
    NESTED,
    "sh",
];

#[test]
fn nothing_leaves_a_sandbox() {
    if !LAUNCHED || !is_root() {
        eprintln!("skipped: it needs root and a launcher");
        return;
    }
    for (around, user, environment) in [
        (&[][..], None, "root, capabilities, namespaces"),
        (&[][..], Some(NOBODY), "namespaces"),
        (&WITHOUT_NAMESPACES[..], None, "root"),
        (&WITHOUT_NAMESPACES[..], Some(NOBODY), ""),
    ] {
        run_again("confined::escape::attempts", around, user, environment);
    }
}
