//! Links between the repository's documents have existing targets.

use super::super::tree::File;
use super::{Finding, Tree, finding};

const REMEDY: &str = "correct the link or write what it promises";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| file.is(".md")) {
        for (number, target) in links(file) {
            if leads_nowhere(tree, file, &target) {
                let what = format!("the link to {target} leads nowhere");
                found.push(finding(&file.path, number, what, REMEDY));
            }
        }
    }
    found
}

/// Targets of links, outside blocks of code.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(file) {
        found.extend(line.split("](").skip(1).filter_map(|after| {
            let target = after.split([')', ' ']).next()?;
            Some((number, target.to_owned()))
        }));
        let definition = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        found.extend(definition.map(|(_, target)| (number, target.trim().to_owned())));
    }
    found
}

/// Lines outside blocks of code.
fn prose(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    file.lines().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_block ^= fence;
        !in_block && !fence
    })
}

fn leads_nowhere(tree: &Tree, file: &File, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return false;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        file.path.clone()
    } else {
        beside(&file.path, path)
    };
    if !tree.has(&path) {
        return true;
    }
    let document = tree.file(&path).filter(|document| document.is(".md"));
    !heading.is_empty()
        && document.is_some_and(|document| !anchors(document).iter().any(|it| it == heading))
}

/// `docs/a.md` and `../README.md` give `README.md`.
fn beside(file: &str, path: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The names under which headings can be linked to, as code hosts make them.
fn anchors(file: &File) -> Vec<String> {
    prose(file)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let a = "# One `two`: three\n[a](docs/b.md) [b](docs/c.md)\n[c](#one-two-three) [d](#four)\n\
                 ```\n[e](none)\n```\n[f](https://example.org/x)\n[g]: docs/d.md\n";
        let b = "[up](../a.md#one-two-three)\n[here](./b.md)\n[out](../a.md#five)";
        let found = places_of(check, &[("a.md", a), ("docs/b.md", b)]);
        assert_eq!(found, ["a.md:2", "a.md:3", "a.md:8", "docs/b.md:3"]);
    }
}
