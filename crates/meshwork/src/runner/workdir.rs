//! Folder of one run: the working directory of the script, and files for the worker. Also removes folders of killed
//! workers.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::Inputs;

/// Prefix of the folders' names.
const PREFIX: &str = "meshwork-";
/// Name of the file that the worker of a run keeps locked.
const LOCK: &str = "lock";
/// Greatest number of folders that one sweep checks; the next one continues.
const MAX_SWEPT: usize = 10_000;

/// A folder that no other user may enter. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    root: Option<TempDir>,
    work: PathBuf,
    outcome: PathBuf,
    progress: PathBuf,
    inputs: Option<PathBuf>,
    /// Holds the lock.
    _lock: File,
}

impl Folder {
    /// Creates a folder, with the script under its name if there is one.
    pub(super) fn with(script: Option<(&str, &[u8])>) -> io::Result<Self> {
        let root = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        // The final name appears only when the file is locked.
        let (lock, unlocked) = (root.path().join(LOCK), root.path().join("unlocked"));
        let file = File::create(&unlocked)?;
        file.lock()?;
        fs::rename(unlocked, lock)?;
        let [work, outcome, progress] =
            ["work", "outcome", "progress"].map(|name| root.path().join(name));
        fs::create_dir(&work)?;
        if let Some((name, script)) = script {
            fs::write(work.join(name), script)?;
        }
        Ok(Self {
            root: Some(root),
            work,
            outcome,
            progress,
            inputs: None,
            _lock: file,
        })
    }

    /// Returns the folder itself, in which the worker makes pipes.
    pub(super) fn root(&self) -> &Path {
        // The working directory is inside of the folder.
        self.work.parent().unwrap_or(&self.work)
    }

    /// Writes the results of other jobs into a file.
    pub(super) fn lay_out(&mut self, inputs: &Inputs) -> io::Result<()> {
        if !inputs.is_empty() {
            let path = self.root().join("inputs.json");
            fs::write(&path, inputs.file())?;
            self.inputs = Some(path);
        }
        Ok(())
    }

    /// Returns the file with the results of other jobs.
    pub(super) fn inputs(&self) -> Option<&Path> {
        self.inputs.as_deref()
    }

    /// Returns the working directory of the script, which is also its `HOME` and `TMPDIR`.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the file of the outcome, outside of the working directory.
    pub(super) fn outcome(&self) -> &Path {
        &self.outcome
    }

    /// Creates the named pipe for progress, and returns its path.
    pub(super) fn progress(&self) -> &Path {
        &self.progress
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(root) = self.root.take() else {
            return;
        };
        let path = root.keep();
        if let Err(error) = remove(&path) {
            tracing::warn!(path = %path.display(), %error, "folder of a script not removed");
        }
    }
}

/// Removes folders of killed workers from the folder for temporary files.
pub(super) async fn sweep_temporary() {
    // If the task panics, folders remain for the next sweep.
    let _ = tokio::task::spawn_blocking(|| sweep(&std::env::temp_dir())).await;
}

/// Removes the folders of workers that were killed between two scripts, or together with a launcher. The folder of a
/// running script is removed by its launcher.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for entry in ours.take(MAX_SWEPT) {
        let folder = entry.path();
        // `parent` may be writable for all, so folders of other users and links are skipped.
        let owned = entry
            .metadata()
            .is_ok_and(|m| m.is_dir() && m.uid() == geteuid().as_raw());
        if owned
            && is_orphan(&folder)
            && let Err(error) = remove(&folder)
        {
            tracing::debug!(path = %folder.display(), %error, "old folder of a script not removed");
        }
    }
}

/// Returns true if the worker that made this folder has ended.
fn is_orphan(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

/// Removes the folder of a run if its worker has ended. Returns false if the worker still runs.
pub(super) fn remove_orphan(folder: &Path) -> bool {
    let lock = File::open(folder.join(LOCK));
    match lock.map(|lock| lock.try_lock().is_ok()) {
        Ok(false) => return false,
        // The next worker tries again what cannot be removed now.
        Ok(true) => drop(remove(folder)),
        // The worker has removed it.
        Err(_) => {}
    }
    true
}

/// Removes the lock last, so that the next sweep completes an interrupted removal.
fn remove(path: &Path) -> io::Result<()> {
    empty(path).or_else(|_| {
        open_up(path);
        empty(path)
    })?;
    fs::remove_dir_all(path)
}

/// Removes all files except the lock.
fn empty(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        let removed = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        match removed {
            // A launcher and the next worker may remove the same file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// Makes folders of scripts writable, since even their owner may have no right to empty them.
fn open_up(path: &Path) {
    // A folder that stays closed makes the removal fail, which is reported.
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
    fn a_removal_that_was_cut_off_is_ended_by_the_next_sweep() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("meshwork-cut");
        fs::create_dir_all(folder.join("work/deep")).unwrap();
        fs::write(folder.join(LOCK), "").unwrap();
        fs::write(folder.join("outcome"), "").unwrap();
        empty(&folder).unwrap();
        let left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        sweep(parent.path());
        assert!(!folder.exists());
    }

    #[test]
    fn it_is_private_and_leaves_nothing_behind() {
        let folder = Folder::with(Some(("script.py", b"x = 1"))).unwrap();
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

    #[test]
    fn only_what_nobody_holds_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, lock: Option<&str>| {
            let folder = parent.path().join(name);
            fs::create_dir_all(folder.join("work")).unwrap();
            lock.map(|lock| File::create(folder.join(lock)).unwrap())
        };
        let held = make("meshwork-held", Some(LOCK)).unwrap();
        held.lock().unwrap();
        make("meshwork-orphan", Some(LOCK));
        make("meshwork-being-made", Some("unlocked"));
        make("meshwork-of-another-kind", None);
        make("other", Some(LOCK));
        std::os::unix::fs::symlink(
            parent.path().join("other"),
            parent.path().join("meshwork-link"),
        )
        .unwrap();
        sweep(parent.path());
        let left = fs::read_dir(parent.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(
            left,
            [
                "meshwork-being-made",
                "meshwork-held",
                "meshwork-link",
                "meshwork-of-another-kind",
                "other"
            ]
        );
        sweep(&parent.path().join("not there"));
    }

    #[test]
    fn a_folder_in_use_is_held() {
        let folder = Folder::with(None).unwrap();
        assert!(!is_orphan(folder.work().parent().unwrap()));
    }
}
