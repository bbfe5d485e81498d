//! Size of what a run has on the disk: its folder, and removed files that its processes still have open.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::orders::{Isolation, Orders};

/// Most files of a folder, and most descriptors, that are measured: a tenth of a second.
const MAX_FILES: usize = 50_000;
/// Size of a block in the metadata of a file.
const BLOCK: u64 = 512;
/// Folder for temporary files in the root folder of a run. It is in the run's folder.
const TEMPORARY: &str = "/tmp";

/// The folder of a run.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    /// True if the run has a root folder of its own.
    has_root: bool,
    /// Folders of the host that the run writes. They are not limited.
    write: Vec<PathBuf>,
}

impl Disk {
    pub(super) fn of(folder: &Path, orders: &Orders) -> Self {
        Self {
            folder: folder.to_owned(),
            has_root: orders.isolation == Isolation::Namespaces,
            write: orders.confinement.write.clone(),
        }
    }

    /// Returns the bytes that the processes use.
    pub(super) fn used(&self, processes: &[i32]) -> u64 {
        size(&self.folder) + self.removed(processes)
    }

    /// Returns the size of removed files that are open. Those of a process that cannot be examined count nothing.
    fn removed(&self, processes: &[i32]) -> u64 {
        let folders = processes
            .iter()
            .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok());
        let open = folders.flatten().flatten().take(MAX_FILES);
        let (mut sum, mut seen) = (0, HashSet::new());
        for descriptor in open.map(|entry| entry.path()) {
            // Others may be on a host that does not answer.
            if !fs::read_link(&descriptor).is_ok_and(|path| self.contains(&path)) {
                continue;
            }
            let Ok(file) = fs::metadata(descriptor) else {
                continue;
            };
            if file.nlink() == 0 && seen.insert((file.dev(), file.ino())) {
                sum += file.blocks() * BLOCK;
            }
        }
        sum
    }

    /// Returns true for the path of a file in the run's folder, as its processes see it.
    fn contains(&self, path: &Path) -> bool {
        let is_in = |folder: &Path| path.starts_with(folder);
        let is_host = self.write.iter().any(|folder| is_in(folder));
        !is_host && (is_in(&self.folder) || self.has_root && is_in(Path::new(TEMPORARY)))
    }
}

/// Returns the size of all files below a folder. Links are not followed.
fn size(folder: &Path) -> u64 {
    let (mut sum, mut files, mut pending) = (0, 0, vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            files += 1;
            let Ok(metadata) = entry.path().symlink_metadata() else {
                continue;
            };
            sum += metadata.blocks() * BLOCK;
            match files {
                0..MAX_FILES if metadata.is_dir() => pending.push(entry.path()),
                0..MAX_FILES => {}
                _ => return sum,
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_size_of_a_folder_has_all_files_and_removed_ones_that_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("deep")).unwrap();
        fs::write(root.join("deep/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
        let this = [std::process::id().cast_signed()];
        // Other tests of this process have removed files in other folders.
        let disk = Disk::of(&root, &Orders::default());
        let used = size(&root);
        assert!((100_000..1_000_000).contains(&used), "{used}");
        let (twice, path) = (2_000_000, root.join("removed"));
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(&vec![1; twice]).unwrap();
        let _other = file.try_clone().unwrap();
        fs::remove_file(path).unwrap();
        let removed = disk.used(&this) - used;
        assert!((2_000_000..4_000_000).contains(&removed), "{removed}");
        let mut orders = Orders::default();
        orders.confinement.write.push(root.clone());
        orders.isolation = Isolation::Namespaces;
        let confined = Disk::of(Path::new("/nowhere"), &orders);
        let contains = |path: &str| confined.contains(Path::new(path));
        assert!(contains("/nowhere/work/x (deleted)") && contains("/tmp/x"));
        assert!(!contains("/x") && !confined.contains(&root.join("x")));
    }
}
