//! A root folder of its own for a run: a tmpfs with read-only binds, and private `/proc`, `/dev` and `/tmp`. The host's
//! file system is no longer reachable afterwards.

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use meshwork_model::sandbox::{Limit, Limits};
use rustix::fs::{StatVfsMountFlags, fstatvfs, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};
use rustix::process::pivot_root;

use super::super::mountinfo::unescape;
use super::processes::bound_namespace;
use super::view::{Access, View};

/// Place of the host's file system while the root is built.
const OLD: &str = "/.old";
/// Place of the limited file system while the root is built.
const SCRATCH: &str = "/.scratch";
/// Size of the root itself, which has only folders, links and mount points.
const ROOT_OPTIONS: &str = "mode=0755,size=4m,nr_inodes=16k";
/// Greatest limit of disk space for which the work folder is in memory.
pub(super) const MAX_IN_MEMORY: u64 = 1 << 30;
/// Size for which a limited file system has one file.
const PAGE: u64 = 4096;
/// Least number of files of a limited file system: its folders, the script and a few more.
const MIN_FILES: u64 = 64;
/// Devices that programs may use.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Links of `/dev`, and their targets.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// Mode of folders for temporary files.
const SHARED: u32 = 0o1777;

/// Folders of a run.
pub(super) struct Run<'a> {
    /// Folder of the run. It keeps its path.
    pub(super) folder: &'a Path,
    /// Work folder in it.
    pub(super) work: &'a Path,
    /// Limits of the run.
    pub(super) limits: &'a Limits,
}

/// Replaces the root folder of this process, which is in mount and pid namespaces of its own. Returns the limited file
/// system of the run, if it has one.
pub(super) fn build(view: &View, run: &Run<'_>) -> io::Result<Option<File>> {
    // The host never sees these mounts.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    named("make mounts private", mount_change("/", private))?;
    let mounts = Mounts::read()?;
    let below = run.folder.to_owned();
    tmpfs(&below, ROOT_OPTIONS)?;
    let old = below.join(&OLD[1..]);
    fs::create_dir(&old)?;
    named("change the root folder", pivot_root(&below, &old))?;
    std::env::set_current_dir("/")?;
    fill_dev()?;
    let scratch = run.limits.get(Limit::Disk);
    let scratch = scratch.filter(|disk| *disk <= MAX_IN_MEMORY);
    let place = match scratch {
        Some(_) => PathBuf::from(SCRATCH),
        None => below_old(run.folder),
    };
    temporary(&place, scratch, run.limits.get(Limit::Memory))?;
    for (path, access) in &view.files {
        show(path, *access, &mounts)?;
    }
    for (link, target) in &view.links {
        if fs::symlink_metadata(link).is_err() {
            make_parent(link)?;
            symlink(target, link)?;
        }
    }
    // Last, since a folder of the view may contain it.
    let limited = show_run(run, &place, scratch.is_some())?;
    fs::create_dir("/proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    named("mount /proc", mount("proc", "/proc", "proc", flags, None))?;
    bound_namespace(run.limits);
    let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
    named("make /proc read-only", mount_remount("/proc", flags, c""))?;
    named("leave the old root", unmount(OLD, UnmountFlags::DETACH))?;
    fs::remove_dir(OLD)?;
    if limited.is_some() {
        named("hide a mount", unmount(SCRATCH, UnmountFlags::DETACH))?;
        fs::remove_dir(SCRATCH)?;
    }
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    named("make the root read-only", mount_remount("/", flags, c""))?;
    std::env::set_current_dir(run.work)?;
    Ok(limited)
}

/// Adds the step to an error of the system.
fn named<T>(step: &str, done: Result<T, impl Into<io::Error>>) -> io::Result<T> {
    done.map_err(|error| io::Error::other(format!("cannot {step}: {}", error.into())))
}

fn tmpfs(at: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let made = mount("tmpfs", at, "tmpfs", flags, options.as_c_str());
    named(&format!("mount a tmpfs at {}", at.display()), made)
}

fn fill_dev() -> io::Result<()> {
    let dev = Path::new("/dev");
    fs::create_dir_all(dev.join("shm"))?;
    for name in DEVICES {
        let (from, to) = (Path::new(OLD).join("dev").join(name), dev.join(name));
        if from.exists() {
            File::create(&to)?;
            // It can be written, but its mode, owner and times, which are those of the host, cannot be changed.
            bind(&from, &to, MountFlags::NOEXEC | MountFlags::RDONLY)?;
        }
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, dev.join(name))?;
    }
    // Terminals of the run itself; without them only programs that ask for one fail.
    let pts = dev.join("pts");
    fs::create_dir(&pts)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    match mount("devpts", &pts, "devpts", flags, options) {
        Ok(()) => symlink("pts/ptmx", dev.join("ptmx")),
        Err(_) => fs::remove_dir(pts),
    }
}

