//! The system's package manager.

use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{INSTALLATION, QUESTION, in_path};
use crate::process::{Failure, ask, in_words, run};

struct PackageManager {
    program: &'static str,
    /// Updates the list of packages, if installing does not.
    refresh: Option<&'static [&'static str]>,
    install: &'static [&'static str],
    python: &'static str,
    pip: &'static str,
    redis: &'static str,
    postgres: &'static str,
    /// True if it refuses to run as root, and needs no root.
    as_user: bool,
}

const KNOWN: [PackageManager; 6] = [
    PackageManager {
        program: "apt-get",
        refresh: Some(&["update"]),
        // A machine that has just started may run its own updates.
        install: &[
            "-oDPkg::Lock::Timeout=120",
            "install",
            "--yes",
            "--no-install-recommends",
        ],
        python: "python3",
        pip: "python3-pip",
        redis: "redis-server",
        postgres: "postgresql",
        as_user: false,
    },
    PackageManager {
        program: "dnf",
        refresh: None,
        install: &["install", "--assumeyes"],
        python: "python3",
        pip: "python3-pip",
        redis: "redis",
        postgres: "postgresql-server",
        as_user: false,
    },
    PackageManager {
        program: "pacman",
        refresh: None,
        install: &["-Sy", "--noconfirm", "--needed"],
        python: "python",
        pip: "python-pip",
        redis: "redis",
        postgres: "postgresql",
        as_user: false,
    },
    PackageManager {
        program: "zypper",
        refresh: None,
        install: &["--non-interactive", "install"],
        python: "python3",
        pip: "python3-pip",
        redis: "redis",
        postgres: "postgresql-server",
        as_user: false,
    },
    PackageManager {
        program: "apk",
        refresh: None,
        install: &["add", "--no-cache"],
        python: "python3",
        pip: "py3-pip",
        redis: "redis",
        postgres: "postgresql",
        as_user: false,
    },
    PackageManager {
        program: "brew",
        refresh: None,
        install: &["install"],
        python: "python3",
        pip: "python3",
        redis: "redis",
        postgres: "postgresql",
        as_user: true,
    },
];

/// Installs `python3`, `pip`, `redis-server`, `postgresql` or a package of that name; returns a description.
pub(super) fn install(wanted: &str) -> Result<String, Failure> {
    let Some((manager, program)) = KNOWN
        .iter()
        .find_map(|manager| Some((manager, in_path(manager.program)?)))
    else {
        return Err(Failure::new(
            "not in PATH, and no package manager that we know is",
        ));
    };
    let package = match wanted {
        "python3" => manager.python,
        "pip" => manager.pip,
        "redis-server" => manager.redis,
        "postgresql" => manager.postgres,
        // The same name on all systems.
        other => other,
    };
    if let Some(refresh) = manager.refresh {
        let mut command = privileged(&program, manager.as_user)?;
        // If the list was needed and could not be updated, the installation fails.
        announced(wanted, command.args(refresh)).ok();
    }
    let mut command = privileged(&program, manager.as_user)?;
    announced(wanted, command.args(manager.install).arg(package))?;
    Ok(format!("installed by {} as {package}", manager.program))
}

fn announced(wanted: &str, command: &mut Command) -> Result<(), Failure> {
    eprintln!("{wanted}: not in PATH; running: {}", in_words(command));
    // Its output goes to stderr: stdout is for the results of tests.
    run(
        command.stdin(Stdio::inherit()).stdout(std::io::stderr()),
        INSTALLATION,
    )
}

/// Returns a command that runs as root if needed, by sudo for other users; without a terminal sudo must not ask.
fn privileged(program: &Path, as_user: bool) -> Result<Command, Failure> {
    let root = ask(Command::new("id").arg("-u"), QUESTION)? == "0";
    if as_user || root {
        let mut command = Command::new(program);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        return Ok(command);
    }
    let Some(sudo) = in_path("sudo") else {
        let name = program.display();
        return Err(Failure::new(format!(
            "not in PATH, and {name} needs root or sudo"
        )));
    };
    let mut command = Command::new(sudo);
    if !stdin().is_terminal() {
        command.arg("--non-interactive");
    }
    command.arg("DEBIAN_FRONTEND=noninteractive").arg(program);
    Ok(command)
}
