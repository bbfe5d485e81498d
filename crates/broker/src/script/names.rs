//! Detection of undefined names in a script. Lua treats them as globals, which are nil, and Redis refuses them only
//! when the line runs.

use std::collections::BTreeSet;

/// Globals that Redis provides.
const PROVIDED: [&str; 19] = [
    "KEYS", "ARGV", "redis", "string", "table", "math", "cjson", "struct", "bit", "unpack",
    "ipairs", "pairs", "next", "select", "type", "tonumber", "tostring", "error", "pcall",
];

const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Returns the free names of a script, with its inlined constants.
pub(super) fn free(script: &str) -> BTreeSet<String> {
    let tokens = tokens(script);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        scopes: vec![BTreeSet::new()],
        brackets: Vec::new(),
        free: BTreeSet::new(),
    };
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.free.into_iter().map(ToOwned::to_owned).collect()
}

struct Reader<'a> {
    tokens: &'a [&'a str],
    at: usize,
    scopes: Vec<BTreeSet<&'a str>>,
    brackets: Vec<&'a str>,
    free: BTreeSet<&'a str>,
}

impl<'a> Reader<'a> {
    fn step(&mut self) {
        let token = self.take();
        match token {
            "local" if self.peek() == "function" => {
                self.at += 1;
                let name = self.take();
                self.declare(name);
                self.function();
            }
            "local" => {
                for name in self.names() {
                    self.declare(name);
                }
            }
            "function" => self.function(),
            "for" => {
                let names = self.names();
                // The loop's expression is read before its names are declared. No script uses the same names in both.
                self.scopes.push(names.into_iter().collect());
                while self.peek() != "do" {
                    self.step();
                }
                self.at += 1;
            }
            "do" | "then" | "repeat" => self.scopes.push(BTreeSet::new()),
            "else" => {
                self.scopes.pop();
                self.scopes.push(BTreeSet::new());
            }
            "elseif" | "end" => {
                self.scopes.pop();
            }
            // The condition after `until` sees the names of the block. So does the code after it, in this
            // approximation.
            "until" => {
                let names = self.scopes.pop().unwrap_or_default();
                names.into_iter().for_each(|name| self.declare(name));
            }
            "(" | "[" | "{" => self.brackets.push(token),
            ")" | "]" | "}" => {
                self.brackets.pop();
            }
            _ => self.mention(token),
        }
    }

    fn mention(&mut self, name: &'a str) {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let before = self.at.checked_sub(2).map_or("", |at| self.tokens[at]);
        let field = before == "." || (self.peek() == "=" && self.brackets.last() == Some(&"{"));
        let known = KEYWORDS.contains(&name)
            || PROVIDED.contains(&name)
            || self.scopes.iter().any(|scope| scope.contains(name));
        if is_name && !field && !known {
            self.free.insert(name);
        }
    }

    /// Reads the parameters of a function, and opens the scope of its body.
    fn function(&mut self) {
        self.scopes.push(BTreeSet::new());
        self.at += 1; // the bracket
        while self.peek() != ")" {
            let name = self.take();
            self.declare(name);
        }
        self.at += 1;
    }

    /// Reads names between commas.
    fn names(&mut self) -> Vec<&'a str> {
        let mut names = vec![self.take()];
        while self.peek() == "," {
            self.at += 1;
            names.push(self.take());
        }
        names
    }

    fn declare(&mut self, name: &'a str) {
        self.scopes.last_mut().expect("a scope").insert(name);
    }

    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn take(&mut self) -> &'a str {
        let token = self.tokens.get(self.at);
        self.at += 1;
        token
            .copied()
            .expect("a script that ends with its last block")
    }
}

/// Returns the words and signs of a script, without comments and strings.
fn tokens(script: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut found, mut rest) = (Vec::new(), script);
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '\'' | '"' => super::constants::quoted(rest),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            '.' => rest.find(|c| c != '.').unwrap_or(rest.len()),
            '=' | '~' | '<' | '>' if rest[1..].starts_with('=') => 2,
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        let quoted = matches!(c, '\'' | '"') || token.starts_with("--");
        if !c.is_whitespace() && !quoted {
            found.push(token);
        }
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> Vec<String> {
        free(script).into_iter().collect()
    }

    #[test]
    fn what_nothing_provides_is_found() {
        assert_eq!(found("local a = b.c + f({d = e})"), ["b", "e", "f"]);
        assert_eq!(found("if x then local y = 1 end\nreturn y"), ["x", "y"]);
        assert_eq!(found("f()\nlocal function f() return f() end"), ["f"]);
        assert_eq!(
            found("for i, v in ipairs(t) do i, v = v, i end i = 1"),
            ["i", "t"]
        );
    }

    #[test]
    fn what_is_provided_is_none() {
        let script = "local a, b = {c = 1, ['d'] = KEYS[1]}, 'e' -- f\n\
                      local function g(h, ...) return h.i, g, ... end\n\
                      for j = 1, #ARGV do if a then g(j) elseif b then g(b) else local k = j; g(k) end end\n\
                      repeat local l = redis.call('m') until l\nreturn function(n) return n .. 1e3 end";
        assert_eq!(found(script), [""; 0]);
    }
}