/// Makes `/tmp` and `/dev/shm`: in a file system of limited size, or `/tmp` in the folder of the run and `/dev/shm` in memory.
fn temporary(place: &Path, limit: Option<u64>, memory: Option<u64>) -> io::Result<()> {
    if let Some(limit) = limit {
        fs::create_dir(SCRATCH)?;
        let files = (limit / PAGE).max(MIN_FILES);
        let options = format!("mode=0700,size={limit},nr_inodes={files}");
        tmpfs(Path::new(SCRATCH), &options)?;
    }
    let shared = |name: &str| {
        let folder = place.join(name);
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(SHARED))?;
        io::Result::Ok(folder)
    };
    fs::create_dir("/tmp")?;
    bind(&shared("tmp")?, Path::new("/tmp"), MountFlags::NODEV)?;
    match limit {
        Some(_) => bind(&shared("shm")?, Path::new("/dev/shm"), MountFlags::NODEV)?,
        // Shared memory has no place on a disk.
        None => {
            let size = memory.map_or(MAX_IN_MEMORY, |memory| memory.min(MAX_IN_MEMORY));
            tmpfs(Path::new("/dev/shm"), &format!("mode=1777,size={size}"))?;
        }
    }
    fs::create_dir("/var")?;
    symlink("/tmp", "/var/tmp")
}

/// Shows the folder of the run at its path. With a limited file system, the work folder is in it.
fn show_run(run: &Run<'_>, place: &Path, is_limited: bool) -> io::Result<Option<File>> {
    fs::create_dir_all(run.folder)?;
    let host = below_old(run.folder);
    bind(&host, run.folder, MountFlags::NODEV)?;
    if !is_limited {
        return Ok(None);
    }
    let work = place.join("work");
    copy_files(run.work, &work)?;
    bind(&work, run.work, MountFlags::NODEV)?;
    File::open(place).map(Some)
}

/// Returns true if a file system has no room left.
pub(super) fn is_full(files: &File) -> bool {
    fstatvfs(files).is_ok_and(|state| state.f_bavail == 0 || state.f_ffree == 0)
}

/// Copies the script, the only content of a new work folder.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn below_old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Shows a file or folder of the host at its path.
fn show(path: &Path, access: Access, mounts: &Mounts) -> io::Result<()> {
    let from = below_old(path);
    let step = format!("show {}", path.display());
    let is_folder = named(&step, fs::metadata(&from))?.is_dir();
    if fs::symlink_metadata(path).is_err() {
        make_parent(path)?;
        match is_folder {
            true => fs::create_dir(path)?,
            false => drop(File::create(path)?),
        }
    }
    named(&step, mount_bind_recursive(&from, path))?;
    let access = match access {
        Access::Read => MountFlags::RDONLY,
        Access::Write => MountFlags::empty(),
    };
    // A device is shown by its own name only, and keeps its mode.
    let own = match is_device(&from) {
        true => MountFlags::RDONLY,
        false => MountFlags::NODEV,
    };
    protect(path, access | own)?;
    for target in mounts.below(path) {
        protect(target, access | MountFlags::NODEV)?;
    }
    Ok(())
}

fn is_device(path: &Path) -> bool {
    let about = fs::metadata(path).map(|about| about.file_type());
    about.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device())
}

/// Shows one mount of a file or folder at a path.
fn bind(from: &Path, to: &Path, flags: MountFlags) -> io::Result<()> {
    named(&format!("show {}", to.display()), mount_bind(from, to))?;
    protect(to, flags)
}

/// Adds flags to a mount. No program in it gains privileges.
fn protect(target: &Path, flags: MountFlags) -> io::Result<()> {
    let flags = kept(target)? | MountFlags::BIND | MountFlags::NOSUID | flags;
    let step = format!("protect {}", target.display());
    named(&step, mount_remount(target, flags, c""))
}

/// Returns the flags of a mount that a remount has to keep.
fn kept(target: &Path) -> io::Result<MountFlags> {
    let has = statvfs(target)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
    ];
    let pairs = pairs.into_iter().filter(|(flag, _)| has.contains(*flag));
    Ok(pairs.fold(MountFlags::empty(), |all, (_, flag)| all | flag))
}

/// The mount points of the host.
struct Mounts(Vec<PathBuf>);

impl Mounts {
    fn read() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/self/mountinfo")?;
        let points = text.lines().filter_map(|line| line.split(' ').nth(4));
        Ok(Self(points.map(unescape).collect()))
    }

    /// Returns the mount points below a path.
    fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        let below = self.0.iter().map(PathBuf::as_path);
        below.filter(move |point| *point != path && point.starts_with(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_below_a_path_are_found() {
        let mounts = Mounts(vec!["/".into(), "/a".into(), "/a/b c".into(), "/ab".into()]);
        let below: Vec<_> = mounts.below(Path::new("/a")).collect();
        assert_eq!(below, [Path::new("/a/b c")]);
        assert!(Mounts::read().unwrap().0.contains(&PathBuf::from("/")));
    }
}
