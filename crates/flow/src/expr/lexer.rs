//! The names and the texts in single quotes of an expression, and the end of an expression within a template, found
//! without parsing it.

use std::ops::Range;

/// A name in an expression that is no property and no key of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) text: &'a str,
    /// The first byte.
    pub(super) start: usize,
    /// A parenthesis follows: the name of a function.
    pub(super) called: bool,
    /// A dot follows.
    pub(super) dotted: bool,
}

/// The expression at the start of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan<'a> {
    pub(super) names: Vec<Name<'a>>,
    /// The bytes of each text in single quotes, with its quotes.
    pub(super) single_quoted: Vec<Range<usize>>,
    /// The byte at which `}}` ends the expression, where one was looked for. None: it has no end.
    pub(super) end: Option<usize>,
}

/// The names of an expression that is the whole text.
pub(super) fn names(text: &str) -> Vec<Name<'_>> {
    whole(text).names
}

/// An expression that is the whole text.
pub(super) fn whole(text: &str) -> Scan<'_> {
    Lexer::new(text).scan(false)
}

/// The expression at the start of a text, up to the `}}` that belongs to no map and no text within it.
pub(super) fn until_braces(text: &str) -> Scan<'_> {
    Lexer::new(text).scan(true)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    found: Scan<'a>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            found: Scan::default(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn scan(mut self, braces: bool) -> Scan<'a> {
        let mut depth = 0usize;
        let mut property = false;
        while let Some(c) = self.rest().chars().next() {
            match c {
                '"' => self.quoted('"'),
                '`' => self.quoted('`'),
                '\'' => self.quoted('\''),
                '#' => self.raw(),
                '/' if self.comment() => continue,
                '{' => {
                    depth += 1;
                    self.at += 1;
                }
                '}' if depth == 0 && braces && self.rest().starts_with("}}") => {
                    self.found.end = Some(self.at);
                    return self.found;
                }
                '}' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                c if c.is_whitespace() => {
                    self.at += c.len_utf8();
                    continue;
                }
                c if c.is_ascii_digit() => self.skip(|c| c.is_alphanumeric() || c == '_'),
                c if c.is_alphabetic() || c == '_' => self.name(property),
                '.' => {
                    // Two dots are a range, after which a name may stand.
                    let range = self.rest().starts_with("..");
                    self.at += if range { 2 } else { 1 };
                    property = !range;
                    continue;
                }
                _ => self.at += c.len_utf8(),
            }
            property = false;
        }
        self.found
    }

    fn skip(&mut self, within: impl Fn(char) -> bool) {
        let rest = self.rest();
        let end = rest.find(|c| !within(c)).unwrap_or(rest.len());
        self.at += end;
    }

    fn name(&mut self, property: bool) {
        let start = self.at;
        self.skip(|c| c.is_alphanumeric() || c == '_');
        let text = &self.text[start..self.at];
        let after = self.rest().trim_start();
        // `x: 1` is a key, but not `x::y`.
        let key = after.starts_with(':') && !after.starts_with("::");
        if property || key {
            return;
        }
        self.found.names.push(Name {
            text,
            start,
            called: after.starts_with('('),
            dotted: after.starts_with('.') || after.starts_with("?.") || after.starts_with('['),
        });
    }

    /// A text in quotes. Names within `${…}` of a text in backticks are found, too.
    fn quoted(&mut self, quote: char) {
        let start = self.at;
        self.at += 1;
        while let Some(c) = self.rest().chars().next() {
            if c == '\\' && quote != '`' {
                self.at += 1;
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            } else if quote == '`' && self.rest().starts_with("${") {
                self.interpolated();
            } else {
                self.at += c.len_utf8();
                if c == quote {
                    break;
                }
            }
        }
        if quote == '\'' {
            self.found.single_quoted.push(start..self.at);
        }
    }

    fn interpolated(&mut self) {
        self.at += 2;
        let (start, mut depth) = (self.at, 1usize);
        while let Some(c) = self.rest().chars().next() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                '"' | '`' | '\'' => {
                    self.quoted(c);
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            self.at += c.len_utf8();
        }
        let within = names(&self.text[start..self.at]).into_iter();
        let moved = within.map(|name| Name {
            start: name.start + start,
            ..name
        });
        // A text within this one may have added names: in the order of their places, each once.
        self.found.names.extend(moved);
        self.found.names.sort_by_key(|name| name.start);
        self.found.names.dedup_by_key(|name| name.start);
        self.at = (self.at + 1).min(self.text.len());
    }

    /// A raw text: `#"…"#`, with any number of `#`.
    fn raw(&mut self) {
        let hashes = self.rest().bytes().take_while(|c| *c == b'#').count();
        let after = &self.rest()[hashes..];
        if !after.starts_with('"') {
            self.at += hashes;
            return;
        }
        let end = format!("\"{}", "#".repeat(hashes));
        let length = after[1..]
            .find(&end)
            .map_or(after.len(), |found| 1 + found + end.len());
        self.at += hashes + length;
    }

    fn comment(&mut self) -> bool {
        let rest = self.rest();
        if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
            return true;
        }
        if rest.starts_with("/*") {
            self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
            return true;
        }
        false
    }
}
