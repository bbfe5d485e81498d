//! Syntax check of the path of a job's log file, without access to a disk. The worker checks the folder.

/// Greatest length of a path, in bytes. With its folder it must be valid in file systems.
const MAX: usize = 1024;

/// Returns the fault of a path, if it has one.
#[must_use]
pub fn log_path_fault(path: &str) -> Option<&'static str> {
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
    if path.is_empty() {
        Some("it is empty")
    } else if path.len() > MAX {
        Some("it takes more than 1,024 bytes")
    } else if path.chars().any(char::is_control) {
        Some("it contains a control character")
    } else if path.ends_with('/') {
        Some("it names a folder, not a file")
    } else if parts.any(|part| matches!(part, "" | "." | "..")) {
        Some("it goes through `.`, `..` or nothing; name the way without them")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ways_to_a_file_are_taken() {
        for path in ["a.log", "a/b.log", "/var/log/x/a.log", "..a", "a..b", "ä b"] {
            assert_eq!(log_path_fault(path), None, "{path}");
        }
        for path in [
            "",
            "/",
            "a/",
            "..",
            ".",
            "../a",
            "a/../b",
            "/var/log/../../etc/passwd",
            "a/..",
            "a//b",
            "./a",
            "//etc/passwd",
            "a\0b",
            "a\nb",
            "a\u{1b}[2Jb",
        ] {
            assert!(log_path_fault(path).is_some(), "{path:?}");
        }
        assert!(log_path_fault(&"x".repeat(MAX + 1)).is_some());
    }
}
