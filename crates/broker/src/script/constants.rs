//! Constants of scripts, inlined as literals. A local variable that functions use costs a script an object and a
//! search for each such function, in every call; a literal costs nothing. This module knows no particular constants.

use std::collections::HashMap;

/// Names in capitals, each with its Lua literal.
#[derive(Debug, Clone, Default)]
pub(super) struct Constants(HashMap<String, String>);

impl Constants {
    /// Returns the constants with these names.
    pub(super) fn new(names: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let names = names.into_iter();
        Self(
            names
                .map(|(name, literal)| (name.to_owned(), literal))
                .collect(),
        )
    }

    /// Returns the script with literals in place of these constants and of its own, which are lines of the form
    /// `local NAME = literal`. Comments are removed; every line keeps its number, because errors name it.
    pub(super) fn put_into(&self, script: &str) -> String {
        let mut all = self.clone();
        let own = script.lines().filter_map(definition);
        let own = own.map(|(name, literal)| (name.to_owned(), literal.to_owned()));
        all.0.extend(own);
        let mut out = String::with_capacity(script.len());
        for line in script.lines() {
            if definition(line).is_none() {
                all.put_into_line(line, &mut out);
            }
            out.push('\n');
        }
        out
    }

    fn put_into_line(&self, line: &str, out: &mut String) {
        let (mut rest, mut word) = (line, false);
        // Skips text that can neither begin nor hide a constant.
        while let Some(at) = rest.find(|c: char| {
            let within = std::mem::replace(&mut word, is_word(c));
            matches!(c, '\'' | '"' | '-') || (c.is_ascii_uppercase() && !within)
        }) {
            let (before, found) = rest.split_at(at);
            out.push_str(before);
            if found.starts_with("--") {
                rest = "";
                break;
            }
            let len = match found.as_bytes()[0] {
                b'\'' | b'"' => quoted(found),
                b'-' => 1,
                _ => found.find(|c| !is_word(c)).unwrap_or(found.len()),
            };
            let (token, after) = found.split_at(len);
            out.push_str(self.0.get(token).map_or(token, String::as_str));
            (rest, word) = (after, false);
        }
        out.push_str(rest);
        out.truncate(out.trim_end_matches(' ').len());
    }

    /// Returns the names.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// Returns the constant that a line defines.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("local ")?.split_once(" = ")?;
    let value = value.split(" --").next()?.trim_end();
    let capitals = |c: char| c.is_ascii_uppercase() || c == '_';
    let number = value.bytes().all(|c| c.is_ascii_digit());
    let text = value.len() > 1 && value.starts_with('\'') && quoted(value) == value.len();
    (name.chars().all(capitals) && !value.is_empty() && (number || text)).then_some((name, value))
}

/// Returns whether the character belongs to a name or number.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the length of the string literal at the beginning of the text, with its quotes, in bytes.
pub(super) fn quoted(text: &str) -> usize {
    let quote = text.chars().next().unwrap_or_default();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(script: &str) -> String {
        let names = [("JOB", "'hero:job:'".to_owned()), ("MOST", "7".to_owned())];
        Constants::new(names).put_into(script)
    }

    #[test]
    fn names_become_literals() {
        let script = "return JOB .. id, MOST2, x.MOST_, (MOST)";
        let expected = "return 'hero:job:' .. id, MOST2, x.MOST_, (7)\n";
        assert_eq!(put(script), expected);
    }

    #[test]
    fn strings_and_comments_are_no_names() {
        let script = "f('JOB', \"MOST\", 'it\\'s JOB', 'a -- JOB') -- of JOB's\nMOST";
        let expected = "f('JOB', \"MOST\", 'it\\'s JOB', 'a -- JOB')\n7\n";
        assert_eq!(put(script), expected);
    }

    #[test]
    fn constants_of_the_script_become_literals_too() {
        let script = "local MOST = 1000 -- ids\nlocal WORD = 'a b'\nreturn MOST, WORD";
        assert_eq!(put(script), "\n\nreturn 1000, 'a b'\n");
    }

    #[test]
    fn what_is_worked_out_stays_a_variable() {
        for script in [
            "local MOST_ = 10 * 5\n",
            "local Most = 1\n",
            "  local A = 1\n",
        ] {
            assert_eq!(put(script), script);
        }
    }
}
