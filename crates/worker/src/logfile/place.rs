//! Resolves paths of log files step by step from the allowed folder, without following links, so that nobody can
//! redirect a path meanwhile. Missing folders are created.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Error of a folder for log files.
#[derive(Debug, thiserror::Error)]
#[error("the folder for log files {path}: {source}", path = .path.display())]
pub struct LogDirError {
    path: PathBuf,
    source: PlaceError,
}

/// Error of a path's resolution.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error("`{0}` is a link or no folder: a log file is reached through folders only")]
    NoFolder(String),
    #[error("`{0}` may be written by its group or by everybody: take that away (chmod go-w)")]
    Open(String),
    #[error("`{0}` belongs to another user: it has to be the worker's own, or root's")]
    Foreign(String),
    #[error("`{0}` is a link or no regular file, or has a second name")]
    NoFile(String),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for PlaceError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opening a pipe does not block.
const LOG: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::CREATE)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Greatest number of attempts to open a file that is rotated meanwhile.
const MOST_OPENED: usize = 100;

/// An allowed folder.
#[derive(Debug)]
pub(super) struct Folder {
    /// The path as it was given, and its real path.
    names: [PathBuf; 2],
    dir: OwnedFd,
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names[0].display().fmt(f)
    }
}

impl Folder {
    /// Opens an existing folder. Its path may contain links.
    pub(super) fn open(path: &Path) -> Result<Self, LogDirError> {
        let open = || {
            let real = path.canonicalize()?;
            let dir = openat(CWD, &real, FOLDER, Mode::empty())?;
            check_folder(&fstat(&dir)?, &path.display().to_string())?;
            Ok(Self {
                names: [std::path::absolute(path)?, real],
                dir,
            })
        };
        open().map_err(|source| LogDirError {
            path: path.to_owned(),
            source,
        })
    }

    /// Returns the rest of a path inside this folder.
    pub(super) fn inside(&self, path: &Path) -> Option<PathBuf> {
        let mut rests = self.names.iter().map(|name| path.strip_prefix(name).ok());
        let rest = rests.find_map(|rest| rest)?;
        (!rest.as_os_str().is_empty()).then(|| rest.to_owned())
    }

    /// Resolves a path inside this folder. The path is checked: it has only plain names.
    pub(super) fn place(&self, inside: &Path) -> Result<LogPath, PlaceError> {
        let (folders, name) = match (inside.parent(), inside.file_name()) {
            (Some(folders), Some(name)) => (folders, name.to_string_lossy().into_owned()),
            _ => return Err(PlaceError::NoFile(inside.display().to_string())),
        };
        let mut dir = self.dir.try_clone()?;
        check_folder(&fstat(&dir)?, &self.to_string())?;
        for folder in folders.iter() {
            let shown = folder.to_string_lossy();
            dir = step(&dir, folder.as_ref(), &shown)?;
        }
        Ok(LogPath {
            dir: Arc::new(dir),
            name,
        })
    }
}

/// Opens the next folder of a path; creates it if it is missing.
fn step(dir: &OwnedFd, folder: &Path, shown: &str) -> Result<OwnedFd, PlaceError> {
    let open = || openat(dir, folder, FOLDER, Mode::empty());
    let opened = match open() {
        Err(Errno::NOENT) => match mkdirat(dir, folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => open(),
            Err(error) => Err(error),
        },
        opened => opened,
    };
    match opened {
        Ok(next) => {
            check_folder(&fstat(&next)?, shown)?;
            Ok(next)
        }
        Err(Errno::LOOP | Errno::NOTDIR) => Err(PlaceError::NoFolder(shown.to_owned())),
        Err(error) => Err(error.into()),
    }
}

/// Checks that no other user can write to a folder.
fn check_folder(about: &Stat, shown: &str) -> Result<(), PlaceError> {
    let own = [geteuid().as_raw(), 0].contains(&about.st_uid);
    if !own {
        Err(PlaceError::Foreign(shown.to_owned()))
    } else if Mode::from_raw_mode(about.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        Err(PlaceError::Open(shown.to_owned()))
    } else {
        Ok(())
    }
}

/// Resolved location of a log file.
#[derive(Debug, Clone)]
pub(super) struct LogPath {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) name: String,
}

impl LogPath {
    /// Opens the file to append to it. A new file is readable for the worker's user only.
    pub(super) fn open(&self) -> Result<File, PlaceError> {
        for _ in 0..MOST_OPENED {
            if let Some(file) = self.open_once()? {
                return Ok(file);
            }
        }
        Err(PlaceError::NoFile(self.name.clone()))
    }

    /// Opens the file once. Returns `None` if another run rotated it meanwhile.
    fn open_once(&self) -> Result<Option<File>, PlaceError> {
        let no_file = || PlaceError::NoFile(self.name.clone());
        let own = Mode::RUSR | Mode::WUSR;
        let opened = openat(&*self.dir, &self.name, LOG, own).map_err(|error| match error {
            // A link, a folder, or a pipe without a reader.
            Errno::LOOP | Errno::ISDIR | Errno::NXIO => no_file(),
            error => error.into(),
        });
        let file = File::from(opened?);
        let about = fstat(&file)?;
        if about.st_nlink == 0 {
            return Ok(None);
        }
        let regular = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        // A hard link may be anywhere.
        if !regular || about.st_nlink != 1 {
            return Err(no_file());
        }
        if about.st_uid != geteuid().as_raw() {
            return Err(PlaceError::Foreign(self.name.clone()));
        }
        if Mode::from_raw_mode(about.st_mode) != own {
            fchmod(&file, own)?;
        }
        Ok(Some(file))
    }

    /// Returns true if this file is still the one at the path.
    pub(super) fn is(&self, file: &File) -> io::Result<bool> {
        let about = fstat(file)?;
        match statat(&*self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (about.st_dev, about.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
