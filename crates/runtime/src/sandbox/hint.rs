//! Hint for a script that has failed at the border of its sandbox, or of its folder. It depends on the text of the error and
//! on what the run sees. It tells of no file that is not visible to every user of the host.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use meshwork_model::sandbox::Profile;

use super::confine::SYSTEM;
use super::orders::Orders;
use crate::Confinement;

/// Folders that each run has.
const OWN: &[&str] = &["/proc", "/dev"];
/// Folders for temporary files, of which each run has its own.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];
/// Texts of the system for a refused access.
const REFUSED: &[&str] = &[
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "EACCES",
    "EPERM",
    "EROFS",
];
/// Texts of the system and of SAL for a file that does not exist.
const MISSING: &[&str] = &[
    "No such file or directory",
    "no such file or directory",
    "ENOENT",
    "No files found matching",
    "does not exist",
];
/// Texts for a network that is not there, of the system and of common programs and libraries.
const NETWORK: &[&str] = &[
    "Network is unreachable",
    "Network unreachable",
    "No route to host",
    "Connection refused",
    "name resolution",
    "Name or service not known",
    "No address associated with hostname",
    "ould not resolve",
    "Failed to connect",
    "Couldn't connect",
    "Could not connect",
    "getaddrinfo",
    "gaierror",
    "urlopen error",
    "ENETUNREACH",
    "ECONNREFUSED",
    "EAI_AGAIN",
    "unable to access 'http",
];
/// Texts of SQLite for a database that it can only read, or not lock.
const SQLITE: &[&str] = &[
    "unable to open database file",
    "attempt to write a readonly database",
    "SQLITE_CANTOPEN",
    "SQLITE_READONLY",
];
/// Texts of Python for a module that is neither in the standard library nor installed.
const MODULE: &[&str] = &["ModuleNotFoundError: No module named"];

/// Mode bit: all users may search the folder.
const SEARCHED_BY_ALL: u32 = 0o001;

impl Orders {
    /// Returns a hint for an error text of a run in `folder`.
    pub(in super::super) fn hint(&self, text: &str, folder: &Path) -> Option<String> {
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_confined = self.confinement.profile > Profile::Open;
        let border = is_confined.then(|| self.border(text, folder, &says));
        border.flatten().or_else(|| beside(text, folder, &says))
    }

    /// Returns the hint for what the sandbox may have refused.
    fn border(&self, text: &str, folder: &Path, says: &dyn Fn(&[&str]) -> bool) -> Option<String> {
        let profile = self.confinement.profile;
        if profile == Profile::Strict && says(NETWORK) {
            return Some(format!(
                "the sandbox profile `{profile}` has no network; `{}` has one",
                Profile::Standard
            ));
        }
        if says(SQLITE) && !self.confinement.read.is_empty() {
            return Some(
                "SQLite writes beside a database in WAL mode: show its folder with `--write` of the worker, or open a \
                 database that nobody changes as `file:PATH?immutable=1`"
                    .to_owned(),
            );
        }
        let is_refused = says(REFUSED);
        if !is_refused && !says(MISSING) {
            return None;
        }
        let mut found = paths(text).filter(|path| !path.starts_with(folder));
        let hidden = found.clone().find(|path| !self.shows(path));
        if let Some(path) = hidden {
            return visible(path).map(|path| self.hides(path));
        }
        if is_refused && let Some(shown) = found.find_map(|path| self.read_only(path)) {
            return Some(format!(
                "the worker shows {0} read-only; `--write {0}` of the worker lets scripts write there",
                shown.display()
            ));
        }
        is_refused.then(|| {
            let network = match profile {
                Profile::Strict => "; it has no network",
                _ => "",
            };
            format!(
                "the sandbox profile `{profile}` may have refused this; `--read` and `--write` of the worker show files{network}"
            )
        })
    }

    /// Returns the hint for a hidden path.
    fn hides(&self, path: &Path) -> String {
        let (profile, path) = (self.confinement.profile, path.display());
        format!(
            "the sandbox profile `{profile}` hides {path}; `--read {path}` or `--write {path}` of the worker shows it"
        )
    }

    fn shows(&self, path: &Path) -> bool {
        let Confinement { read, write, .. } = &self.confinement;
        let named = read.iter().chain(write).chain(&self.interpreter);
        let named = named.map(PathBuf::as_path);
        let own = OWN.iter().chain(SYSTEM).map(Path::new);
        named.chain(own).any(|folder| path.starts_with(folder))
    }

    /// Returns the path that the worker shows, and that scripts only read, if it contains this one.
    fn read_only(&self, path: &Path) -> Option<&Path> {
        let Confinement { read, write, .. } = &self.confinement;
        let is_above = |folder: &&PathBuf| path.starts_with(folder);
        let shown = read.iter().find(is_above)?;
        let is_written = write.iter().any(|folder| path.starts_with(folder));
        (!is_written).then_some(shown.as_path())
    }
}

/// Returns the hint for a script that misses files which were beside it.
fn beside(text: &str, folder: &Path, says: &dyn Fn(&[&str]) -> bool) -> Option<String> {
    if says(MODULE) {
        return Some(
            "a script runs alone in a folder of its own: put the code into it, or name packages in a block `# /// script`"
                .to_owned(),
        );
    }
    let is_elsewhere = |path: &Path| !path.starts_with(folder);
    (says(MISSING) && !is_program(text) && !paths(text).any(is_elsewhere)).then(|| {
        "a script runs alone in a folder of its own: pass a file with `--input @FILE`, or name it by its whole path"
            .to_owned()
    })
}

