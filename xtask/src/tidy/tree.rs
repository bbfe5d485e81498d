//! The text files of the repository that git tracks or would add.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::process::{Failure, ask};
use crate::workspace::Workspace;

/// Timeout for listing the files.
const LISTING: Duration = Duration::from_secs(60);

pub(crate) struct File {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(super) text: String,
}

impl File {
    pub(crate) fn is(&self, ending: &str) -> bool {
        self.path.ends_with(ending)
    }

    /// Returns the crate's directory, as `broker` in `crates/broker/src/lib.rs`.
    pub(crate) fn krate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Returns the lines, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
    }
}

pub(crate) struct Tree {
    files: Vec<File>,
    /// With files that are not text.
    paths: Vec<String>,
}

impl Tree {
    /// Reads tracked files and new ones that are not ignored.
    pub(crate) fn read(workspace: &Workspace) -> Result<Self, Failure> {
        let mut git = Command::new("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let list = ask(git.current_dir(&workspace.root), LISTING)?;
        // A symbolic link is checked where it leads to.
        let existing = list.lines().filter(|path| {
            let path = workspace.root.join(path);
            path.is_file() && !path.is_symlink()
        });
        let paths: Vec<String> = existing.map(str::to_owned).collect();
        let files = paths
            .iter()
            .filter_map(|path| {
                let text = fs::read_to_string(workspace.root.join(path)).ok()?;
                Some(File {
                    path: path.clone(),
                    text,
                })
            })
            .collect();
        Ok(Self { files, paths })
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        Self {
            paths: files.iter().map(|file| file.path.clone()).collect(),
            files,
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files().find(|file| file.path == path)
    }

    /// Returns whether there is a file or a directory with this path.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty()
            || self.paths.iter().any(|file| {
                file.strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_exist_by_their_files() {
        let tree = Tree::of(&[("crates/model/src/lib.rs", "")]);
        assert!(tree.has("crates/model/src/lib.rs"));
        assert!(tree.has("crates/model/"));
        assert!(!tree.has("crates/mod"));
    }
}
