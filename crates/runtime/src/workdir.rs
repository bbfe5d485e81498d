//! Folder of one run: the working directory of the script, and files for the worker. Also removes folders of killed
//! workers. A script may rename or replace everything, so the folder is used by its descriptor.

mod remove;

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::Inputs;
use crate::clock::host_ms;

/// Prefix of the folders' names.
const PREFIX: &str = "meshwork-";
/// Length of the random part of the folders' names. Names that people choose, as in `meshwork-backup`, are mostly shorter.
const RANDOM: usize = 12;
/// Name of the file that the worker of a run keeps locked.
const LOCK: &str = "lock";
/// Name of the file with the outcome of a script.
const OUTCOME: &str = "outcome";
/// Name of the socket for requests of the script.
const CALLS: &str = "calls";
/// Greatest number of folders that one sweep checks; the next one continues.
const MAX_SWEPT: usize = 10_000;
/// Age at which a folder without a lock is removed: its worker was killed when it made the folder, or its script has
/// removed the lock.
const WITHOUT_LOCK: Duration = Duration::from_secs(3600);

/// A folder that no other user may enter. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    root: Root,
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
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(RANDOM)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let root = Root::open(made.path())?;
        // Fails only where directories cannot be locked; the file suffices there.
        let _ = root.lock();
        // The final name appears only when the file is locked.
        let (lock, unlocked) = (made.path().join(LOCK), made.path().join("unlocked"));
        let file = File::create(&unlocked)?;
        file.lock()?;
        fs::rename(unlocked, lock)?;
        let [work, outcome, progress] =
            ["work", OUTCOME, "progress"].map(|name| made.path().join(name));
        fs::create_dir(&work)?;
        if let Some((name, script)) = script {
            fs::write(work.join(name), script)?;
        }
        // From here on, the folder is removed by its descriptor.
        let _ = made.keep();
        Ok(Self {
            root,
            work,
            outcome,
            progress,
            inputs: None,
            _lock: file,
        })
    }

    /// Returns the path of the socket for requests.
    pub(super) fn calls(&self) -> PathBuf {
        self.root.path.join(CALLS)
    }

    /// Returns the folder itself.
    pub(super) fn root(&self) -> &Path {
        &self.root.path
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

    /// Returns the path for the outcome, outside of the working directory.
    pub(super) fn outcome(&self) -> &Path {
        &self.outcome
    }

    /// Opens the outcome that the script has left.
    pub(super) fn open_outcome(&self) -> io::Result<File> {
        Ok(self.root.open_file(OUTCOME)?)
    }

    /// Returns the path of the named pipe for progress.
    pub(super) fn progress(&self) -> &Path {
        &self.progress
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = self.root.remove() {
            let path = self.root.path.display();
            tracing::warn!(%path, %error, "a script's folder is left behind");
        }
    }
}

/// The folder of a run, by its descriptor and the path where it was made.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    directory: OwnedFd,
}

impl Root {
    /// Opens the folder at a path that is no link.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        let path = path.to_owned();
        Ok(Self { path, directory })
    }

    /// Locks the folder. A script can remove its lock file, but not this lock.
    fn lock(&self) -> Result<(), Errno> {
        flock(&self.directory, FlockOperation::NonBlockingLockExclusive)
    }

    /// Opens a regular file for reading. A pipe in its place does not block.
    fn open_file(&self, name: &str) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.directory, name, flags, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(Errno::INVAL),
        }
    }

    /// Removes the folder if its worker has ended. Returns false if the worker still runs.
    pub(super) fn remove_orphan(&self) -> bool {
        if self.lock() == Err(Errno::WOULDBLOCK) {
            return false;
        }
        let lock = self.open_file(LOCK);
        if lock.is_ok_and(|lock| lock.try_lock().is_err()) {
            return false;
        }
        // The next worker tries again what cannot be removed now.
        let _ = self.remove();
        true
    }

    /// Returns true if the worker that made this folder has ended.
    fn is_orphan(&self) -> bool {
        if self.lock() == Err(Errno::WOULDBLOCK) {
            return false;
        }
        match self.open_file(LOCK) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(_) => self.has_own_name() && self.is_old(),
        }
    }

    /// Returns true if the name has the form of [`Folder::with`].
    fn has_own_name(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str());
        let random = name.and_then(|name| name.strip_prefix(PREFIX));
        random.is_some_and(|random| {
            random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    }

    fn is_old(&self) -> bool {
        let directory = self.directory.try_clone().map(File::from);
        let changed = directory.and_then(|directory| directory.metadata()?.modified());
        let now = UNIX_EPOCH + Duration::from_millis(host_ms());
        changed.is_ok_and(|changed| {
            let age = now.duration_since(changed);
            age.is_ok_and(|age| age >= WITHOUT_LOCK)
        })
    }

    /// Removes the folder, the lock last, so that the next sweep completes an interrupted removal.
    fn remove(&self) -> io::Result<()> {
        remove::empty(self.directory.as_fd(), c"lock")?;
        match unlinkat(&self.directory, LOCK, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // The script has made a directory of this name.
            Err(_) => remove::empty(self.directory.as_fd(), c"")?,
        }
        if self.is_at(&self.path) {
            return Ok(unlinkat(CWD, &self.path, AtFlags::REMOVEDIR)?);
        }
        // The script has renamed the folder, and may have put a link in its place.
        let _ = unlinkat(CWD, &self.path, AtFlags::empty());
        let link = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
        match fs::read_link(link).ok().filter(|path| self.is_at(path)) {
            Some(path) => Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?),
            None => Ok(()),
        }
    }

    /// Returns true if the path, which may be a link, is this folder.
    fn is_at(&self, path: &Path) -> bool {
        let there = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        let Ok((own, there)) = fstat(&self.directory).and_then(|own| Ok((own, there?))) else {
            return false;
        };
        (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)
    }
}

