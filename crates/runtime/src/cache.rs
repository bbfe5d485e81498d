//! Cache of this user for what runtimes build from scripts: compiled programs, and environments of Python. An entry is a
//! folder under a digest. It is complete when its mark exists; a lock file keeps builders apart, and a run holds it shared.

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use meshwork_model::outcome::Failure;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::{Run, process};
use crate::clock::host_ms;

/// Variable with the folder of the cache.
pub(super) const VARIABLE: &str = "MESHWORK_CACHE";
/// Name of the folder below the user's own cache.
const NAME: &str = "meshwork";
/// File that marks a complete entry. Its time is that of the last use.
const MARK: &str = ".complete";
/// Ending of the names of lock files.
const LOCK: &str = "lock";
/// Most attempts to lock an entry that other processes build and remove meanwhile.
const MAX_ATTEMPTS: usize = 100;

/// A part of the cache, with its limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cache {
    /// Name of its folder.
    pub(super) name: &'static str,
    /// Greatest size of all entries, in bytes. The least recently used are removed.
    pub(super) bytes: u64,
    /// Greatest number of entries.
    pub(super) entries: usize,
}

/// An entry that no other process removes or builds while this exists. An incomplete one is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    /// Folder of the entry.
    pub(super) path: PathBuf,
    is_complete: bool,
    lock: File,
}

/// Returns the digest of these parts, as the name of an entry.
pub(super) fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize())
}

/// Returns the folder of the whole cache.
fn root() -> PathBuf {
    let of = |name: &str| {
        let path = std::env::var_os(name).filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    };
    let own = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    let own = own.map(|cache| cache.join(NAME));
    let shared = || std::env::temp_dir().join(format!("{NAME}-cache-{}", geteuid().as_raw()));
    of(VARIABLE).or(own).unwrap_or_else(shared)
}

impl Cache {
    fn folder(self) -> io::Result<PathBuf> {
        let folder = root().join(self.name);
        fs::create_dir_all(&folder)?;
        let about = fs::symlink_metadata(&folder)?;
        if !about.is_dir() || about.uid() != geteuid().as_raw() {
            let name = folder.display();
            let message = format!("{name} is no folder of this user: set {VARIABLE}");
            return Err(io::Error::other(message));
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        Ok(folder)
    }

    /// Returns an entry, as [`Self::entry`] does, within the time of a run.
    pub(super) async fn entry_for(
        self,
        name: String,
        run: &Run,
        dropped: &CancellationToken,
    ) -> Result<Entry, Failure> {
        tokio::select! {
            entry = process::blocking(move || self.entry(&name)) => {
                entry.map_err(|error| process::cannot("use the cache", &error))
            }
            () = tokio::time::sleep_until(run.deadline) => Err(Failure::timeout()),
            _ = run.stop.stopped() => Err(Failure::stopped()),
            () = dropped.cancelled() => Err(Failure::stopped()),
        }
    }

    /// Returns an entry: a complete one, or an empty folder to be built and then marked. Waits for another process that
    /// builds the same one.
    pub(super) fn entry(self, name: &str) -> io::Result<Entry> {
        let path = self.folder()?.join(name);
        let lock_path = path.with_extension(LOCK);
        for _ in 0..MAX_ATTEMPTS {
            let lock = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&lock_path)?;
            lock.lock_shared()?;
            if path.join(MARK).exists() && is_at(&lock, &lock_path) {
                touch(&path);
                let is_complete = true;
                return Ok(Entry {
                    path,
                    is_complete,
                    lock,
                });
            }
            lock.unlock()?;
            lock.lock()?;
            // Another process may have built or removed it meanwhile.
            if !path.join(MARK).exists() && is_at(&lock, &lock_path) {
                let _ = fs::remove_dir_all(&path);
                fs::create_dir(&path)?;
                let is_complete = false;
                return Ok(Entry {
                    path,
                    is_complete,
                    lock,
                });
            }
        }
        let name = path.display();
        Err(io::Error::other(format!("{name} is always in change")))
    }

