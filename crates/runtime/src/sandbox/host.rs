//! Isolation that this host offers to runs. It is found by trying the whole confinement in child processes, since flags
//! and versions do not tell what a container or a security module refuses.

use meshwork_macros::boxed;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use meshwork_model::sandbox::Profile;
use rustix::process::geteuid;
use tokio::sync::OnceCell;

use super::confine::is_bounded;
use super::groups::{self, Hierarchies};
use super::orders::{Isolation, Orders};
use super::{Environment, Inherited, Launched, Own, is_on, launcher, shielded};
use crate::Confinement;
use crate::blocking::blocking;
use crate::workdir::Folder;

/// Longest time of a trial, which takes milliseconds.
const TRIAL_ENDS: Duration = Duration::from_secs(20);
/// Version of Landlock from which on signals to processes outside and abstract sockets are refused.
const SCOPED: u32 = 6;

/// The isolation that this host offers to scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxHost {
    /// Namespaces with a root folder of their own, or the reason why they do not work.
    pub namespaces: Result<(), String>,
    /// Version of Landlock; 0 without it.
    pub landlock: u32,
    /// True if the kernel bounds the processes of a run.
    pub bounds_processes: bool,
    /// Control groups that count memory and processor time of each run, or the reason why they do not work.
    pub groups: Result<(), String>,
    /// A filter of system calls with dropped capabilities, or the reason why it does not work.
    pub filter: Result<(), String>,
}

impl SandboxHost {
    /// Returns the reason why a profile does not work here.
    ///
    /// # Errors
    /// The missing part.
    pub fn allows(&self, profile: Profile) -> Result<(), String> {
        match profile {
            Profile::Open => Ok(()),
            Profile::Standard if self.namespaces.is_err() && self.landlock == 0 => Err(format!(
                "the kernel has no Landlock, and {}",
                self.missing_namespaces()
            )),
            Profile::Standard if self.namespaces.is_err() && geteuid().is_root() => Err(format!(
                "{}. Without them, scripts of root reach what belongs to root: run the worker as another user",
                self.missing_namespaces()
            )),
            Profile::Standard => self.filter.clone(),
            Profile::Strict if self.namespaces.is_err() => Err(self.missing_namespaces()),
            Profile::Strict => self.filter.clone(),
        }
    }

    fn missing_namespaces(&self) -> String {
        let why = self.namespaces.as_ref().err().map_or("", String::as_str);
        format!("namespaces do not work here: {why}")
    }

    /// Returns what stays open in `standard` here, in the words of the documentation. In `strict` only the first one
    /// can apply.
    #[must_use]
    pub fn gaps(&self) -> Vec<&'static str> {
        let mut gaps = Vec::new();
        if !self.bounds_processes {
            gaps.push("an endless fork bomb grows faster than processes are counted");
        }
        if self.groups.is_err() {
            gaps.extend([
                "buffers of sockets and pipes are not counted as memory",
                "processor time of children that nobody waits for is counted 20 times per second",
            ]);
        }
        if self.namespaces.is_ok() {
            if self.landlock < SCOPED {
                gaps.push("Unix sockets do not work");
            }
            return gaps;
        }
        gaps.extend([
            "names, command lines and states of all processes",
            "metadata of files outside: stat, chmod, chown, utime and extended attributes, as far as the user may",
            "the shared memory of the user in /dev/shm",
            "Unix sockets and SysV IPC do not work",
        ]);
        if self.landlock < SCOPED {
            gaps.push("signals to processes of the same user");
        }
        gaps
    }

    /// Returns true if runs in a confining profile cannot connect to Unix sockets.
    fn lacks_sockets(&self, profile: Profile) -> bool {
        self.namespaces.is_err() || profile == Profile::Standard && self.landlock < SCOPED
    }

    fn isolation(&self) -> Isolation {
        match self.namespaces {
            Ok(()) => Isolation::Namespaces,
            Err(_) => Isolation::Rules,
        }
    }
}

/// Reason why a run cannot be confined.
#[derive(Debug)]
pub(in super::super) enum Unconfined {
    /// The host lacks a part of the profile, or the program has no launcher.
    Refused(String),
    /// A trial has not started.
    System(io::Error),
}

/// Groups that count what runs use, and the reason why some do not work.
type Groups = (Hierarchies, Result<(), String>);

/// Found once per process.
static GROUPS: OnceCell<Groups> = OnceCell::const_new();

/// Removes the control groups of launchers that were killed, and ends the processes in them.
pub(in super::super) fn sweep() {
    if let Some((groups, _)) = GROUPS.get() {
        groups.sweep();
    }
}

