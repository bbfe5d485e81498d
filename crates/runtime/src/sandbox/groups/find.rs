//! Finds the groups in which this process can make those of runs. Each is tried, since modes of files do not tell what a
//! container or a service manager refuses.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use meshwork_model::sandbox::{Limit, Limits};
use rustix::io::Errno;

use super::super::mountinfo::unescape;
use super::{Counts, Hierarchies, Hierarchy, Part, Version, pids, write};

/// Group of this process in a subtree of version 2 that is its own: a group with controllers for others has no processes.
const WORKER: &str = "meshwork-worker";
/// Limits of a trial: any memory that does not end it, and any number of processes.
const TRIAL: [(Limit, u64); 2] = [(Limit::Memory, 1 << 30), (Limit::Processes, 1 << 10)];

/// Returns the hierarchies that count memory, processes and processor time of runs, with the reasons why others do not.
pub(in super::super) fn find() -> (Hierarchies, Vec<String>) {
    let texts = ["/proc/self/mountinfo", "/proc/self/cgroup"].map(fs::read_to_string);
    let [Ok(mounts), Ok(own)] = texts else {
        return (
            Hierarchies::default(),
            vec!["/proc cannot be read".to_owned()],
        );
    };
    let mut found = Hierarchies::default();
    let mut reasons = Vec::new();
    for own in own_groups(&mounts, &own) {
        // What an earlier one counts is counted.
        let counts = Counts {
            memory: own.counts.memory && !found.count_memory(),
            processes: own.counts.processes && !found.count_processes(),
            cpu: own.counts.cpu && !found.count_cpu(),
        };
        if counts == Counts::default() {
            continue;
        }
        match try_out(Own { counts, ..own }) {
            Ok(hierarchy) => found.0.push(hierarchy),
            Err(reason) => reasons.push(reason),
        }
    }
    found.sweep();
    (found, reasons)
}

/// The group of this process in a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    version: Version,
    counts: Counts,
    group: PathBuf,
    /// Uppermost group that is visible here.
    top: PathBuf,
}

/// Returns the groups of this process, those of version 1 first: a controller that is in version 1 is in no other.
fn own_groups(mounts: &str, own: &str) -> Vec<Own> {
    let mut all = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let version = match controllers {
            "" => Version::V2,
            _ => Version::V1,
        };
        let has = |name| version == Version::V2 || controllers.split(',').any(|one| one == name);
        let counts = Counts {
            memory: has("memory"),
            processes: has("pids"),
            cpu: has("cpuacct") || version == Version::V2,
        };
        if counts != Counts::default()
            && let Some((top, root)) = mount_of(mounts, version, controllers)
            && let Ok(below) = Path::new(path).strip_prefix(&root)
            && below
                .components()
                .all(|part| part != std::path::Component::ParentDir)
        {
            all.push(Own {
                version,
                counts,
                group: top.join(below),
                top,
            });
        }
    }
    all.sort_by_key(|own| own.version == Version::V2);
    all
}

/// Returns the mount point of a hierarchy, and its group there.
fn mount_of(mounts: &str, version: Version, controllers: &str) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1)?);
        let is_it = match version {
            Version::V2 => name == "cgroup2",
            Version::V1 => {
                let has = |one| options.split(',').any(|option| option == one);
                name == "cgroup" && controllers.split(',').all(has)
            }
        };
        is_it.then(|| (unescape(point), unescape(root)))
    })
}

/// Returns a hierarchy in which a group was made, or the reason why there is none.
fn try_out(own: Own) -> Result<Hierarchy, String> {
    let failed = |error: io::Error| format!("{}: {error}", own.group.display());
    let (base, home) = match own.version {
        Version::V1 => (own.group.clone(), own.group.clone()),
        Version::V2 => delegated(&own)?,
    };
    let hierarchy = Hierarchy {
        version: own.version,
        counts: own.counts,
        base,
        home,
    };
    let limits: Limits = TRIAL.into_iter().collect();
    Part::create(&hierarchy, &limits).map_err(failed)?;
    Ok(hierarchy)
}

/// Returns a group of version 2 below which controllers can be used, and that of this process from now on. It is the own
/// group if this process is alone there, or the one above, where that does not evade a limit.
fn delegated(own: &Own) -> Result<(PathBuf, PathBuf), String> {
    let needed = needed(own.counts);
    let in_own = match enable(&own.group, &needed) {
        Ok(()) => return Ok((own.group.clone(), own.group.clone())),
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            match move_down(&own.group, &needed) {
                Ok(home) => return Ok((own.group.clone(), home)),
                Err(reason) => reason,
            }
        }
        Err(error) => error.to_string(),
    };
    let refused = |why: &str| {
        format!(
            "{}: {in_own}; the group above it: {why}",
            own.group.display()
        )
    };
    if own.group == own.top {
        return Err(format!("{}: {in_own}", own.group.display()));
    }
    let above = own.group.parent().ok_or_else(|| refused("none"))?;
    let is_ours = own.group.file_name().is_some_and(|name| name == WORKER);
    if !is_ours && !is_unlimited(&own.group) {
        return Err(refused("runs would not be bound by the limit of this one"));
    }
    let has = fs::read_to_string(above.join("cgroup.subtree_control"));
    let has = has.map_err(|error| refused(&error.to_string()))?;
    match needed
        .iter()
        .find(|one| !has.split_whitespace().any(|word| word == **one))
    {
        Some(missing) => Err(refused(&format!("it has no controller `{missing}`"))),
        None => Ok((above.to_owned(), own.group.clone())),
    }
}

