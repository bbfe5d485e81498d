//! Each Lua script numbers at its top the KEYS and ARGV that its body uses, one in each line, and names its results.
//!
//! `-- KEYS[1]  the job's hash` is one entry. `-- ARGV[3..]  per job: id, type` is the last one, for all from that
//! number on. `-- KEYS  none` means that there are none.

use super::super::tree::File;
use super::{Finding, Tree, finding};

const SCRIPTS: &str = "crates/broker/src/lua/";

/// Files that are no scripts by themselves.
const LIBRARY: &str = "/lua/lib/";

/// First characters of a line that names parts of a script.
const MADE_OF: &str = "--- @";

const REMEDY: &str = "number the entries from 1, one per line: `-- ARGV[2]  …`, `-- ARGV[3..]  per job: …`, or \
                      `-- ARGV  none`";

/// The entries of KEYS or ARGV in a header.
#[derive(Default)]
struct Entries {
    /// Numbers of the entries.
    numbers: Vec<usize>,
    /// The entry that stands for all from its number on.
    open: Option<usize>,
    none: bool,
}

/// A use of KEYS or ARGV in a body.
#[derive(Debug, PartialEq, Eq)]
enum Use {
    /// One of them, by its number.
    One(usize),
    /// Any number of them.
    Many,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let scripts = tree.files().filter(|file| {
        let script = file.path.starts_with(SCRIPTS) && file.is(".lua");
        script && !file.path.contains(LIBRARY)
    });
    scripts.flat_map(faults).collect()
}

fn faults(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let first = file
        .text
        .lines()
        .take_while(|line| line.starts_with(MADE_OF))
        .count();
    let lines = || file.text.lines().skip(first);
    let header: Vec<&str> = lines().take_while(|line| line.starts_with("--")).collect();
    let after = first + header.len();
    let purpose = header.first().is_some_and(|line| {
        !["-- KEYS", "-- ARGV", "-- Returns"]
            .iter()
            .any(|word| line.starts_with(word))
    });
    if !purpose {
        let remedy = "begin its header with a sentence on what the script does";
        found.push(finding(&file.path, 1, "no purpose", remedy));
    }
    if !header.iter().any(|line| line.starts_with("-- Returns ")) {
        let remedy = "say in its header what it returns";
        found.push(finding(&file.path, 1, "no line `-- Returns`", remedy));
    }
    for name in ["KEYS", "ARGV"] {
        let entries = entries(&header, name);
        if let Some(what) = entries.fault(name) {
            found.push(finding(&file.path, 1, what, REMEDY));
            continue;
        }
        for (at, line) in file.text.lines().enumerate().skip(after) {
            let missing = uses(line, name).into_iter().find(|used| !entries.has(used));
            if let Some(used) = missing {
                let what = match used {
                    Use::One(number) => format!("{name}[{number}] is not in the header"),
                    Use::Many => {
                        format!("any number of {name}, and no `{name}[n..]` in the header")
                    }
                };
                found.push(finding(&file.path, at + 1, what, REMEDY));
                break;
            }
        }
    }
    found
}

fn entries(header: &[&str], name: &str) -> Entries {
    let mut all = Entries::default();
    for line in header {
        let Some(rest) = line
            .strip_prefix("-- ")
            .and_then(|line| line.strip_prefix(name))
        else {
            continue;
        };
        let inside = rest
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]  "));
        match inside {
            Some((number, _)) => {
                let open = number.strip_suffix("..");
                // A number that is none breaks the order.
                let number = open.unwrap_or(number).parse().unwrap_or_default();
                all.numbers.push(number);
                all.open = all.open.or(open.map(|_| number));
            }
            None if rest.trim() == "none" => all.none = true,
            None => all.numbers.push(0),
        }
    }
    all
}

impl Entries {
    fn fault(&self, name: &str) -> Option<String> {
        if self.numbers.is_empty() {
            return (!self.none).then(|| format!("no line `-- {name}[1]`"));
        }
        let ordered = self.numbers.iter().copied().eq(1..=self.numbers.len());
        let last = self.open.is_none_or(|open| open == self.numbers.len());
        (!ordered || !last || self.none).then(|| format!("{name} are not numbered one by one"))
    }

    fn has(&self, used: &Use) -> bool {
        match used {
            Use::One(number) => *number <= self.numbers.len() || self.open.is_some(),
            Use::Many => self.open.is_some(),
        }
    }
}

/// The uses of `name` in a line, without its comment.
fn uses(line: &str, name: &str) -> Vec<Use> {
    let code = line.split("--").next().unwrap_or_default();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut all = Vec::new();
    for (at, _) in code.match_indices(name) {
        let rest = &code[at + name.len()..];
        if code[..at].ends_with(word) || rest.starts_with(word) {
            continue;
        }
        let number = rest
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .and_then(|(number, _)| number.parse().ok());
        all.push(number.map_or(Use::Many, Use::One));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    fn places(script: &str) -> Vec<usize> {
        let path = "crates/broker/src/lua/a.lua";
        let places = places_of(check, &[(path, script)]);
        let lines = places.iter().filter_map(|place| place.rsplit(':').next());
        lines.filter_map(|line| line.parse().ok()).collect()
    }

    #[test]
    fn a_numbered_header_is_accepted() {
        let script = "--- @include base\n-- Ends a job.\n-- KEYS[1]  the job\n-- ARGV[1]    now\n\
                      -- ARGV[2..]  per line: its stream,\n--            the line\n-- Returns 1\n\
                      read(KEYS[1]) -- not KEYS[2]\nfor a = 2, #ARGV, 2 do f(ARGV[a], ARGV[7]) end\n";
        assert_eq!(places(script), [0; 0]);
        let none =
            "-- Does.\n-- KEYS  none\n-- ARGV     none\n-- Returns 1\nreturn MYKEYS, KEYS_\n";
        assert_eq!(places(none), [0; 0]);
    }

    #[test]
    fn a_header_without_numbers_is_refused() {
        assert_eq!(places("return KEYS[1]\n"), [1, 1, 1, 1]);
        let unnumbered = "-- Does.\n-- KEYS    the job\n-- ARGV\n-- Returns 1\nreturn 1\n";
        assert_eq!(places(unnumbered), [1, 1]);
        let older = "-- Does.\n-- KEYS    1: the job\n-- ARGV    none\n-- Returns 1\nreturn 1\n";
        assert_eq!(places(older), [1]);
        let text = "-- KEYS[1]  a\n-- KEYS[3]  b\n-- ARGV[1..]  c\n-- ARGV[2]  d\n-- Returns 1\nreturn 1\n";
        assert_eq!(places(text), [1, 1, 1]);
    }

    #[test]
    fn entries_that_the_body_uses_are_in_the_header() {
        let head = "-- Does.\n-- KEYS[1]  a\n-- ARGV  none\n-- Returns 1\n";
        for (body, line) in [
            ("return KEYS[2]", 5),
            ("local a\nreturn #KEYS", 6),
            ("return ARGV[1]", 5),
            ("return unpack(ARGV)", 5),
        ] {
            assert_eq!(places(&format!("{head}{body}\n")), [line], "{body}");
        }
    }

    #[test]
    fn library_files_have_no_contract() {
        let library = [(
            "crates/broker/src/lua/lib/a.lua",
            "-- Reads.\nreturn KEYS[1]\n",
        )];
        assert!(places_of(check, &library).is_empty());
    }
}
