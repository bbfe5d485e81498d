//! Every Rust file is a part of a program: an undeclared file is never built, and its tests never run.

use std::path::Path;

use super::super::tree::File;
use super::{Finding, Tree, finding};

const REMEDY: &str = "declare it with `mod` in the file above it, or remove it";

/// Files that declare what lies beside them.
const DECLARING: [&str; 3] = ["lib", "main", "mod"];
/// Programs that a test compiles, each with a fault.
const FAULTY: &str = "/compile_errors/cases/";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter(|file| file.is(".rs") && !is_root(tree, file) && !is_declared(tree, file))
        .map(|file| finding(&file.path, 1, "a file that no module declares", REMEDY))
        .collect()
}

/// Returns whether Cargo builds the file by itself, or a manifest names it.
fn is_root(tree: &Tree, file: &File) -> bool {
    let path = Path::new(&file.path);
    let folder = path.parent().and_then(Path::file_name);
    let stem = stem(path);
    let is_program = ["bin", "examples", "tests"]
        .iter()
        .any(|name| folder.is_some_and(|folder| folder == *name));
    // The `mod.rs` of a folder is declared like the folder.
    is_program
        || file.path.contains(FAULTY)
        || matches!(stem, "lib" | "main" | "build")
        || is_named(tree, file)
}

fn is_named(tree: &Tree, file: &File) -> bool {
    let manifest = file
        .krate()
        .map(|krate| format!("crates/{krate}/Cargo.toml"));
    let manifest = manifest.and_then(|path| tree.file(&path));
    manifest.is_some_and(|manifest| {
        let below = file.path.splitn(3, '/').nth(2).unwrap_or_default();
        manifest.text.contains(&format!("\"{below}\""))
    })
}

/// Returns whether a file that can declare the module has `mod name;`.
fn is_declared(tree: &Tree, file: &File) -> bool {
    let path = Path::new(&file.path);
    let (name, folder) = match (stem(path), path.parent()) {
        ("mod", Some(folder)) => (stem(folder), folder.parent()),
        (name, folder) => (name, folder),
    };
    let Some(folder) = folder.and_then(Path::to_str) else {
        return false;
    };
    let declaration = format!("mod {name};");
    let beside = DECLARING.map(|name| format!("{folder}/{name}.rs"));
    let above = format!("{folder}.rs");
    let named = match stem(path) {
        "mod" => format!("/{name}/mod.rs\"]"),
        _ => format!("/{name}.rs\"]"),
    };
    tree.files().filter(|other| other.is(".rs")).any(|other| {
        let is_near = beside.contains(&other.path) || other.path == above;
        (is_near && other.text.contains(&declaration))
            || (other.text.contains("#[path = ") && other.text.contains(&named))
    })
}

fn stem(path: &Path) -> &str {
    path.file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn a_file_is_declared_by_the_one_above_it() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;\nmod c;"),
            ("crates/a/src/b.rs", ""),
            ("crates/a/src/c/mod.rs", "mod d;"),
            ("crates/a/src/c/d.rs", "mod e;"),
            ("crates/a/src/c/d/e.rs", ""),
            ("crates/a/src/c/f.rs", ""),
            ("crates/a/tests/it/main.rs", "mod g;"),
            ("crates/a/tests/it/g.rs", ""),
            ("crates/a/tests/it/h.rs", ""),
            ("crates/a/tests/alone.rs", ""),
            ("crates/a/Cargo.toml", "path = \"tests/it/g/other.rs\""),
            ("crates/a/tests/it/g/other.rs", ""),
            ("crates/a/tests/it/compile_errors/cases/wrong.rs", ""),
        ];
        let found = ["crates/a/src/c/f.rs:1", "crates/a/tests/it/h.rs:1"];
        assert_eq!(places_of(check, &files), found);
    }
}
