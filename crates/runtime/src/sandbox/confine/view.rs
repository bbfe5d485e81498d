//! The files that a confined run sees: one list, from which the root folder and the rules of Landlock are made.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::super::orders::Orders;

/// Folders of the system. None of them contains data of users.
pub(in super::super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
];

/// Files of `/etc` that programs need to run, to find hosts and users, and to check certificates. Others may contain
/// secrets.
const ETC: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "protocols",
    "resolv.conf",
    "rpc",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "xattr.conf",
];

/// Prefixes of folders of `/etc` that belong to language runtimes: `python3.11`, `java-17-openjdk`.
const ETC_PREFIXES: &[&str] = &["java", "perl", "python", "php"];

/// Most symbolic links of one path, as in Linux.
const MAX_LINKS: usize = 40;

/// Access to a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    Read,
    Write,
}

/// The visible files.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Access by real path.
    pub(super) files: BTreeMap<PathBuf, Access>,
    /// Symbolic links outside of these, and their targets.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
    /// Folders of the host that runs write.
    written: Vec<PathBuf>,
}

impl View {
    /// Returns the view of a run.
    ///
    /// # Errors
    /// A path that the worker names does not exist, or is the root folder.
    pub(super) fn of(orders: &Orders) -> io::Result<Self> {
        let named = |option: &str, path: &Path, error: io::Error| {
            io::Error::other(format!("{option} {}: {error}", path.display()))
        };
        let mut view = Self::default();
        for path in &orders.confinement.write {
            let real = resolve(path)
                .map_err(|error| named("--write", path, error))?
                .0;
            view.written.push(real);
        }
        for folder in SYSTEM {
            view.add_if_there(Path::new(folder));
        }
        let etc = Path::new("/etc");
        for name in ETC {
            view.add_if_there(&etc.join(name));
        }
        let entries = fs::read_dir(etc).into_iter().flatten().flatten();
        for name in entries.map(|entry| entry.file_name()) {
            let text = name.to_string_lossy();
            if ETC_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
                view.add_if_there(&etc.join(name));
            }
        }
        for path in &orders.interpreter {
            view.add_if_there(path);
        }
        for (paths, access, option) in [
            (&orders.confinement.read, Access::Read, "--read"),
            (&orders.confinement.write, Access::Write, "--write"),
        ] {
            for path in paths {
                let added = view.add(path, access);
                added.map_err(|error| named(option, path, error))?;
            }
        }
        view.simplify();
        Ok(view)
    }

    fn add_if_there(&mut self, path: &Path) {
        // Hosts have different folders, and an interpreter names folders that do not exist.
        let _ = self.add(path, Access::Read);
    }

    /// Adds a path with the links on the way to it. A run may have made those in folders that runs write, so they lead
    /// nowhere.
    fn add(&mut self, path: &Path, access: Access) -> io::Result<()> {
        let (target, links) = resolve(path)?;
        let is_written =
            |link: &&PathBuf| self.written.iter().any(|folder| link.starts_with(folder));
        if let Some(link) = links.iter().map(|(link, _)| link).find(is_written) {
            return Err(io::Error::other(format!(
                "{} is a symbolic link in a folder that scripts write: name its target",
                link.display()
            )));
        }
        self.links.extend(links);
        let known = self.files.entry(target).or_insert(access);
        *known = (*known).max(access);
        Ok(())
    }

    /// Removes what folders of the view contain anyway.
    fn simplify(&mut self) {
        let all = self.files.clone();
        let covers = |folder: &Path, access: Access| {
            let mut above = folder.ancestors().skip(1);
            above.any(|above| all.get(above).is_some_and(|has| *has >= access))
        };
        self.files.retain(|path, access| !covers(path, *access));
        self.links.retain(|path, _| !covers(path, Access::Read));
    }
}

