//! Rust source split into code and string literals, without comments, for the rules. This is no parser: it only finds
//! the beginning and end of literals.

/// One line of source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The code, with empty literals.
    pub(super) code: String,
    /// The literals that begin here, without quotes and as written.
    pub(super) literals: Vec<String>,
    /// True if the line is only for tests.
    pub(super) test: bool,
}

/// Returns the lines of a file; `test_file` means that all of it is test code.
pub(super) fn lines_of(text: &str, test_file: bool) -> Vec<Line> {
    let mut scanner = Scanner {
        rest: text,
        lines: vec![Line::default()],
    };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    let mut lines = scanner.lines;
    mark_tests(&mut lines, test_file);
    lines
}

/// Crates for tests only.
const TEST_CRATES: [&str; 4] = [
    "crates/test-servers/",
    "crates/conformance/",
    "crates/fuzz/",
    "crates/scenarios/",
];

/// Returns whether all of a file is test code.
pub(super) fn is_test_file(path: &str) -> bool {
    TEST_CRATES.iter().any(|krate| path.starts_with(krate))
        || path.contains("/tests/")
        || path.ends_with("/tests.rs")
}

/// Returns whether a file is not a part of the product: tests, and programs that measure or demonstrate.
pub(super) fn is_beside_the_product(path: &str) -> bool {
    is_test_file(path) || path.contains("/examples/")
}

struct Scanner<'a> {
    rest: &'a str,
    lines: Vec<Line>,
}

impl Scanner<'_> {
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.rest = &self.rest[end..];
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(hashes) = raw_string(self.rest).filter(|_| !self.in_word()) {
            let start = self.rest.find('"').expect("a raw string has a quote") + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            let end = self.rest[start..]
                .find(&close)
                .map_or(self.rest.len(), |at| at + start);
            self.literal(start, end, close.len());
        } else if self.rest.starts_with('"') {
            let end = end_of_string(self.rest);
            self.literal(1, end, 1);
        } else if let Some(length) = character(self.rest) {
            self.line().code.push_str("''");
            self.rest = &self.rest[length..];
        } else {
            self.code();
        }
    }

    /// Returns whether an `r` or `b` here is the end of a longer name.
    fn in_word(&mut self) -> bool {
        self.line()
            .code
            .ends_with(|c: char| c.is_alphanumeric() || c == '_')
    }

    fn line(&mut self) -> &mut Line {
        self.lines
            .last_mut()
            .expect("there is a line from the start")
    }

    fn code(&mut self) {
        let Some(next) = self.rest.chars().next() else {
            return;
        };
        match next {
            '\n' => self.lines.push(Line::default()),
            other => self.line().code.push(other),
        }
        self.rest = &self.rest[next.len_utf8()..];
    }

    fn literal(&mut self, start: usize, end: usize, close: usize) {
        let literal = &self.rest[start..end];
        let breaks = literal.matches('\n').count();
        let owned = literal.to_owned();
        self.rest = self.rest.get(end + close..).unwrap_or("");
        let line = self.line();
        line.code.push_str("\"\"");
        line.literals.push(owned);
        self.lines.extend((0..breaks).map(|_| Line::default()));
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.rest = &self.rest[2..];
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.rest = &self.rest[2..];
                if depth == 0 {
                    return;
                }
            } else if let Some(next) = self.rest.chars().next() {
                if next == '\n' {
                    self.lines.push(Line::default());
                }
                self.rest = &self.rest[next.len_utf8()..];
            } else {
                return;
            }
        }
    }
}

/// Returns the number of hashes of the raw string that begins here.
fn raw_string(text: &str) -> Option<usize> {
    let after = ["br", "cr", "r"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Returns the position of the closing quote of the string that begins here.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the character literal that begins here; a lifetime is not one.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    let length = if first == '\\' {
        inner[2..].find('\'')? + 2
    } else {
        first.len_utf8()
    };
    inner[length..].starts_with('\'').then_some(length + 2)
}

/// Marks the lines for tests. An item under `#[cfg(test)]` ends with its closing brace, or with a semicolon before
/// any.
fn mark_tests(lines: &mut [Line], test_file: bool) {
    let mut depth: Option<usize> = None;
    for line in lines {
        if depth.is_none() && line.code.contains("#[cfg(test)]") {
            depth = Some(0);
        }
        line.test = test_file || depth.is_some();
        let Some(open) = &mut depth else { continue };
        let mut ended = false;
        for c in line.code.chars() {
            match c {
                '{' => *open += 1,
                '}' => {
                    *open = open.saturating_sub(1);
                    ended = *open == 0;
                }
                ';' if *open == 0 => ended = true,
                _ => {}
            }
        }
        if ended {
            depth = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<String> {
        lines_of(text, false)
            .into_iter()
            .map(|line| line.code)
            .collect()
    }

    fn literals(text: &str) -> Vec<String> {
        lines_of(text, false)
            .into_iter()
            .flat_map(|line| line.literals)
            .collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(
            codes("a(); // sleep(\nb /* x /* y */ \n z */ c"),
            ["a(); ", "b ", " c"]
        );
        assert_eq!(
            codes(r#"f("a \" b", 'x', '"', '\'', b"q")"#),
            [r#"f("", '', '', '', b"")"#]
        );
        assert_eq!(
            codes("fn f<'a>(x: &'a str) {}"),
            ["fn f<'a>(x: &'a str) {}"]
        );
    }

    #[test]
    fn literals_keep_their_line() {
        assert_eq!(
            literals(r##"a(r#"hero:"x"#, "two\"")"##),
            ["hero:\"x", "two\\\""]
        );
        let lines = lines_of("let a = \"one\ntwo\";\nlet b = \"three\";", false);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].literals, ["one\ntwo"]);
        assert_eq!(lines[2].literals, ["three"]);
    }

    #[test]
    fn test_items_end_with_their_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}";
        let test: Vec<bool> = lines_of(text, false).iter().map(|line| line.test).collect();
        assert_eq!(test, [false, true, true, true, true, false]);
        let text = "#[cfg(test)]\nmod tests;\nfn c() {}";
        let test: Vec<bool> = lines_of(text, false).iter().map(|line| line.test).collect();
        assert_eq!(test, [true, true, false]);
    }
}
