//! No file has the markers of a merge conflict.

use super::{Finding, Tree, finding};

const REMEDY: &str = "solve the conflict, and remove its markers";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files() {
        for (number, line) in file.lines() {
            if is_marker(line) {
                found.push(finding(
                    &file.path,
                    number,
                    "the marker of a merge conflict",
                    REMEDY,
                ));
            }
        }
    }
    found
}

/// Markers have seven characters and the name of a side. A line of `=` alone may be a heading.
fn is_marker(line: &str) -> bool {
    ['<', '|', '>'].into_iter().any(|sign| {
        let marker = sign.to_string().repeat(7);
        line.strip_prefix(&marker)
            .is_some_and(|side| side.starts_with(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn markers_of_conflicts_are_found_and_tables_are_not() {
        let sides = ["<", "|", ">"].map(|sign| format!("{} side", sign.repeat(7)));
        let page = format!(
            "a\n{}\n=======\n|||||||\n{}\n{}\n",
            sides[0], sides[1], sides[2]
        );
        let found = places_of(check, &[("docs/a.md", &page)]);
        assert_eq!(found, ["docs/a.md:2", "docs/a.md:5", "docs/a.md:6"]);
    }
}
