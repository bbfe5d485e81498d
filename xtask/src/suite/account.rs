//! Sum of the results of all test binaries.

use std::fmt;

/// The sum over all test binaries and doc tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    binaries: u32,
    passed: u32,
    ignored: u32,
    failed: Vec<Failed>,
    /// Index of the failed test whose message the next lines belong to.
    reporting: Option<usize>,
    skipped: Vec<String>,
    flaky: Vec<Failed>,
    slowest: Vec<(u32, String)>,
}

/// A test that failed.
#[derive(Debug, PartialEq, Eq)]
struct Failed {
    name: String,
    /// The last lines of its message.
    message: Vec<String>,
}

/// Number of lines that are kept of a failed test's message, to be repeated at the end. The reason is at its end.
const MESSAGE: usize = 30;

/// Number of failed tests whose messages are repeated.
const MESSAGES: usize = 10;

/// Number of tests that are named as the slowest.
const SLOWEST: usize = 10;

impl Failed {
    fn new(name: impl Into<String>) -> Self {
        let (name, message) = (name.into(), Vec::new());
        Self { name, message }
    }

    fn add(&mut self, line: &str) {
        if self.message.len() == MESSAGE {
            self.message.remove(0);
        }
        if !(line.is_empty() && self.message.is_empty()) {
            self.message.push(line.to_owned());
        }
    }
}

impl Account {
    /// Processes a line of a test binary's stdout.
    pub(super) fn add(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.reporting = None;
            self.binaries += 1;
            self.passed += count(counts, "passed");
            self.ignored += count(counts, "ignored");
        } else if line == "failures:" {
            self.reporting = None;
        } else if let Some(name) = reported_test(line) {
            self.reporting = self.failed.iter().position(|failed| failed.name == name);
        } else if let Some(at) = self.reporting {
            self.failed[at].add(line);
        } else {
            self.failed.extend(failed_test(line).map(Failed::new));
            self.slowest.extend(timed_test(line));
            self.keep_slowest();
        }
    }

    fn keep_slowest(&mut self) {
        self.slowest.sort_unstable_by(|one, other| other.cmp(one));
        self.slowest.truncate(SLOWEST);
    }

    /// Returns the failed tests.
    pub(super) fn failed(&self) -> Vec<String> {
        self.failed.iter().map(|test| test.name.clone()).collect()
    }

    /// Returns whether a program has printed its number of passed tests.
    pub(super) fn is_closed(&self) -> bool {
        self.binaries > 0
    }

    /// Adds the results of a program, whose tests are named with `program` before them. A program that failed without
    /// a failed test is named itself.
    pub(super) fn add_program(&mut self, program: &str, own: Self, passed: bool) {
        self.binaries += own.binaries;
        self.passed += own.passed;
        self.ignored += own.ignored;
        if own.failed.is_empty() && !passed {
            self.failed.push(Failed::new(program));
        }
        let named = |name: String| format!("{program}: {name}");
        self.failed
            .extend(own.failed.into_iter().map(|test| Failed {
                name: named(test.name),
                ..test
            }));
        let slowest = own.slowest.into_iter();
        self.slowest
            .extend(slowest.map(|(took, name)| (took, named(name))));
        self.keep_slowest();
    }

    /// Marks a failed test as flaky, because it passed when run alone.
    pub(super) fn add_flaky(&mut self, program: &str, test: &str) {
        let name = format!("{program}: {test}");
        let at = self.failed.iter().position(|failed| failed.name == name);
        let failed = at.map_or_else(|| Failed::new(name), |at| self.failed.remove(at));
        self.passed += 1;
        self.flaky.push(failed);
    }

    /// Adds the list of skipped tests.
    pub(super) fn add_skipped(&mut self, list: &str) {
        self.skipped.extend(list.lines().map(str::to_owned));
        self.skipped.sort();
        self.skipped.dedup();
    }

    pub(super) fn any_skipped(&self) -> bool {
        !self.skipped.is_empty()
    }
}