/// Returns true if a text tells of a program of `PATH` that SAL cannot start.
fn is_program(text: &str) -> bool {
    let named = text.split_once("cannot start `");
    let name = named.and_then(|(_, rest)| rest.split_once('`'));
    name.is_some_and(|(name, _)| !name.contains('/'))
}

/// Returns the path that a worker could show: this one, or its folder if this one does not exist; `None` if the folder does
/// not exist either. What some users of the host cannot see counts as existing. File systems below that of `/` are not
/// read, since those of a network may not answer.
fn visible(path: &Path) -> Option<&Path> {
    if TEMPORARY.iter().any(|folder| path.starts_with(folder)) {
        return Some(path);
    }
    let mut above = fs::metadata("/").ok()?;
    let steps: Vec<&Path> = path.ancestors().collect();
    for here in steps.iter().rev().skip(1) {
        if !above.is_dir() || above.mode() & SEARCHED_BY_ALL == 0 {
            return Some(path);
        }
        match fs::symlink_metadata(here) {
            Ok(found) if found.dev() == above.dev() => above = found,
            Ok(_) => return Some(path),
            Err(_) if *here == path => {
                return path.parent().filter(|folder| *folder != Path::new("/"));
            }
            Err(_) => return None,
        }
    }
    Some(path)
}

/// Returns the absolute paths in a text.
fn paths(text: &str) -> impl Iterator<Item = &Path> + Clone {
    let ends = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ':' | ',' | '(' | ')');
    let words = text.split(ends).map(Path::new);
    words.filter(|word| word.is_absolute() && *word != Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(profile: Profile, text: &str) -> String {
        let mut orders = Orders::default();
        orders.confinement.profile = profile;
        orders.confinement.read.push("/shown".into());
        let hint = orders.hint(text, Path::new("/run/folder"));
        hint.unwrap_or_default()
    }

    #[test]
    fn a_hidden_path_is_named_with_the_remedy() {
        for text in [
            "FileNotFoundError: [Errno 2] No such file or directory: '/etc/shadow'",
            "cat: /etc/shadow: Permission denied",
            "OSError: [Errno 30] Read-only file system: '/etc/shadow'",
            "Error: ENOENT: no such file, open '/etc/shadow'",
            "Runtime error: No files found matching '/etc/shadow' (line 1, position 1)",
        ] {
            let said = hint(Profile::Standard, text);
            assert!(said.contains("`standard` hides /etc/shadow"), "{said}");
            assert!(said.contains("--read /etc/shadow"), "{said}");
            assert_eq!(hint(Profile::Open, text), "");
        }
        for path in ["/tmp/data.csv", "/var/tmp/data.csv"] {
            let said = hint(
                Profile::Strict,
                &format!("No such file or directory: '{path}'"),
            );
            assert!(said.contains(&format!("hides {path}")), "{said}");
        }
        let new = "FileNotFoundError: [Errno 2] No such file or directory: '/etc/new.txt'";
        let said = hint(Profile::Standard, new);
        assert!(said.contains("hides /etc; `--read /etc`"), "{said}");
    }

    #[test]
    fn a_network_that_is_not_there_is_named() {
        for text in [
            "urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>",
            "<urlopen error [Errno -3] Temporary failure in name resolution>",
            "PermissionError: <urlopen error [Errno 1] Operation not permitted>",
            "fatal: unable to access 'https://h.org/a/b/': Could not resolve host: h.org",
            "Error downloading url: http://127.0.0.1:1/x: curl: (7) Failed to connect to 127.0.0.1",
            "connect ECONNREFUSED 127.0.0.1:80",
        ] {
            let said = hint(Profile::Strict, text);
            assert!(
                said.contains("`strict` has no network; `standard` has one"),
                "{said}"
            );
            assert!(
                !hint(Profile::Standard, text).contains("has no network"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_folder_that_is_shown_read_only_says_so() {
        for text in [
            "OSError: [Errno 30] Read-only file system: '/shown/x'",
            "PermissionError: [Errno 13] Permission denied: '/shown/x'",
        ] {
            let said = hint(Profile::Standard, text);
            assert!(
                said.contains("shows /shown read-only; `--write /shown`"),
                "{said}"
            );
        }
        let said = hint(
            Profile::Standard,
            "sqlite3.OperationalError: unable to open database file",
        );
        assert!(
            said.contains("WAL mode") && said.contains("immutable=1"),
            "{said}"
        );
    }

    #[test]
    fn a_file_beside_the_script_is_an_input() {
        for text in [
            "No such file or directory: 'here.csv'",
            "No such file or directory: '/run/folder/work/x'",
            "cat: data.csv: No such file or directory",
            "cannot start `./helper.sh`: No such file or directory (os error 2)",
        ] {
            for profile in [Profile::Open, Profile::Strict] {
                let said = hint(profile, text);
                assert!(said.contains("`--input @FILE`"), "{text}: {said}");
            }
        }
        let said = hint(
            Profile::Open,
            "ModuleNotFoundError: No module named 'helper'",
        );
        assert!(said.contains("put the code into it"), "{said}");
    }

    #[test]
    fn other_errors_have_no_hint() {
        for text in [
            "ValueError: '/hidden/x'",
            "No such file or directory: '/nonexistent/x'",
            "No such file or directory: '/shown/x'",
            "No such file or directory: '/usr/lib/x'",
            "cannot start `for`: No such file or directory (os error 2)",
        ] {
            assert_eq!(hint(Profile::Strict, text), "", "{text}");
        }
        let refused = "PermissionError: [Errno 13] Permission denied";
        let said = hint(Profile::Strict, refused);
        assert!(said.contains("may have refused this"), "{said}");
    }
}
