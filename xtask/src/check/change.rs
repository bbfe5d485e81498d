//! The parts of the repository that a change affects, from the paths of its files.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::process::{Failure, ask};
use crate::workspace::Workspace;

/// Timeout of git, which is fast except on a cold disk.
const GIT: Duration = Duration::from_secs(60);

/// Folder of the Lua scripts.
const SCRIPTS: &str = "crates/broker/src/lua/";

/// The parts to check for a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Changed Lua scripts that still exist, by path.
    pub(super) scripts: BTreeSet<String>,
    /// Folders below `crates`, and `xtask`, with changed Rust files or data.
    pub(super) crates: BTreeSet<String>,
    /// Documents at the root and below `docs`.
    pub(super) documents: bool,
    /// Files whose effects only the whole check covers.
    pub(super) beyond: BTreeSet<String>,
}

impl Change {
    /// Returns the difference from `since`, with files that git does not track yet.
    pub(super) fn since(workspace: &Workspace, since: &str) -> Result<Self, Failure> {
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            ask(command.args(arguments).current_dir(&workspace.root), GIT)
        };
        // `--end-of-options`: a name that begins with a dash is not an option.
        let differs = [
            "diff",
            "--name-only",
            "--no-renames",
            "--end-of-options",
            since,
            "--",
        ];
        let changed = git(&differs)?;
        let new = git(&["ls-files", "--others", "--exclude-standard"])?;
        let paths = changed.lines().chain(new.lines());
        let mut change = Self::of(paths);
        change
            .scripts
            .retain(|path| workspace.root.join(path).is_file());
        Ok(change)
    }

    fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut change = Self::default();
        for path in paths {
            let mut parts = path.split('/');
            match (parts.next().unwrap_or_default(), parts.next()) {
                _ if path.starts_with(SCRIPTS) => drop(change.scripts.insert(path.to_owned())),
                ("crates", Some(name)) => drop(change.crates.insert(name.to_owned())),
                ("xtask", Some(_)) => drop(change.crates.insert("xtask".to_owned())),
                ("docs" | "examples", _) => change.documents = true,
                (name, None) if name.ends_with(".md") => change.documents = true,
                _ => drop(change.beyond.insert(path.to_owned())),
            }
        }
        change
    }

    /// Returns whether there is no difference.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_path_is_of_one_kind() {
        let paths = [
            "crates/broker/src/lua/lib/dependencies/dependencies.lua",
            "crates/broker/src/verb/claim.rs",
            "crates/cli/tests/it/job.rs",
            "xtask/src/main.rs",
            "README.md",
            "docs/limits.md",
            "Cargo.lock",
            ".ci/run",
        ];
        let change = Change::of(paths.into_iter());
        let expected = Change {
            scripts: set(&["crates/broker/src/lua/lib/dependencies/dependencies.lua"]),
            crates: set(&["broker", "cli", "xtask"]),
            documents: true,
            beyond: set(&["Cargo.lock", ".ci/run"]),
        };
        assert_eq!(change, expected);
        assert!(Change::of(std::iter::empty()).is_empty());
    }

    #[test]
    fn what_is_no_revision_is_named() {
        let workspace = Workspace::find().unwrap();
        let error = Change::since(&workspace, "--no-such-revision").unwrap_err();
        assert!(error.to_string().contains("no-such-revision"), "{error}");
    }
}
