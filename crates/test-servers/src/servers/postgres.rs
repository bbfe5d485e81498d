//! A PostgreSQL server with a password. It refuses to run as root, so root starts it as another user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use super::guard::Guard;
use super::server::{PORT_ATTEMPTS, free_port};
use super::tools::{Tool, need_for};

/// User without rights.
pub(super) const NOBODY: u32 = 65534;
/// Name of the user and of the database.
const NAME: &str = "postgres";
/// Password of the user.
const PASSWORD: &str = "sesame";

/// Time for a server to start after a kill: its processes that are still there hold its memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server of one test, killed when dropped. It finds every committed transaction again after a kill.
pub struct RealPostgres {
    program: PathBuf,
    port: u16,
    guard: Option<Guard>,
    /// The guard removes it as well, even if the test is killed.
    dir: TempDir,
}

impl RealPostgres {
    /// Starts a server. `None`: this machine lacks it, and the test has been reported as skipped.
    ///
    /// # Panics
    /// In CI if there is no server, and if it does not start.
    #[must_use]
    pub fn start_for(test: &str) -> Option<Self> {
        let program = need_for(test, Tool::Postgres)?;
        let program = program.canonicalize().expect("it is there");
        let dir = tempfile::Builder::new()
            .prefix("mw-")
            .tempdir()
            .expect("a temporary directory");
        let data = dir.path().join("data");
        initialise(&program, dir.path(), &data);
        let mut attempts = PORT_ATTEMPTS;
        loop {
            attempts -= 1;
            let port = free_port();
            let line = command_line(&program, &data, port);
            match Guard::start(Path::new(&line[0]), &line[1..], dir.path()) {
                Ok(guard) => {
                    return Some(Self {
                        program,
                        port,
                        guard: Some(guard),
                        dir,
                    });
                }
                Err(error) if attempts > 0 && error.output.contains("already in use") => {}
                Err(error) => panic!("{}: {error}", program.display()),
            }
        }
    }

    /// Returns the server of this process, which all its tests share. `None`: as [`Self::start_for`].
    #[must_use]
    pub fn shared_for(test: &str) -> Option<&'static Self> {
        static SHARED: OnceLock<Option<RealPostgres>> = OnceLock::new();
        need_for(test, Tool::Postgres)?;
        SHARED.get_or_init(|| Self::start_for(test)).as_ref()
    }

    /// Returns the URL of the database, with user and password.
    #[must_use]
    pub fn url(&self) -> String {
        let port = self.port;
        format!("postgres://{NAME}:{PASSWORD}@127.0.0.1:{port}/{NAME}")
    }

    /// Kills the server with `kill -9`, and with it all its connections. Returns when the process is gone.
    ///
    /// # Panics
    /// The server has been killed before.
    pub fn kill9(&mut self) {
        let mut guard = self.guard.take().expect("the server runs");
        guard.signal(Signal::KILL);
        guard.wait_for_death();
        guard.end_and_keep_files();
    }

    /// Starts the server on the same port and directory after [`Self::kill9`].
    ///
    /// # Panics
    /// The server still runs, or does not start.
    pub fn start_again(&mut self) {
        assert!(self.guard.is_none(), "the server still runs");
        let line = command_line(&self.program, &self.dir.path().join("data"), self.port);
        let until = Instant::now() + PATIENCE;
        while self.guard.is_none() {
            match Guard::start(Path::new(&line[0]), &line[1..], self.dir.path()) {
                Ok(guard) => self.guard = Some(guard),
                Err(error) if error.output.contains("still in use") && Instant::now() < until => {}
                Err(error) => panic!("{}: {error}", self.program.display()),
            }
        }
    }

    /// Returns the line of PgBouncer's settings that names the database.
    pub(super) fn behind_pooler(&self) -> String {
        let port = self.port;
        format!("{NAME} = host=127.0.0.1 port={port} user={NAME} password={PASSWORD}\n")
    }

    /// Returns the variables of a client.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("POSTGRES_HOST", "127.0.0.1".to_owned()),
            ("POSTGRES_PORT", self.port.to_string()),
            ("POSTGRES_USER", NAME.to_owned()),
            ("POSTGRES_PASSWORD", PASSWORD.to_owned()),
            ("POSTGRES_DB", NAME.to_owned()),
        ]
    }
}

/// Makes the files of a server.
fn initialise(program: &Path, dir: &Path, data: &Path) {
    let password = dir.join("password");
    fs::write(&password, PASSWORD).expect("the folder is writable");
    if geteuid().is_root() {
        for path in [dir, &password] {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        fs::set_permissions(dir, Permissions::from_mode(0o700)).expect("root may");
    }
    let mut line = as_user(&program.with_file_name("initdb"));
    line.extend(["--username", NAME, "--auth", "scram-sha-256"].map(str::to_owned));
    line.extend(["--encoding=UTF8", "--locale=C", "--no-sync", "--pwfile"].map(str::to_owned));
    line.extend([&password, data].map(|path| path.display().to_string()));
    let made = Command::new(&line[0])
        .args(&line[1..])
        .current_dir(dir)
        .output();
    let made = made.expect("initdb can be started");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "initdb: {said}");
}

fn command_line(program: &Path, data: &Path, port: u16) -> Vec<String> {
    let mut line = as_user(program);
    line.extend(["-D".to_owned(), data.display().to_string()]);
    line.extend(["-p".to_owned(), port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "fsync=off",
        "shared_buffers=16MB",
    ] {
        line.extend(["-c", setting].map(str::to_owned));
    }
    line
}

/// Returns the beginning of a command line that does not run as root.
pub(super) fn as_user(program: &Path) -> Vec<String> {
    let program = PathBuf::from(program).display().to_string();
    match geteuid().is_root() {
        true => {
            let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
            let mut line = vec!["setpriv".to_owned()];
            line.extend(user);
            line.extend(["--clear-groups".to_owned(), program]);
            line
        }
        false => vec![program],
    }
}
