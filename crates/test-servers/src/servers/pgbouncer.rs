//! PgBouncer before a PostgreSQL server. It refuses to run as root, so root starts it as another user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

use super::RealPostgres;
use super::guard::Guard;
use super::postgres::{NOBODY, as_user};
use super::server::{PORT_ATTEMPTS, free_port};
use super::tools::{Tool, need_for};

/// The first version that can keep statements of clients under their names.
const KEEPS_STATEMENTS: (u32, u32) = (1, 21);

/// A pooler of one test, killed when dropped. Clients need no password.
pub struct RealPgBouncer {
    port: u16,
    _guard: Guard,
    _dir: TempDir,
}

impl RealPgBouncer {
    /// Starts a pooler in this mode (`transaction`, `session` or `statement`), with its default settings otherwise, but with
    /// `max_prepared_statements` where it has them. `None`: this machine lacks it, and the test has been reported as skipped.
    ///
    /// # Panics
    /// In CI if there is no PgBouncer, and if it does not start.
    #[must_use]
    pub fn start_for(test: &str, server: &RealPostgres, mode: &str) -> Option<Self> {
        let program = need_for(test, Tool::PgBouncer)?;
        let dir = tempfile::Builder::new()
            .prefix("mw-")
            .tempdir()
            .expect("a temporary directory");
        if geteuid().is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
            fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).expect("root may");
        }
        let settings = dir.path().join("pgbouncer.ini");
        let more = match version(&program) >= KEEPS_STATEMENTS {
            true => "max_prepared_statements = 100\n",
            false => "",
        };
        let mut attempts = PORT_ATTEMPTS;
        loop {
            attempts -= 1;
            let port = free_port();
            let text = format!(
                "[databases]\n{}[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n\
                 unix_socket_dir =\npool_mode = {mode}\n{more}",
                server.behind_pooler()
            );
            fs::write(&settings, text).expect("the folder is writable");
            fs::set_permissions(&settings, Permissions::from_mode(0o644)).expect("it is ours");
            let mut line = as_user(&program);
            line.push(settings.display().to_string());
            match Guard::start(Path::new(&line[0]), &line[1..], dir.path()) {
                Ok(guard) => {
                    return Some(Self {
                        port,
                        _guard: guard,
                        _dir: dir,
                    });
                }
                Err(error) if attempts > 0 && error.output.contains("ddress already in use") => {}
                Err(error) => panic!("{}: {error}", program.display()),
            }
        }
    }

    /// Returns the URL of the database, without a password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

/// Returns the version of a program, as `PgBouncer 1.18.0`.
fn version(program: &Path) -> (u32, u32) {
    let said = Command::new(program).arg("--version").output();
    let said = said.expect("it can be started").stdout;
    let said = String::from_utf8_lossy(&said);
    let version = said.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