/// Returns the real path, and the links on the way to it with their targets.
fn resolve(path: &Path) -> io::Result<(PathBuf, Vec<(PathBuf, PathBuf)>)> {
    if !path.is_absolute() {
        return Err(io::Error::other("give an absolute path"));
    }
    let mut real = PathBuf::from("/");
    let mut links = Vec::new();
    let mut pending = path.to_owned();
    while let Some((link, to, next)) = first_link(&pending, &mut real)? {
        links.push((link, to));
        if links.len() > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        pending = next;
    }
    match real == Path::new("/") {
        true => Err(io::Error::other(
            "it is the whole file system: use `--sandbox open`",
        )),
        false => Ok((real, links)),
    }
}

/// Follows a path up to its first symbolic link. Returns the link, its target, and the path that remains to follow. If
/// there is none, `real` is the real path.
fn first_link(path: &Path, real: &mut PathBuf) -> io::Result<Option<(PathBuf, PathBuf, PathBuf)>> {
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        match part {
            Component::RootDir => *real = PathBuf::from("/"),
            Component::ParentDir => drop(real.pop()),
            Component::Normal(name) => {
                let next = real.join(name);
                if fs::symlink_metadata(&next)?.is_symlink() {
                    let to = fs::read_link(&next)?;
                    let rest = real.join(&to).join(parts.as_path());
                    return Ok(Some((next, to, rest)));
                }
                *real = next;
            }
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Confinement;

    fn view(read: &[&Path], write: &[&Path]) -> io::Result<View> {
        let owned = |paths: &[&Path]| paths.iter().map(|path| (*path).to_owned()).collect();
        View::of(&Orders {
            confinement: Confinement {
                read: owned(read),
                write: owned(write),
                ..Confinement::default()
            },
            ..Orders::default()
        })
    }

    #[test]
    fn links_lead_to_real_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real", root.join("relative")).unwrap();
        symlink(root.join("relative/deep"), root.join("absolute")).unwrap();
        let view = view(&[&root.join("absolute")], &[]).unwrap();
        assert_eq!(view.files.get(&root.join("real/deep")), Some(&Access::Read));
        assert_eq!(view.links.get(&root.join("relative")), Some(&"real".into()));
        let absolute = view.links.get(&root.join("absolute"));
        assert_eq!(absolute, Some(&root.join("relative/deep")));
    }

    #[test]
    fn a_folder_covers_what_is_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let below = root.join("below");
        fs::create_dir(&below).unwrap();
        let both = view(&[&below], &[&root]).unwrap();
        assert!(!both.files.contains_key(&below));
        let both = view(&[&root], &[&below]).unwrap();
        assert_eq!(both.files.get(&below), Some(&Access::Write));
        assert!(both.files.contains_key(Path::new("/usr")));
    }

    #[test]
    fn links_in_folders_that_runs_write_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("rw/in/deep")).unwrap();
        symlink("rw", root.join("outer")).unwrap();
        let [rw, outer] = ["rw", "outer"].map(|name| root.join(name));
        let shown = |below: &str| view(&[&rw.join(below)], &[&rw]);
        assert!(shown("in").is_ok() && shown("in/deep").is_ok());
        // The link itself is outside.
        assert!(view(&[], &[&outer]).is_ok() && view(&[&outer.join("in")], &[&rw]).is_ok());
        fs::remove_dir_all(rw.join("in")).unwrap();
        symlink("/etc", rw.join("in")).unwrap();
        for below in ["in", "in/passwd"] {
            let refused = shown(below).unwrap_err().to_string();
            assert!(refused.contains("rw/in is a symbolic link"), "{refused}");
        }
        assert!(view(&[], &[&outer, &rw.join("in")]).is_err());
        assert!(view(&[&outer.join("in")], &[&outer]).is_err());
    }

    #[test]
    fn paths_that_cannot_be_shown_are_refused_by_name() {
        for (path, fault) in [
            ("/no/such/path", "--read /no/such/path: No such file"),
            ("/", "--read /: it is the whole file system"),
            ("here", "--read here: give an absolute path"),
        ] {
            let refused = view(&[Path::new(path)], &[]).unwrap_err().to_string();
            assert!(refused.contains(fault), "{refused}");
        }
        let folder = tempfile::tempdir().unwrap();
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(view(&[&folder.path().join("loop")], &[]).is_err());
    }
}
