//! No file names a machine: no home directory, no private registry.

use super::super::tree::File;
use super::{Finding, Tree, finding};

/// In two parts each, so that this file does not match itself.
const PLACES: [(&str, &str); 4] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/Us", "ers/"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .flat_map(|file| [paths(file), sources(file)].concat())
        .collect()
}

/// Checks for absolute paths: `src/…` may have a folder of such a name.
fn paths(file: &File) -> Vec<Finding> {
    let places = PLACES.map(|(one, two)| format!("{one}{two}"));
    let absolute = |line: &str, place: &str| {
        line.match_indices(place).any(|(at, _)| {
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-})>*~$".contains(c))
        })
    };
    file.lines()
        .filter(|(_, line)| places.iter().any(|place| absolute(line, place)))
        .map(|(number, _)| {
            let remedy = "use a path inside the repository or a temporary one";
            finding(&file.path, number, "a path of somebody's machine", remedy)
        })
        .collect()
}

/// Checks the sources of crates.
fn sources(file: &File) -> Vec<Finding> {
    let foreign = |line: &str| match &*file.path {
        "Cargo.lock" | "peers/Cargo.lock" => {
            line.starts_with("source = ") && !line.contains(CRATES_IO)
        }
        ".cargo/config.toml" => line.starts_with("[source") || line.starts_with("[registr"),
        _ => false,
    };
    file.lines()
        .filter(|(_, line)| foreign(line))
        .map(|(number, _)| {
            let remedy = "take crates from crates.io only";
            finding(
                &file.path,
                number,
                "a source of crates that not everybody has",
                remedy,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn machine_paths_are_found() {
        let [(one, two), ..] = PLACES;
        let text = format!("see {one}{two}a\ncrates/x{one}{two}b\n\"{one}{two}\"");
        assert_eq!(places_of(check, &[("a.md", &text)]), ["a.md:1", "a.md:3"]);
    }

    #[test]
    fn other_registries_are_found() {
        let lock = format!("source = \"{CRATES_IO}\"\nsource = \"git+https://example.org/x\"");
        let config = "[alias]\n[source.crates-io]";
        let files = [("Cargo.lock", &*lock), (".cargo/config.toml", config)];
        assert_eq!(
            places_of(check, &files),
            ["Cargo.lock:2", ".cargo/config.toml:2"]
        );
    }
}
