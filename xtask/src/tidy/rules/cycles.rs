//! Modules beside each other must not use one another in a circle, because such modules can only be read, tested and
//! changed together. A module may use those above it and below it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::rust_text::{is_test_file, lines_of};
use super::{Finding, Tree, finding};

const REMEDY: &str = "move what both need into a module of its own, or pass it in";

/// A module by its names from the root of its crate.
type Module = Vec<String>;
/// The modules that each module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let circles = circles(tree).into_iter();
    let found = circles.map(|(folder, modules)| {
        let what = format!("a circle: {} use one another", modules.join(", "));
        finding(&folder, 1, what, REMEDY)
    });
    found.collect()
}

/// The circles of each folder, each with its modules in order.
fn circles(tree: &Tree) -> Vec<(String, Vec<String>)> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &str>> = BTreeMap::new();
    for file in tree.files().filter(|file| file.is(".rs")) {
        let Some((root, below)) = file.path.split_once("/src/") else {
            continue;
        };
        let is_part = !below.starts_with("bin/") && !below.ends_with("tests.rs");
        if is_part && !file.path.contains("/tests/") {
            let modules = crates.entry(root).or_default();
            modules.insert(module_of(below), &file.text);
        }
    }
    let mut found = Vec::new();
    for (root, modules) in crates {
        for (folder, uses) in by_folder(&modules, is_test_file(&format!("{root}/"))) {
            let folder = std::iter::once(format!("{root}/src"))
                .chain(folder)
                .collect::<Vec<_>>();
            let circles = strongly_connected(&uses).into_iter();
            found.extend(circles.map(|circle| (folder.join("/"), circle)));
        }
    }
    found
}

fn module_of(below: &str) -> Module {
    let mut names: Module = below
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if names
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        names.pop();
    }
    names
}

/// Returns the uses between the modules of each folder, without uses of modules above or below.
fn by_folder(modules: &BTreeMap<Module, &str>, test: bool) -> BTreeMap<Module, Uses> {
    let mut folders: BTreeMap<Module, Uses> = BTreeMap::new();
    for (module, text) in modules {
        for used in used_in(text, module, test) {
            let mut used = &used[..];
            while !used.is_empty() && !modules.contains_key(used) {
                used = &used[..used.len() - 1];
            }
            let apart = module
                .iter()
                .zip(used)
                .position(|(one, other)| one != other);
            if let Some(at) = apart {
                let uses = folders.entry(module[..at].to_vec()).or_default();
                uses.entry(module[at].clone())
                    .or_default()
                    .insert(used[at].clone());
            }
        }
    }
    folders
}

/// The paths that begin with `crate`, `self` or `super`, from the root of the crate, outside of tests.
fn used_in(text: &str, module: &Module, test: bool) -> Vec<Module> {
    let lines = lines_of(text, false).into_iter();
    // In the crates for tests, all lines are for tests.
    let code: Vec<String> = lines
        .filter(|line| test || !line.test)
        .map(|line| line.code)
        .collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for start in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                paths(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
        .into_iter()
        .map(|path| absolute(path, module))
        .collect()
}

/// Reads a path, or a tree of paths in braces. Returns the text after it.
fn paths<'a>(mut rest: &'a str, path: &mut Module, found: &mut Vec<Module>) -> &'a str {
    let depth = path.len();
    loop {
        rest = rest.trim_start();
        if let Some(mut inner) = rest.strip_prefix('{') {
            while !inner.trim_start().starts_with('}') && !inner.trim_start().is_empty() {
                inner = paths(inner, path, found).trim_start();
                inner = inner.strip_prefix(',').unwrap_or(inner);
            }
            path.truncate(depth);
            return inner.trim_start().strip_prefix('}').unwrap_or_default();
        }
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if length == 0 {
            // A star, or text that is not a path.
            found.push(path.clone());
            path.truncate(depth);
            let next = rest.char_indices().nth(1).map_or(rest.len(), |(at, _)| at);
            return &rest[next..];
        }
        path.push(rest[..length].to_owned());
        rest = &rest[length..];
        match rest.strip_prefix("::") {
            Some(behind) => rest = behind,
            None => {
                found.push(path.clone());
                path.truncate(depth);
                // `as name`
                return rest.trim_start().strip_prefix("as ").map_or(rest, |named| {
                    let named = named.trim_start();
                    named.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                });
            }
        }
    }
}

fn absolute(path: Module, module: &Module) -> Module {
    let mut from = if path.first().is_some_and(|first| first == "crate") {
        Vec::new()
    } else {
        module.clone()
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(from.pop()),
            _ => from.push(name),
        }
    }
    from
}

/// Returns the sets of more than one module in which each reaches all others.
fn strongly_connected(uses: &Uses) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|from| (from.as_str(), reach(uses, from)))
        .collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for from in uses.keys() {
        let circle = uses
            .keys()
            .filter(|to| reaches(from, to) && reaches(to, from));
        let circle: Vec<String> = circle.cloned().collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

fn reach<'a>(uses: &'a Uses, from: &str) -> BTreeSet<&'a str> {
    let mut all = BTreeSet::new();
    let mut next: Vec<&str> = uses
        .get(from)
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    while let Some(one) = next.pop() {
        if all.insert(one) {
            next.extend(uses.get(one).into_iter().flatten().map(String::as_str));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn a_circle_of_folders_is_found_and_those_above_may_be_used() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "mod one; mod two; mod three; use crate::one::deep::X;",
            ),
            ("crates/a/src/one/mod.rs", "mod deep; use super::Root;"),
            (
                "crates/a/src/one/deep.rs",
                "use crate::{two::{self, B as C}, three};",
            ),
            ("crates/a/src/two.rs", "fn f() { crate::three::g() }"),
            (
                "crates/a/src/three.rs",
                "use super::one::deep as other;\nuse std::fmt;",
            ),
        ];
        assert_eq!(places_of(check, &files), ["crates/a/src:1"]);
        let cut = [
            files[0],
            files[1],
            files[2],
            files[3],
            ("crates/a/src/three.rs", ""),
        ];
        assert_eq!(places_of(check, &cut), [""; 0]);
    }

    #[test]
    fn tests_and_comments_and_literals_count_for_nothing() {
        let files = [
            ("crates/a/src/one.rs", "use crate::two::X;"),
            (
                "crates/a/src/two.rs",
                "// crate::one::Y\nconst A: &str = \"crate::one::Y\";\n#[cfg(test)]\nmod tests {\n    use crate::one::Y;\n}\n",
            ),
        ];
        assert_eq!(places_of(check, &files), [""; 0]);
    }
}