/// Removes folders of killed workers from the folder for temporary files, once per process and in the background.
pub(super) fn sweep_once() {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| {
        // If there is no thread now, folders remain for the next worker.
        let thread = std::thread::Builder::new().name("sweep".to_owned());
        let _ = thread.spawn(|| sweep(&std::env::temp_dir()));
    });
}

/// Removes the folders of workers that were killed between two scripts, or together with a launcher. The folder of a
/// running script is removed by its launcher.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for entry in ours.take(MAX_SWEPT) {
        // `parent` may be writable for all, so folders of other users and links are skipped.
        let owned = entry
            .metadata()
            .is_ok_and(|m| m.is_dir() && m.uid() == geteuid().as_raw());
        let Ok(root) = Root::open(&entry.path()) else {
            continue;
        };
        if owned
            && root.is_orphan()
            && let Err(error) = root.remove()
        {
            tracing::debug!(path = %root.path.display(), %error, "an old folder cannot be removed");
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
        remove::empty(File::open(&folder).unwrap().as_fd(), c"lock").unwrap();
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
        let again = Root::open(folder.root()).unwrap();
        assert!(!again.is_orphan() && !again.remove_orphan());
        // Also if its script removes the lock, however old it is.
        fs::remove_file(folder.root().join(LOCK)).unwrap();
        age(folder.root());
        assert!(!again.is_orphan() && !again.remove_orphan());
    }

    /// Makes a folder old enough to be removed without a lock.
    fn age(folder: &Path) {
        let long_ago = UNIX_EPOCH + Duration::from_millis(host_ms()) - WITHOUT_LOCK;
        File::open(folder).unwrap().set_modified(long_ago).unwrap();
    }

    #[test]
    fn a_folder_without_a_lock_is_removed_after_an_hour() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir_all(folder.join("work")).unwrap();
            folder
        };
        let (young, old, other) = (
            make("meshwork-abcdefABC123"),
            make("meshwork-abcdefABC124"),
            make("meshwork-backup"),
        );
        age(&old);
        age(&other);
        sweep(parent.path());
        assert!(young.exists() && !old.exists());
        assert!(other.exists(), "no worker makes such a name");
    }

    #[test]
    fn a_folder_that_was_renamed_is_removed_and_no_link_followed() {
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("kept"), "").unwrap();
        let folder = Folder::with(Some(("script", b"x"))).unwrap();
        let root = folder.root().to_owned();
        let moved = root.with_extension("moved");
        fs::rename(&root, &moved).unwrap();
        std::os::unix::fs::symlink(other.path(), &root).unwrap();
        drop(folder);
        assert!(!moved.exists() && fs::symlink_metadata(&root).is_err());
        assert!(other.path().join("kept").exists());
    }

    #[test]
    fn an_outcome_is_a_file() {
        let folder = Folder::with(None).unwrap();
        assert!(folder.open_outcome().is_err());
        rustix::fs::mknodat(CWD, folder.outcome(), FileType::Fifo, Mode::RWXU, 0).unwrap();
        // An ordinary open would wait for a writer.
        assert!(folder.open_outcome().is_err());
        fs::remove_file(folder.outcome()).unwrap();
        fs::write(folder.outcome(), "").unwrap();
        assert!(folder.open_outcome().is_ok());
    }
}