    /// Removes the least recently used entries beyond the limits. Entries in use stay.
    pub(super) fn trim(self) -> io::Result<()> {
        let folders = fs::read_dir(self.folder()?)?.flatten();
        let entries = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let used = |path: &Path| fs::metadata(path.join(MARK)).and_then(|mark| mark.modified());
        // A killed process has left those without a mark.
        let mut entries: Vec<(SystemTime, PathBuf)> = entries
            .map(|entry| (used(&entry.path()).unwrap_or(UNIX_EPOCH), entry.path()))
            .collect();
        entries.sort();
        let sizes: Vec<_> = entries.iter().map(|(_, path)| size(path)).collect();
        let (mut bytes, mut number) = (sizes.iter().sum::<u64>(), entries.len());
        for ((_, path), size) in entries.iter().zip(sizes) {
            if bytes <= self.bytes && number <= self.entries {
                break;
            }
            let lock = File::open(path.with_extension(LOCK));
            // The lock file goes last, while it is locked.
            if lock.is_ok_and(|lock| lock.try_lock().is_ok() && remove(path).is_ok()) {
                bytes -= size;
                number -= 1;
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Returns true if the entry can be used; else it has to be built.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Marks a built entry, and removes others beyond the limits of the cache.
    pub(super) fn complete(mut self, cache: Cache) -> io::Result<Self> {
        File::create(self.path.join(MARK))?;
        self.is_complete = true;
        // A shared lock replaces the exclusive one.
        self.lock.lock_shared()?;
        // Without it the cache is too large until the next entry.
        let _ = cache.trim();
        Ok(self)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_complete {
            // What remains is removed when the entry is built again, or when the cache is full.
            let _ = remove(&self.path);
        }
    }
}

/// Removes an entry and its lock file, which the caller has locked.
fn remove(entry: &Path) -> io::Result<()> {
    fs::remove_dir_all(entry)?;
    fs::remove_file(entry.with_extension(LOCK))
}

/// Returns true if an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let about = |about: fs::Metadata| (about.dev(), about.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => about(open) == about(there),
        _ => false,
    }
}

/// Notes the use of an entry.
fn touch(entry: &Path) {
    let now = UNIX_EPOCH + Duration::from_millis(host_ms());
    // Without it, the entry only seems older.
    let _ = File::options()
        .write(true)
        .open(entry.join(MARK))
        .and_then(|mark| mark.set_times(FileTimes::new().set_modified(now)));
}

/// Returns the size of all files below a folder, in bytes. Links count nothing.
fn size(folder: &Path) -> u64 {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(about) if about.is_dir() => folders.push(entry.path()),
                Ok(about) if about.is_file() => bytes += about.len(),
                _ => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cache of this test process.
    fn cache(name: &'static str, bytes: u64, entries: usize) -> Cache {
        Cache {
            name,
            bytes,
            entries,
        }
    }

    fn build(cache: Cache, name: &str, bytes: usize) -> Entry {
        let entry = cache.entry(name).unwrap();
        assert!(!entry.is_complete());
        fs::write(entry.path.join("program"), vec![0; bytes]).unwrap();
        entry.complete(cache).unwrap()
    }

    #[test]
    fn the_least_recently_used_is_removed_unless_it_is_in_use() {
        let name: &'static str = format!("test-{}", std::process::id()).leak();
        let cache = cache(name, 250, 10);
        let names = ["a", "b", "c", "d"].map(|name| digest(&[name.as_bytes()]));
        let first = build(cache, &names[0], 100);
        drop(build(cache, &names[1], 100));
        let folder = cache.folder().unwrap();
        let old = FileTimes::new().set_modified(UNIX_EPOCH);
        for name in &names[..2] {
            let mark = folder.join(name).join(MARK);
            let mark = File::options().write(true).open(mark).unwrap();
            mark.set_times(old).unwrap();
        }
        drop(build(cache, &names[2], 100));
        let there = |name: &String| folder.join(name).exists();
        assert_eq!(names.each_ref().map(there), [true, false, true, false]);
        drop(first);
        drop(build(cache, &names[3], 200));
        assert_eq!(names.each_ref().map(there), [false, false, false, true]);
        assert!(cache.entry(&names[3]).unwrap().is_complete());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_entry_that_was_not_completed_is_removed() {
        let name: &'static str = format!("test-part-{}", std::process::id()).leak();
        let cache = cache(name, 250, 10);
        let part = cache.entry("part").unwrap();
        fs::write(part.path.join("program"), "half").unwrap();
        let (path, folder) = (part.path.clone(), cache.folder().unwrap());
        drop(part);
        assert!(!path.exists() && fs::read_dir(&folder).unwrap().next().is_none());
        // A killed process leaves it, and the next one builds it anew.
        fs::create_dir(&path).unwrap();
        fs::write(path.join("program"), "half").unwrap();
        let entry = cache.entry("part").unwrap();
        assert!(!entry.is_complete() && !entry.path.join("program").exists());
        drop(entry);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn parts_of_a_digest_do_not_run_together() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
    }
}
