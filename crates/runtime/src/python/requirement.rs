//! Rules for a dependency: which ones have hashes, and which ones a script in the profile `strict` can have. There, only names
//! of the configured index are installed: the address of a package could carry away what a job has read.

/// Separates a requirement from its hashes, as in the files of pip.
const HASH: &str = " --hash=";
/// Algorithms of hashes, with the number of hexadecimal digits.
const ALGORITHMS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];
/// Endings of packages. The installer takes a name with one of them for a file.
const ARCHIVES: [&str; 7] = ["whl", "zip", "tgz", "tbz", "txz", "tlz", "tar"];

/// Returns true for a dependency with hashes.
pub(super) fn has_hash(dependency: &str) -> bool {
    dependency.contains(HASH)
}

/// Returns true for the name of a package, with its extras, versions, marker and hashes as in
/// `demo[x]>=1; os_name == "posix" --hash=sha256:…`: neither an address or a path nor an option of the installer.
pub(super) fn is_name(dependency: &str) -> bool {
    let mut parts = dependency.split(HASH);
    let requirement = parts.next().unwrap_or_default();
    if !parts.all(is_hash) {
        return false;
    }
    let (wanted, marker) = requirement.split_once(';').unwrap_or((requirement, ""));
    let is_plain = |c: char| !c.is_control() && !"#$\\@".contains(c);
    if !marker.chars().all(is_plain) {
        return false;
    }
    let wanted = wanted.trim();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let end = wanted.find(|c| !is_of_name(c)).unwrap_or(wanted.len());
    let (name, rest) = wanted.split_at(end);
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_whole = is_end(name.chars().next()) && is_end(name.chars().last());
    is_whole && !is_archive(name) && is_versions(without_extras(rest.trim_start()))
}

fn is_hash(text: &str) -> bool {
    let known = |(name, digits): (&str, usize)| {
        let hash = text.trim_end().strip_prefix(name);
        let hash = hash.and_then(|hash| hash.strip_prefix(':'));
        hash.is_some_and(|hash| {
            hash.len() == digits && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
        })
    };
    ALGORITHMS.into_iter().any(known)
}

fn is_archive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ending = name.rsplit('.').next().unwrap_or_default();
    name.contains('.') && ARCHIVES.contains(&ending) || name.contains(".tar.")
}

/// Returns the rest after extras, as `[a, b]`. Without their end it is no list of versions.
fn without_extras(rest: &str) -> &str {
    match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((extras, rest)) if !extras.contains(['/', ':', '@']) => rest.trim_start(),
        _ => rest,
    }
}

fn is_versions(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "<>=!~.,*+-_ ()".contains(c);
    text.is_empty() || text.starts_with(['<', '>', '=', '!', '~', '(']) && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_an_index_are_names() {
        let hash = "ab".repeat(32);
        for name in [
            "six",
            "six==1.16.0",
            " Zope.interface >= 5, <6 ",
            "backports.lzma",
            "requests[socks, use_chardet]>=2.8.1,==2.8.*",
            "demo (>=1.0)",
            "demo===1!2.0+local; python_version < '3.9' and os_name == \"posix\"",
            &format!("six==1.16.0 --hash=sha256:{hash}"),
            &format!("six==1.16.0 --hash=sha256:{hash} --hash=sha512:{hash}{hash}"),
        ] {
            assert!(is_name(name), "{name}");
        }
        for other in [
            "",
            "demo @ http://host/secret/demo-1.0-py3-none-any.whl",
            "demo@file:///tmp/demo.whl",
            "demo[x] @ git+https://host/x.git",
            "demo [x@http://h/]",
            "demo[x",
            "https://host/demo.whl",
            "git+ssh://host/x",
            "./demo",
            "../demo",
            "/srv/demo.whl",
            "~/demo",
            "demo-1.0-py3-none-any.whl",
            "demo.tar.gz",
            "demo.ZIP",
            "--index-url=http://host/",
            "-r other.txt",
            "-e .",
            "six --index-url http://host/",
            "six\n--index-url http://host/",
            "six; python_version > '3'\n-e .",
            "six ==1 #x",
            "${SECRET}",
            "six; x == '${SECRET}'",
            "six --hash=md5:00",
            &format!("six --hash=sha256:{hash} --index-url=http://host/"),
            &format!("six --hash=sha256:{hash}0"),
            "sïx",
        ] {
            assert!(!is_name(other), "{other:?}");
        }
    }
}
