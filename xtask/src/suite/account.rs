//! What the test binaries say in their closing lines, added up.

use std::fmt;

/// The sum over all test binaries and doc tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    binaries: u32,
    passed: u32,
    ignored: u32,
    failed: Vec<String>,
    reports: Vec<String>,
    reporting: bool,
    skipped: Vec<String>,
    flaky: Vec<String>,
}

/// Lines of reports that are kept to be told again at the end, after thousands of lines about what passed.
const REPORTS: usize = 120;

impl Account {
    /// Takes notice of a line of a test binary's stdout.
    pub(super) fn add(&mut self, line: &str) {
        self.report(line);
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.binaries += 1;
            self.passed += count(counts, "passed");
            self.ignored += count(counts, "ignored");
        } else if let Some(name) = failed_test(line) {
            self.failed.push(name.to_owned());
        }
    }

    /// A binary heads two parts with the same word: what its tests said, and their names.
    fn report(&mut self, line: &str) {
        if line == "failures:" {
            self.reporting = !self.reporting;
        } else if line.starts_with("test result: ") {
            self.reporting = false;
        } else if self.reporting && !line.is_empty() && self.reports.len() < REPORTS {
            self.reports.push(line.to_owned());
        }
    }

    /// The tests that failed, for whoever sees only the last lines.
    pub(super) fn failed(&self) -> &[String] {
        &self.failed
    }

    /// Whether a program has said how many of its tests passed.
    pub(super) fn is_closed(&self) -> bool {
        self.binaries > 0
    }

    /// Adds what a program said, whose tests are named with `program` before them. One that failed without a test that
    /// did is named itself.
    pub(super) fn add_program(&mut self, program: &str, own: Self, passed: bool) {
        self.binaries += own.binaries;
        self.passed += own.passed;
        self.ignored += own.ignored;
        let room = REPORTS.saturating_sub(self.reports.len());
        self.reports.extend(own.reports.into_iter().take(room));
        if own.failed.is_empty() && !passed {
            self.failed.push(program.to_owned());
        }
        let named = |test| format!("{program}: {test}");
        self.failed.extend(own.failed.into_iter().map(named));
    }

    /// A test that failed and, run again by itself, did not.
    pub(super) fn add_flaky(&mut self, program: &str, test: &str) {
        let name = format!("{program}: {test}");
        self.failed.retain(|failed| *failed != name);
        self.passed += 1;
        self.flaky.push(name);
    }

    /// Takes notice of the list of skipped tests.
    pub(super) fn add_skipped(&mut self, list: &str) {
        self.skipped.extend(list.lines().map(str::to_owned));
        self.skipped.sort();
        self.skipped.dedup();
    }

    pub(super) fn any_skipped(&self) -> bool {
        !self.skipped.is_empty()
    }
}

/// Skipped tests stand apart: they return early, and most binaries count them as passed.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.reports {
            writeln!(f, "{line}")?;
        }
        for name in &self.failed {
            writeln!(f, "failed: {name}")?;
        }
        for name in &self.flaky {
            writeln!(f, "FLAKY {name}")?;
        }
        for line in &self.skipped {
            writeln!(f, "{line}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        write!(f, ", {} ignored, {} binaries", self.ignored, self.binaries)?;
        match self.skipped.len() {
            0 => Ok(()),
            skipped => write!(f, "; {skipped} were skipped and tested nothing"),
        }
    }
}

/// `3` of `… ok. 3 passed; 0 failed; …`.
fn count(counts: &str, what: &str) -> u32 {
    let words: Vec<&str> = counts
        .split([' ', ';', '.'])
        .filter(|word| !word.is_empty())
        .collect();
    words
        .windows(2)
        .find(|pair| pair[1] == what)
        .and_then(|pair| pair[0].parse().ok())
        .unwrap_or(0)
}

/// `name` of `test name ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("test ")?.rsplit_once(" ... FAILED")?;
    Some(name.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up() {
        let mut account = Account::default();
        for line in [
            "test one::works ... ok",
            "test two::breaks ... FAILED",
            "",
            "failures:",
            "",
            "---- two::breaks stdout ----",
            "it broke",
            "",
            "failures:",
            "    two::breaks",
            "test result: FAILED. 11 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out",
            "test src/lib.rs - hello (line 3) ... FAILED",
            "test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out",
        ] {
            account.add(line);
        }
        account.add_skipped("skipped: b: no valkey-server\nskipped: a: no valkey-server\n");
        assert_eq!(
            account.to_string(),
            "---- two::breaks stdout ----\nit broke\n\
             failed: two::breaks\nfailed: src/lib.rs - hello (line 3)\n\
             skipped: a: no valkey-server\nskipped: b: no valkey-server\n\
             18 passed, 2 failed, 2 ignored, 2 binaries; 2 were skipped and tested nothing"
        );
    }

    #[test]
    fn programs_name_their_tests() {
        let mut own = Account::default();
        own.add("test one::breaks ... FAILED");
        own.add("test two::breaks ... FAILED");
        own.add("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        let mut account = Account::default();
        account.add_program("cli::job", own, false);
        account.add_program("cli::run", Account::default(), false);
        account.add_program("cli::each", Account::default(), true);
        assert_eq!(
            account.failed(),
            ["cli::job: one::breaks", "cli::job: two::breaks", "cli::run"]
        );
        account.add_flaky("cli::job", "two::breaks");
        assert_eq!(
            account.to_string(),
            "failed: cli::job: one::breaks\nfailed: cli::run\nFLAKY cli::job: two::breaks\n\
             2 passed, 2 failed, 0 ignored, 1 binaries"
        );
    }
}
