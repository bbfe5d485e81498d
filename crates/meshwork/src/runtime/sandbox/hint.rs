//! Hint for a script that has failed at the border of its sandbox. It depends only on the text of the error and on what the
//! run sees, so it does not tell whether a hidden file exists.

use std::path::{Path, PathBuf};

use meshwork_model::sandbox::Profile;

use super::confine::SYSTEM;
use super::confinement::{Confinement, Orders};

/// Folders that each run has.
const OWN: &[&str] = &["/proc", "/dev", "/tmp", "/var/tmp"];
/// Texts of the system for a refused access.
const REFUSED: &[&str] = &[
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "EACCES",
    "EPERM",
    "EROFS",
];
/// Texts of the system for a file that does not exist.
const MISSING: &[&str] = &["No such file or directory", "ENOENT"];

impl Orders {
    /// Returns a hint for an error text of a run in `folder`.
    pub(in super::super) fn hint(&self, text: &str, folder: &Path) -> Option<String> {
        let profile = self.confinement.profile;
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_refused = says(REFUSED);
        if profile == Profile::Open || !(is_refused || says(MISSING)) {
            return None;
        }
        let hidden = paths(text).find(|path| !self.shows(path, folder));
        let hint = match hidden {
            Some(path) => {
                let path = path.display();
                format!(
                    "the sandbox profile `{profile}` hides {path}; `--read {path}` or `--write {path}` of the worker shows it"
                )
            }
            None if is_refused => format!(
                "the sandbox profile `{profile}` may have refused this; `--read` and `--write` of the worker show files"
            ),
            None => return None,
        };
        Some(hint)
    }

    fn shows(&self, path: &Path, folder: &Path) -> bool {
        let Confinement { read, write, .. } = &self.confinement;
        let named = read.iter().chain(write).chain(&self.interpreter);
        let named = named.map(PathBuf::as_path);
        let own = OWN.iter().chain(SYSTEM).map(Path::new);
        let mut all = named.chain(own).chain([folder]);
        all.any(|folder| path.starts_with(folder))
    }
}

/// Returns the absolute paths in a text.
fn paths(text: &str) -> impl Iterator<Item = &Path> {
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
            "FileNotFoundError: [Errno 2] No such file or directory: '/hidden/x'",
            "cat: /hidden/x: Permission denied",
            "OSError: [Errno 30] Read-only file system: '/hidden/x'",
            "Error: ENOENT: no such file, open '/hidden/x'",
        ] {
            let said = hint(Profile::Standard, text);
            assert!(said.contains("`standard` hides /hidden/x"), "{said}");
            assert!(said.contains("--read /hidden/x"), "{said}");
            assert_eq!(hint(Profile::Open, text), "");
        }
    }

    #[test]
    fn other_errors_have_no_hint() {
        for text in [
            "ValueError: '/hidden/x'",
            "No such file or directory: 'here'",
            "No such file or directory: '/shown/x'",
            "No such file or directory: '/run/folder/work/x'",
            "No such file or directory: '/usr/lib/x'",
        ] {
            assert_eq!(hint(Profile::Strict, text), "", "{text}");
        }
        let refused = "PermissionError: [Errno 13] Permission denied";
        let said = hint(Profile::Strict, refused);
        assert!(said.contains("may have refused this"), "{said}");
    }
}
