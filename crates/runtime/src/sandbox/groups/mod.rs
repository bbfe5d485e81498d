//! Control groups of runs. In one, the kernel counts and bounds what all processes of a run use together, also memory that
//! no process maps and processor time of children that nobody waits for.
//!
//! The worker finds once where groups can be made ([`find()`]). The launcher makes those of a run, starts the first process
//! in them, and removes them at the end. It keeps them locked, so that a worker removes those of a killed launcher.

mod find;
mod folder;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use meshwork_model::sandbox::{Limit, Limits};

use super::usage::seen;
pub(super) use find::find;
use folder::{RUN, lock, locked_folder, pids, remove};

/// Share of a limit that was not used when the kernel refused more: it takes memory in portions.
const NEAR: u64 = 16;
/// Most groups that one search removes: those of two thousand killed launchers, in a second.
const MAX_SWEPT: usize = 2_000;
/// Longest time of a search: processes that do not end are left to the next one.
const SWEEPING: Duration = Duration::from_secs(5);

/// Version of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Resources that a hierarchy counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    memory: bool,
    processes: bool,
    cpu: bool,
}

/// A hierarchy in which groups of runs can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    version: Version,
    counts: Counts,
    /// Group in which those of runs are made.
    base: PathBuf,
    /// Group of the worker, to which a launcher returns.
    home: PathBuf,
}

/// Hierarchies of this host that count resources of runs. Each resource is counted in at most one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hierarchies(Vec<Hierarchy>);

impl Hierarchies {
    pub(super) fn count_memory(&self) -> bool {
        self.0.iter().any(|one| one.counts.memory)
    }

    pub(super) fn count_processes(&self) -> bool {
        self.0.iter().any(|one| one.counts.processes)
    }

    pub(super) fn count_cpu(&self) -> bool {
        self.0.iter().any(|one| one.counts.cpu)
    }

    /// Returns those of a host in which one group has all.
    #[cfg(test)]
    pub(super) fn of_test(base: &str) -> Self {
        let counts = Counts {
            memory: true,
            processes: false,
            cpu: true,
        };
        Self(vec![Hierarchy {
            version: Version::V2,
            counts,
            base: base.into(),
            home: Path::new(base).join("home"),
        }])
    }

    /// Encodes each hierarchy as one field without NUL. Names of groups contain no newline.
    pub(super) fn encode(&self) -> impl Iterator<Item = Vec<u8>> {
        self.0.iter().map(Hierarchy::encode)
    }

    /// Adds an encoded hierarchy.
    pub(super) fn decode(&mut self, field: &[u8]) -> Option<()> {
        self.0.push(Hierarchy::decode(field)?);
        Some(())
    }

    /// Removes the groups of launchers that were killed, and ends the processes in them.
    pub(super) fn sweep(&self) {
        let until = Instant::now() + SWEEPING;
        for hierarchy in &self.0 {
            let entries = fs::read_dir(&hierarchy.base).into_iter().flatten();
            let names = entries.flatten().map(|entry| entry.file_name());
            let runs = names.filter(|name| name.to_string_lossy().starts_with(RUN));
            let swept = runs.take(MAX_SWEPT);
            for name in swept.take_while(|_| Instant::now() < until) {
                let folder = hierarchy.base.join(name);
                // Locked ones have a launcher. Others may be gone meanwhile.
                if let Ok(_locked) = lock(&folder) {
                    remove(&folder);
                }
            }
        }
    }
}

impl Hierarchy {
    fn encode(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;

        let Counts {
            memory,
            processes,
            cpu,
        } = self.counts;
        let letter = |is_on, letter| if is_on { letter } else { b'-' };
        let mut encoded = vec![
            letter(self.version == Version::V2, b'2'),
            letter(memory, b'm'),
            letter(processes, b'p'),
            letter(cpu, b'c'),
        ];
        encoded.extend(self.base.as_os_str().as_bytes());
        encoded.push(b'\n');
        encoded.extend(self.home.as_os_str().as_bytes());
        encoded
    }

    fn decode(field: &[u8]) -> Option<Self> {
        use std::os::unix::ffi::OsStrExt;

        let (letters, paths) = field.split_first_chunk::<4>()?;
        let at = paths.iter().position(|byte| *byte == b'\n')?;
        let path = |bytes| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        let is_on = |at: usize| letters[at] != b'-';
        Some(Self {
            version: if is_on(0) { Version::V2 } else { Version::V1 },
            counts: Counts {
                memory: is_on(1),
                processes: is_on(2),
                cpu: is_on(3),
            },
            base: path(&paths[..at]),
            home: path(&paths[at + 1..]),
        })
    }