/// Found once per process.
static HOST: OnceCell<SandboxHost> = OnceCell::const_new();

/// Returns the isolation that this host offers. It is tried once.
///
/// # Errors
/// No process can be started now, or the program has not called [`init`](super::init).
#[boxed]
pub async fn sandbox_host() -> io::Result<&'static SandboxHost> {
    if !is_on() {
        return Err(io::Error::other(
            "this program has no launcher: call meshwork::runtime::init() first in `main`",
        ));
    }
    HOST.get_or_try_init(|| async {
        let (groups, counts) = in_groups().await?;
        let namespaces = try_out(Profile::Strict, Isolation::Namespaces).await?;
        let rules = try_out(Profile::Standard, Isolation::Rules).await?;
        let landlock = rules.clone().or(namespaces.clone()).unwrap_or(0);
        Ok(SandboxHost {
            bounds_processes: groups.count_processes() || namespaces.is_ok() && is_bounded(),
            groups: counts.clone(),
            namespaces: namespaces.map(drop),
            landlock,
            filter: rules.map(drop),
        })
    })
    .await
}

/// Returns the orders for the launcher of a run. `interpreter` are the paths that the interpreter needs.
pub(in super::super) async fn orders(
    confinement: &Confinement,
    interpreter: &[PathBuf],
) -> Result<Orders, Unconfined> {
    let profile = confinement.profile;
    let mut orders = Orders {
        confinement: confinement.clone(),
        isolation: Isolation::None,
        interpreter: interpreter.to_vec(),
        ..Orders::default()
    };
    if is_on() {
        let (groups, _) = in_groups().await.map_err(Unconfined::System)?;
        orders.groups = groups.clone();
    }
    if profile == Profile::Open {
        return Ok(orders);
    }
    let refused = |why: String| {
        Unconfined::Refused(format!(
            "the sandbox profile `{profile}` cannot be enforced: {why}"
        ))
    };
    if !is_on() {
        let why = "this program has no launcher: it has to call meshwork::runtime::init() first in `main`";
        return Err(refused(why.to_owned()));
    }
    let host = sandbox_host().await.map_err(Unconfined::System)?;
    host.allows(profile).map_err(refused)?;
    orders.isolation = host.isolation();
    orders.lacks_sockets = host.lacks_sockets(profile);
    Ok(orders)
}

async fn in_groups() -> io::Result<&'static Groups> {
    let find = || {
        let (found, reasons) = groups::find();
        let counts = match found.count_memory() && found.count_cpu() {
            true => Ok(()),
            false if reasons.is_empty() => Err("this host has none".to_owned()),
            false => Err(reasons.join("; ")),
        };
        Ok((found, counts))
    };
    GROUPS.get_or_try_init(|| blocking(find)).await
}

/// Tries an isolation in child processes. Returns the version of Landlock, or the reason why it does not work.
async fn try_out(profile: Profile, isolation: Isolation) -> io::Result<Result<u32, String>> {
    let orders = Orders {
        confinement: Confinement::of(profile),
        isolation,
        ..Orders::default()
    };
    let folder = tokio::task::spawn_blocking(|| Folder::with(None));
    let folder = folder.await.map_err(io::Error::other)??;
    let inherited = Inherited {
        input: std::fs::File::open("/dev/null")?.into(),
        environment: Environment::of([])?,
        calls: None,
    };
    let (mut command, control) = launcher(Path::new(""), folder.root(), &inherited, &orders)?;
    command.current_dir(folder.work());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    let started = Own::start(|| shielded(|| command.spawn()), tokio::process::Child::id);
    let (mut child, _own) = started?;
    // The control socket of the command.
    drop(command);
    let ended = tokio::time::timeout(TRIAL_ENDS, child.wait()).await;
    let status = ended.map_err(io::Error::other)??;
    match control.report().end {
        Some(Launched::Ended(status)) => Ok(version(status)),
        Some(Launched::NotConfined(error)) => Ok(Err(error.to_string())),
        Some(Launched::NotStarted(error)) => Err(error),
        Some(Launched::Killed(_)) | None => Ok(Err(format!("the launcher ended with {status}"))),
    }
}

/// Returns the version of Landlock, which is the exit code of a trial.
fn version(status: ExitStatus) -> Result<u32, String> {
    match (status.code(), status.signal()) {
        (Some(code), _) => u32::try_from(code).map_err(|error| error.to_string()),
        (None, signal) => Err(format!(
            "the trial was killed by signal {}",
            signal.unwrap_or(0)
        )),
    }
}