/// Returns the controllers that count these resources. Processor time needs none.
fn needed(counts: Counts) -> Vec<&'static str> {
    let all = [(counts.memory, "memory"), (counts.processes, "pids")];
    all.into_iter()
        .filter_map(|(is_on, name)| is_on.then_some(name))
        .collect()
}

/// Enables controllers for the groups below one.
fn enable(group: &Path, controllers: &[&str]) -> io::Result<()> {
    let file = group.join("cgroup.subtree_control");
    let has = fs::read_to_string(&file)?;
    let mut missing = controllers
        .iter()
        .filter(|one| !has.split_whitespace().any(|word| word == **one));
    missing.try_for_each(|one| write(&file, &format!("+{one}")))
}

/// Moves this process one group down, and enables controllers for the groups beside it.
fn move_down(group: &Path, controllers: &[&str]) -> Result<PathBuf, String> {
    let this = std::process::id();
    if pids(group)
        .iter()
        .any(|pid| pid.as_raw_pid().cast_unsigned() != this)
    {
        return Err("other processes are in it".to_owned());
    }
    let home = group.join(WORKER);
    let moved = || -> io::Result<()> {
        match fs::create_dir(&home) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        write(&home.join("cgroup.procs"), &this.to_string())?;
        enable(group, controllers).inspect_err(|_| {
            // As before.
            let _ = write(&group.join("cgroup.procs"), &this.to_string());
            let _ = fs::remove_dir(&home);
        })
    };
    moved().map_err(|error| error.to_string())?;
    Ok(home)
}

/// Returns true if a group has no limit of memory. A group without the file is that of the host.
fn is_unlimited(group: &Path) -> bool {
    let limits = ["memory.max", "memory.high"].map(|name| fs::read_to_string(group.join(name)));
    limits
        .iter()
        .all(|limit| limit.as_ref().is_ok_and(|text| text.trim() == "max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 20 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 25 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    fn groups(mounts: &str, own: &str) -> Vec<(Version, Counts, PathBuf)> {
        let all = own_groups(mounts, own).into_iter();
        all.map(|own| (own.version, own.counts, own.group))
            .collect()
    }

    #[test]
    fn the_own_groups_are_found_in_both_versions() {
        let own = "0::/s\n5:cpu,cpuacct:/\n4:memory:/a/b\n3:devices:/\n";
        let [memory, cpu] = [(true, false), (false, true)].map(|(memory, cpu)| Counts {
            memory,
            processes: false,
            cpu,
        });
        let all = Counts {
            memory: true,
            processes: true,
            cpu: true,
        };
        let at = |version, counts, path: &str| {
            let group = Path::new("/sys/fs/cgroup").join(path);
            (version, counts, group)
        };
        assert_eq!(
            groups(HYBRID, own),
            [
                at(Version::V1, cpu, "cpu,cpuacct"),
                at(Version::V1, memory, "memory/a/b"),
                at(Version::V2, all, "unified/s"),
            ]
        );
    }

    #[test]
    fn only_groups_below_the_mount_are_used() {
        let mounts = "30 20 0:25 /docker/1 /cgroup rw - cgroup2 cgroup rw,nsdelegate\n";
        let found = groups(mounts, "0::/docker/1/x\n");
        assert_eq!(found[0].2, Path::new("/cgroup/x"));
        assert_eq!(groups(mounts, "0::/docker/2\n"), []);
        assert_eq!(groups(mounts, "0::/docker/1/../2\n"), []);
        assert_eq!(groups("", "0::/\n"), []);
        assert_eq!(groups(mounts, "garbage\n"), []);
        let mounts = "30 20 0:25 /a\\040b /my\\040\\134groups rw - cgroup2 cgroup rw,nsdelegate\n";
        let found = groups(mounts, "0::/a b/x y\n");
        assert_eq!(found[0].2, Path::new("/my \\groups/x y"));
    }

    /// A tree of plain files, which is no tree of control groups, but has the same files.
    fn tree(groups: &[(&str, &[(&str, &str)])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (group, files) in groups {
            let folder = root.path().join(group);
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in *files {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        root
    }

    #[test]
    fn the_group_above_is_used_only_without_a_limit_to_evade() {
        let above: &[(&str, &str)] = &[("cgroup.subtree_control", "cpu memory pids\n")];
        for (limit, is_used) in [("max\n", true), ("1000000\n", false)] {
            let own: &[(&str, &str)] = &[("memory.max", limit), ("memory.high", "max\n")];
            let root = tree(&[("above", above), ("above/own", own)]);
            let group = root.path().join("above/own");
            let found = delegated(&Own {
                version: Version::V2,
                counts: Counts {
                    memory: true,
                    processes: true,
                    cpu: true,
                },
                group: group.clone(),
                top: root.path().to_owned(),
            });
            assert_eq!(found.is_ok(), is_used, "{found:?}");
            if is_used {
                assert_eq!(found, Ok((root.path().join("above"), group)));
            }
        }
    }
}