    /// Name of the file that moves the only thread of the process that writes 0. Of version 1, this needs no lock of the
    /// whole host.
    const fn tasks(&self) -> &'static str {
        match self.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.procs",
        }
    }
}

/// The groups of one run. They are removed when this is dropped.
#[derive(Debug)]
pub(super) struct Group(Vec<Part>);

/// The group of a run in one hierarchy.
#[derive(Debug)]
struct Part {
    hierarchy: Hierarchy,
    folder: PathBuf,
    /// Tells a worker that the launcher still runs.
    #[allow(dead_code, reason = "it is only held")]
    _locked: File,
}

impl Group {
    /// Makes the groups of a run that this process launches.
    pub(super) fn create(hierarchies: &Hierarchies, limits: &Limits) -> io::Result<Self> {
        let mut group = Self(Vec::new());
        for hierarchy in &hierarchies.0 {
            let part = Part::create(hierarchy, limits).map_err(|error| {
                let base = hierarchy.base.display();
                io::Error::other(format!("cannot make a control group in {base}: {error}"))
            })?;
            group.0.push(part);
        }
        Ok(group)
    }

    /// Calls a function that starts a process, which is in the groups from its start on. Errors are those of the groups.
    pub(super) fn start<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        let go = |to: fn(&Part) -> &Path| {
            self.0.iter().try_for_each(|part| {
                let group = to(part);
                write(&group.join(part.hierarchy.tasks()), "0").map_err(|error| {
                    let group = group.display();
                    io::Error::other(format!("cannot enter the control group {group}: {error}"))
                })
            })
        };
        let started = go(|part| &part.folder).map(|()| start());
        go(|part| &part.hierarchy.home)?;
        started
    }

    /// Returns the memory that is used now, without files that can be read again.
    pub(super) fn memory(&self) -> Option<u64> {
        let mut parts = self.0.iter();
        parts
            .find(|part| part.hierarchy.counts.memory)
            .map(Part::memory)
    }

    /// Returns the processor time so far, in user mode and in the kernel.
    pub(super) fn cpu(&self) -> Option<[Duration; 2]> {
        let mut parts = self.0.iter();
        parts.find(|part| part.hierarchy.counts.cpu)?.cpu()
    }

    /// Returns true if the kernel has ended a process of the run for its memory limit.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let mut parts = self.0.iter();
        parts.any(|part| part.hierarchy.counts.memory && part.ran_out_of_memory())
    }
}

impl Part {
    fn create(hierarchy: &Hierarchy, limits: &Limits) -> io::Result<Self> {
        let (folder, locked) = locked_folder(&hierarchy.base)?;
        let part = Self {
            _locked: locked,
            hierarchy: hierarchy.clone(),
            folder,
        };
        part.limit(limits)?;
        Ok(part)
    }

