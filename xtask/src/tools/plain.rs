//! Programs that tests only start: any version will do.

use std::path::PathBuf;

use super::{Found, look, package_manager};
use crate::process::Failure;

/// A program of a package.
pub(super) struct Plain {
    program: &'static str,
    variable: &'static str,
    /// Package, as [`package_manager::install`] knows it.
    package: &'static str,
    /// Folder outside of `PATH` with a folder for each version, whose `bin` has the program.
    versions: Option<&'static str>,
}

pub(super) const RSYNC: Plain = Plain {
    program: "rsync",
    variable: "MESHWORK_TEST_RSYNC",
    package: "rsync",
    versions: None,
};
pub(super) const CURL: Plain = Plain {
    program: "curl",
    variable: "MESHWORK_TEST_CURL",
    package: "curl",
    versions: None,
};
pub(super) const NGINX: Plain = Plain {
    program: "nginx",
    variable: "MESHWORK_TEST_NGINX",
    package: "nginx",
    versions: None,
};
pub(super) const POSTGRES: Plain = Plain {
    program: "postgres",
    variable: "MESHWORK_TEST_POSTGRES",
    package: "postgresql",
    versions: Some("/usr/lib/postgresql"),
};

pub(super) const PGBOUNCER: Plain = Plain {
    program: "pgbouncer",
    variable: "MESHWORK_TEST_PGBOUNCER",
    package: "pgbouncer",
    versions: None,
};

impl Plain {
    pub(super) fn find_or_install(&self, install: bool) -> Result<Found, Failure> {
        if let Some(path) = self.find() {
            let note = "found".to_owned();
            return Ok(Found { path, note });
        }
        if !install {
            return Err(Failure::new("not in PATH"));
        }
        let note = package_manager::install(self.package)?;
        let missing = || Failure::new("the package manager installed it, but not into PATH");
        let path = self.find().ok_or_else(missing)?;
        Ok(Found { path, note })
    }

    fn find(&self) -> Option<PathBuf> {
        // Servers are in no ordinary user's `PATH`.
        let server = PathBuf::from("/usr/sbin").join(self.program);
        let found = look(self.program, self.variable);
        found
            .or(Some(server).filter(|path| path.is_file()))
            .or_else(|| {
                let folders = std::fs::read_dir(self.versions?).ok()?.flatten();
                folders
                    .map(|folder| folder.path().join("bin").join(self.program))
                    .find(|path| path.is_file())
            })
    }
}
