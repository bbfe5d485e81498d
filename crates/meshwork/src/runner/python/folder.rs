//! The folder of one run: the script's own part, and what it leaves for the worker.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that nobody else may enter, gone when this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    root: Option<TempDir>,
    work: PathBuf,
    outcome: PathBuf,
}

impl Folder {
    /// A new folder that holds the script.
    pub(super) fn with(script: &[u8]) -> io::Result<Self> {
        let root = tempfile::Builder::new()
            .prefix("meshwork-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let (work, outcome) = (root.path().join("work"), root.path().join("outcome"));
        fs::create_dir(&work)?;
        fs::write(work.join("script.py"), script)?;
        Ok(Self {
            root: Some(root),
            work,
            outcome,
        })
    }

    /// Where the script runs; also its home and its place for temporary files.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// Where it leaves how it ended, outside of what it looks at.
    pub(super) fn outcome(&self) -> &Path {
        &self.outcome
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(root) = self.root.take() else { return };
        let path = root.keep();
        let removed = fs::remove_dir_all(&path).or_else(|_| {
            open_up(&path);
            fs::remove_dir_all(&path)
        });
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "a script's folder is left behind");
        }
    }
}

/// Scripts may leave folders that even their owner may not empty.
fn open_up(path: &Path) {
    // What cannot be opened cannot be removed either, and is reported then.
    let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_leaves_nothing_behind() {
        let folder = Folder::with(b"x = 1").unwrap();
        let root = folder.work().parent().unwrap().to_owned();
        assert_eq!(
            fs::metadata(&root).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(fs::read(folder.work().join("script.py")).unwrap(), b"x = 1");
        let locked = folder.work().join("a/b");
        fs::create_dir_all(&locked).unwrap();
        fs::write(locked.join("file"), "").unwrap();
        fs::set_permissions(&locked, Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(locked.parent().unwrap(), Permissions::from_mode(0o500)).unwrap();
        drop(folder);
        assert!(!root.exists());
    }
}
