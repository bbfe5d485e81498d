//! Location of the workspace, and calls of cargo in it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::process::Failure;

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self, Failure> {
        let own = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        match own
            .parent()
            .filter(|root| root.join("Cargo.lock").is_file())
        {
            Some(root) => Ok(Self {
                root: root.to_owned(),
            }),
            None => Err(Failure::new(format!(
                "no workspace around {}",
                own.display()
            ))),
        }
    }

    /// Returns a folder for test tools and lists; ignored by git, removed by `cargo clean`.
    pub(crate) fn target(&self, name: &str) -> PathBuf {
        self.root.join("target").join(name)
    }

    /// Returns the directory of built binaries.
    pub(crate) fn built(&self) -> PathBuf {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        self.root.join(target).join("debug")
    }

    /// Returns a call of cargo in the workspace, without the variables that cargo sets for this package. Some build
    /// scripts watch them, and would run again at each change between `cargo test` and `cargo xtask test`.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.root);
        without_own_variables(&mut command);
        command
    }
}

/// Removes the variables that cargo sets for this package.
pub(crate) fn without_own_variables(command: &mut Command) {
    let own = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
    ];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if own.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}

/// Returns whether this is CI, where no test may be skipped.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