/// Prints failures last, for readers of the last lines. Skipped tests are listed separately: they return early, and
/// most binaries count them as passed.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (ms, name) in &self.slowest {
            writeln!(f, "slowest: {}.{:03} s {name}", ms / 1000, ms % 1000)?;
        }
        for line in &self.skipped {
            writeln!(f, "{line}")?;
        }
        for (what, tests) in [("FLAKY ", &self.flaky), ("failed: ", &self.failed)] {
            for (at, test) in tests.iter().enumerate() {
                writeln!(f, "{what}{}", test.name)?;
                let message = test.message.iter().filter(|_| at < MESSAGES);
                for line in message {
                    writeln!(f, "    {line}")?;
                }
            }
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        write!(f, ", {} ignored, {} binaries", self.ignored, self.binaries)?;
        match self.skipped.len() {
            0 => Ok(()),
            skipped => write!(f, "; {skipped} were skipped and tested nothing"),
        }
    }
}

/// Returns `3` for `passed` in `… ok. 3 passed; 0 failed; …`.
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

/// Returns `name` in `test name ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("test ")?.rsplit_once(" ... FAILED")?;
    Some(name.trim_end())
}

/// Returns `name` in `---- name stdout ----`, or in `---- name ----`.
fn reported_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("---- ")?.strip_suffix(" ----")?;
    Some(name.strip_suffix(" stdout").unwrap_or(name))
}

/// Returns the milliseconds and the name of a test: `test name ... ok <1.234s>`, or `slow: 1.234s name`.
fn timed_test(line: &str) -> Option<(u32, String)> {
    let (name, seconds) = if let Some(rest) = line.strip_prefix("slow: ") {
        let (seconds, name) = rest.split_once(' ')?;
        (name, seconds)
    } else {
        let (name, rest) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let (_, seconds) = rest.strip_suffix('>')?.split_once('<')?;
        (name.trim_end(), seconds)
    };
    let (whole, part) = seconds.strip_suffix('s')?.split_once('.')?;
    let whole: u32 = whole.parse().ok()?;
    let part: u32 = part.parse().ok().filter(|_| part.len() == 3)?;
    Some((whole.checked_mul(1000)?.checked_add(part)?, name.to_owned()))
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
            "skipped: a: no valkey-server\nskipped: b: no valkey-server\n\
             failed: two::breaks\n    it broke\n    \n\
             failed: src/lib.rs - hello (line 3)\n\
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
            "FLAKY cli::job: two::breaks\nfailed: cli::job: one::breaks\nfailed: cli::run\n\
             2 passed, 2 failed, 0 ignored, 1 binaries"
        );
    }

    #[test]
    fn the_slowest_tests_are_named_and_long_messages_cut() {
        let mut own = Account::default();
        for number in 0..12 {
            own.add(&format!("test t{number} ... ok <{number}.005s>"));
        }
        own.add("slow: 100.250s redis::heavy::one");
        own.add("test broken ... FAILED <0.100s>");
        own.add("---- broken ----");
        for number in 0..100 {
            own.add(&format!("line {number}"));
        }
        let mut account = Account::default();
        account.add_program("p", own, false);
        let said = account.to_string();
        let lines: Vec<_> = said.lines().collect();
        let slowest = [
            "slowest: 100.250 s p: redis::heavy::one",
            "slowest: 11.005 s p: t11",
            "slowest: 10.005 s p: t10",
            "slowest: 9.005 s p: t9",
            "slowest: 8.005 s p: t8",
            "slowest: 7.005 s p: t7",
            "slowest: 6.005 s p: t6",
            "slowest: 5.005 s p: t5",
            "slowest: 4.005 s p: t4",
            "slowest: 3.005 s p: t3",
            "failed: p: broken",
            "    line 70",
        ];
        assert_eq!(lines[..12], slowest);
        assert_eq!(lines[lines.len() - 2], "    line 99");
    }
}