    fn limit(&self, limits: &Limits) -> io::Result<()> {
        let set = |name: &str, value: u64| write(&self.folder.join(name), &value.to_string());
        // Kernels without swap lack such a file.
        let try_to_set = |name: &str, value: u64| match set(name, value) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        };
        let counts = self.hierarchy.counts;
        if let (true, Some(memory)) = (counts.memory, limits.get(Limit::Memory)) {
            match self.hierarchy.version {
                Version::V1 => {
                    set("memory.limit_in_bytes", memory)?;
                    try_to_set("memory.memsw.limit_in_bytes", memory)?;
                    // The buffers of TCP sockets are counted apart.
                    try_to_set("memory.kmem.tcp.limit_in_bytes", memory)?;
                }
                Version::V2 => {
                    set("memory.max", memory)?;
                    try_to_set("memory.swap.max", 0)?;
                    try_to_set("memory.oom.group", 1)?;
                }
            }
        }
        if let (true, Some(most)) = (counts.processes, limits.get(Limit::Processes)) {
            set("pids.max", seen(most))?;
        }
        Ok(())
    }

    fn memory(&self) -> u64 {
        let text = self.read("memory.stat");
        let sum = |names: &[&str]| names.iter().filter_map(|name| number(&text, name)).sum();
        match self.hierarchy.version {
            Version::V1 => {
                let kernel = self.number("memory.kmem.usage_in_bytes");
                let mapped: u64 = sum(&["total_rss", "total_shmem"]);
                mapped + kernel.unwrap_or(0)
            }
            Version::V2 => {
                let used: u64 = sum(&["anon", "shmem", "sock", "kernel"]);
                used.saturating_sub(number(&text, "slab_reclaimable").unwrap_or(0))
            }
        }
    }

    fn cpu(&self) -> Option<[Duration; 2]> {
        match self.hierarchy.version {
            Version::V1 => {
                let time = |name| self.number(name).map(Duration::from_nanos);
                Some([time("cpuacct.usage_user")?, time("cpuacct.usage_sys")?])
            }
            Version::V2 => {
                let text = self.read("cpu.stat");
                let time = |name| number(&text, name).map(Duration::from_micros);
                Some([time("user_usec")?, time("system_usec")?])
            }
        }
    }

    fn ran_out_of_memory(&self) -> bool {
        // A host without memory ends processes, too, that have reached no limit.
        match self.hierarchy.version {
            Version::V1 => {
                let kills = number(&self.read("memory.oom_control"), "oom_kill");
                let most = self.number("memory.max_usage_in_bytes");
                let limit = self.number("memory.limit_in_bytes");
                let is_near = most
                    .zip(limit)
                    .is_some_and(|(most, limit)| most >= limit - limit / NEAR);
                is_near && kills.is_some_and(|times| times > 0)
            }
            Version::V2 => {
                let events = self.read("memory.events");
                let mut names = ["oom", "oom_kill"].iter();
                names.all(|name| number(&events, name).is_some_and(|times| times > 0))
            }
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.read(name).trim().parse().ok()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Returns the number of a name in lines of names and numbers.
fn number(text: &str, name: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(file)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FlockOperation, flock};
    use rustix::process::Pid;

    use super::*;

    /// A new group is not locked yet when another worker may sweep.
    #[test]
    fn a_sweep_prevents_no_group() {
        let (hierarchies, reasons) = find();
        if hierarchies == Hierarchies::default() {
            eprintln!("skipped: no control groups: {reasons:?}");
            return;
        }
        let made = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !made.load(std::sync::atomic::Ordering::SeqCst) {
                    hierarchies.sweep();
                }
            });
            let groups = (0..200).map(|_| Group::create(&hierarchies, &Limits::NONE).map(drop));
            let created: io::Result<()> = groups.collect();
            made.store(true, std::sync::atomic::Ordering::SeqCst);
            created.unwrap();
        });
    }

    #[test]
    fn only_groups_without_a_launcher_are_removed() {
        let (hierarchies, reasons) = find();
        if hierarchies == Hierarchies::default() {
            eprintln!("skipped: no control groups: {reasons:?}");
            return;
        }
        let make = || {
            let group = Group::create(&hierarchies, &Limits::NONE).unwrap();
            let sleep = || std::process::Command::new("sleep").arg("1000").spawn();
            let child = group.start(sleep).unwrap().unwrap();
            (group, child)
        };
        let (killed, mut its_child) = make();
        let (running, mut other_child) = make();
        let folders = |group: &Group| -> Vec<PathBuf> {
            group.0.iter().map(|part| part.folder.clone()).collect()
        };
        let [of_killed, of_running] = [folders(&killed), folders(&running)];
        let pid = Pid::from_raw(its_child.id().cast_signed()).unwrap();
        assert!(of_killed.iter().all(|folder| pids(folder) == [pid]));
        // Groups that the run has made.
        let made: Vec<PathBuf> = of_killed.iter().map(|folder| folder.join("a/b")).collect();
        for (folder, part) in made.iter().zip(&killed.0) {
            fs::create_dir_all(folder).unwrap();
            let tasks = folder.join(part.hierarchy.tasks());
            write(&tasks, &pid.to_string()).unwrap();
        }
        // As the kernel does for a killed launcher.
        for part in &killed.0 {
            flock(&part._locked, FlockOperation::Unlock).unwrap();
        }
        std::mem::forget(killed);

        hierarchies.sweep();
        assert!(!of_killed.iter().any(|folder| folder.exists()));
        assert!(its_child.wait().unwrap().code().is_none());
        assert!(of_running.iter().all(|folder| folder.exists()));
        assert!(other_child.try_wait().unwrap().is_none());
        drop(running);
        assert!(!of_running.iter().any(|folder| folder.exists()));
        other_child.wait().unwrap();
    }

    #[test]
    fn numbers_of_a_group_are_found_by_their_whole_names() {
        let text = "anon 4096\nanon_thp 7\nshmem 12\n";
        assert_eq!(number(text, "anon"), Some(4096));
        assert_eq!(number(text, "shmem"), Some(12));
        assert_eq!(number(text, "sock"), None);
    }
}
