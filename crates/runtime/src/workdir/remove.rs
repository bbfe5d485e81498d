//! Removal of directory trees that scripts made: however deep, with a few descriptors, a bounded stack, and without
//! following links.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, fstat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

/// Greatest number of nested directories that are open at once. Most trees of scripts are not deeper; directories below
/// are moved up first.
const MAX_OPEN: usize = 8;
/// Beginning of the names of moved directories.
const MOVED: &str = ".moved-";
/// Mode of directories whose entries can be removed.
const OWN: Mode = Mode::RWXU;
/// Flags for opening a directory.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes all entries of a directory except `keep`.
///
/// # Errors
/// An entry cannot be removed; the others are removed nevertheless.
pub(super) fn empty(root: BorrowedFd<'_>, keep: &CStr) -> io::Result<()> {
    let mut removal = Removal {
        root,
        keep,
        moves: 0,
    };
    loop {
        let pass = removal.pass()?;
        match pass.error {
            None if !pass.is_repeated => return Ok(()),
            // Without progress, the next pass would fail alike.
            Some(error) if pass.removed == 0 => return Err(error.into()),
            _ => {}
        }
    }
}

/// Opens a directory, and makes it writable for its owner.
pub(super) fn open_directory(parent: BorrowedFd<'_>, name: &CStr) -> Result<Dir, Errno> {
    let open = || openat(parent, name, DIRECTORY, Mode::empty());
    let directory = match open() {
        Err(Errno::ACCESS) => {
            open_up(parent, name)?;
            open()?
        }
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(fstat(&directory)?.st_mode);
    if !mode.contains(OWN) {
        fchmod(&directory, OWN)?;
    }
    Dir::new(directory)
}

/// Makes a directory readable that cannot be opened. A link is not followed.
fn open_up(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(parent, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    chmodat(CWD, path, OWN, AtFlags::empty())
}

struct Removal<'a> {
    root: BorrowedFd<'a>,
    keep: &'a CStr,
    /// Number of moved directories, for their names.
    moves: u64,
}

/// The result of one pass over the tree.
#[derive(Default)]
struct Pass {
    /// Number of removed and moved entries.
    removed: u64,
    /// True if directories were moved, which this pass may have missed.
    is_repeated: bool,
    /// First error.
    error: Option<Errno>,
}

/// An open directory, and its name in its parent.
struct Level {
    entries: Dir,
    name: CString,
}

impl Pass {
    fn note(&mut self, removed: Result<(), Errno>) {
        match removed {
            // A launcher and the next worker may remove the same entry.
            Ok(()) | Err(Errno::NOENT) => self.removed += 1,
            Err(error) => _ = self.error.get_or_insert(error),
        }
    }
}

impl Removal<'_> {
    /// Removes what lies within [`MAX_OPEN`] levels, and moves deeper directories up.
    fn pass(&mut self) -> Result<Pass, Errno> {
        let mut pass = Pass::default();
        let mut levels = vec![Level {
            entries: open_directory(self.root, c".")?,
            name: c".".to_owned(),
        }];
        while let Some(level) = levels.last_mut() {
            let entry = match level.entries.next() {
                Some(Ok(entry)) => entry,
                Some(Err(error)) => return Err(error),
                None => {
                    let done = levels.pop();
                    if let (Some(parent), Some(done)) = (levels.last(), done) {
                        let parent = parent.entries.fd()?;
                        pass.note(unlinkat(parent, done.name, AtFlags::REMOVEDIR));
                    }
                    continue;
                }
            };
            let (name, kind) = (entry.file_name(), entry.file_type());
            let is_top = levels.len() == 1;
            if name == c"." || name == c".." || (is_top && name == self.keep) {
                continue;
            }
            if let Some(deeper) = self.remove(&levels, (name, kind), &mut pass) {
                levels.push(deeper);
            }
        }
        Ok(pass)
    }

    /// Removes an entry of the last level, or returns it as the next level.
    fn remove(
        &mut self,
        levels: &[Level],
        (name, kind): (&CStr, FileType),
        pass: &mut Pass,
    ) -> Option<Level> {
        let parent = match levels.last()?.entries.fd() {
            Ok(parent) => parent,
            Err(error) => {
                pass.note(Err(error));
                return None;
            }
        };
        if kind != FileType::Directory {
            match unlinkat(parent, name, AtFlags::empty()) {
                // The file system does not tell kinds.
                Err(Errno::ISDIR) => {}
                removed => {
                    pass.note(removed);
                    return None;
                }
            }
        }
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => {
                pass.note(removed);
                return None;
            }
        }
        if levels.len() >= MAX_OPEN {
            let moved = self.move_up(parent, name);
            pass.is_repeated |= moved.is_ok();
            pass.note(moved);
            return None;
        }
        match open_directory(parent, name) {
            Ok(entries) => {
                let name = name.to_owned();
                return Some(Level { entries, name });
            }
            Err(error) => pass.note(Err(error)),
        }
        None
    }

    /// Moves a directory into the root, under a name that is free.
    fn move_up(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        loop {
            let free = format!("{MOVED}{}", self.moves);
            self.moves += 1;
            match renameat(parent, name, self.root, &free) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                // A directory that changes its parent has to be writable.
                Err(Errno::ACCESS) => {
                    open_up(parent, name)?;
                    return renameat(parent, name, self.root, &free);
                }
                moved => return moved,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use rustix::fs::mkdirat;

    use super::*;

    fn entries(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// Makes nested directories, deeper than a path can name.
    fn nest(root: &Path, depth: usize) {
        let mut at = openat(CWD, root, DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&at, "a", OWN).unwrap();
            File::create(format!("/proc/self/fd/{}/file", at.as_raw_fd())).unwrap();
            at = openat(&at, "a", DIRECTORY, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn a_deep_tree_takes_few_descriptors_and_little_stack() {
        let root = tempfile::tempdir().unwrap();
        nest(root.path(), 14_000);
        File::create(root.path().join("lock")).unwrap();
        let opened = File::open(root.path()).unwrap();
        // The recursive removal of the standard library overflows this stack.
        let thread = std::thread::Builder::new().stack_size(64 * 1024);
        let removed = thread.spawn(move || empty(opened.as_fd(), c"lock"));
        removed.unwrap().join().unwrap().unwrap();
        assert_eq!(entries(root.path()), ["lock"]);
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        File::create(other.path().join("kept")).unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        symlink(other.path(), root.path().join("a/link")).unwrap();
        symlink(other.path(), root.path().join("a/b/link")).unwrap();
        empty(File::open(root.path()).unwrap().as_fd(), c"lock").unwrap();
        assert!(entries(root.path()).is_empty());
        assert_eq!(entries(other.path()), ["kept"]);
    }

    #[test]
    fn closed_directories_and_taken_names_are_no_obstacle() {
        let root = tempfile::tempdir().unwrap();
        let deep = "a/b/c/d/e/f/g/h/i/j/k";
        fs::create_dir_all(root.path().join(deep)).unwrap();
        File::create(root.path().join(deep).join("file")).unwrap();
        fs::create_dir_all(root.path().join(".moved-0/full")).unwrap();
        File::create(root.path().join(".moved-1")).unwrap();
        for at in (1..deep.len() + 1).rev().step_by(2) {
            let closed = Permissions::from_mode(0o000);
            fs::set_permissions(root.path().join(&deep[..at]), closed).unwrap();
        }
        empty(File::open(root.path()).unwrap().as_fd(), c"lock").unwrap();
        assert!(entries(root.path()).is_empty());
    }

    #[test]
    fn a_wide_tree_goes_too() {
        let root = tempfile::tempdir().unwrap();
        for at in 0..300 {
            let folder = root.path().join(format!("{at}/x/y"));
            fs::create_dir_all(&folder).unwrap();
            File::create(folder.join("file")).unwrap();
        }
        empty(File::open(root.path()).unwrap().as_fd(), c"lock").unwrap();
        assert!(entries(root.path()).is_empty());
    }
}
