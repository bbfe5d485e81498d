//! Assembly of scripts from files. The first lines of a file, which are not sent, name the others:
//!
//! * `--- @include base, telemetry`: these files of `lua/lib` precede this one, each once in a script, in the order
//!   of their first mention. Records, elements and lists differ between jobs of Hero and those of contexts: such a file
//!   is in both `lua/lib/layout_hero` and `lua/lib/layout_context`, and not in `lua/lib`.
//! * `--- @lazy claim_slow gives claim_slow, claim_each`: these files are evaluated at the first call of
//!   `slow_path()` in a call of the script. It returns a table of the functions after `gives`. A function is created in
//!   each call of a script, which costs more than most uses of it. Functions for rare jobs are therefore created on
//!   demand.
//! * `--- @flags allow-oom`: the script runs although the server's memory is full. It frees memory, claims or
//!   releases jobs, prevents a second run, or pauses or removes a schedule.
//! * `--- @flags no-writes`: the script only reads. Only such a script can be called by `EVALSHA_RO`.
//! * `--- @rights late`: the commands of lazy files are checked before those are first used, by `slow_denied()`, which
//!   returns an error if a right is missing. Scripts without this line check all rights before they do anything. See
//!   [`super::rights`].

use std::fmt;

use super::files::text;
use super::{Layout, Protocol, rights};

/// Mark of lines that name other files.
const MARK: &str = "--- @";

/// First file of every script.
const FIRST: &str = "lib/prelude.lua";

/// Flag of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    /// The script runs although the server's memory is full.
    AllowOom,
    /// The script only reads.
    NoWrites,
}

/// The first lines of a file.
#[derive(Debug, Default)]
pub(super) struct Top<'a> {
    include: Vec<&'a str>,
    lazy: Vec<&'a str>,
    gives: Vec<&'a str>,
    /// Flag for the script's first line.
    pub(super) flag: Option<Flag>,
    /// True if rights for lazy files are checked at their first use.
    late: bool,
    /// Rest of the file.
    body: &'a str,
}

/// A fault in the first lines of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    file: String,
    what: String,
}

impl Fault {
    fn new(file: &str, what: impl Into<String>) -> Self {
        let (file, what) = (file.to_owned(), what.into());
        Self { file, what }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lua/{}: {}", self.file, self.what)
    }
}

impl<'a> Top<'a> {
    /// Parses the first lines of a file.
    pub(super) fn read(file: &str, text: &'a str) -> Result<Self, Fault> {
        let mut top = Self {
            body: text,
            ..Self::default()
        };
        while let Some(line) = top.body.strip_prefix(MARK) {
            let (line, body) = line.split_once('\n').unwrap_or((line, ""));
            top.body = body;
            let (word, names) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "include" => top.include.extend(list(names)),
                "lazy" => {
                    let (names, gives) = names.split_once(" gives ").unwrap_or((names, ""));
                    top.lazy.extend(list(names));
                    top.gives.extend(list(gives));
                }
                "flags" if names == "allow-oom" => top.flag = Some(Flag::AllowOom),
                "flags" if names == "no-writes" => top.flag = Some(Flag::NoWrites),
                "rights" if names == "late" => top.late = true,
                _ => return Err(Fault::new(file, format!("`{MARK}{line}` is unknown"))),
            }
        }
        if top.body.contains(&format!("\n{MARK}")) {
            let what = format!("`{MARK}` stands below other lines: put it at the top");
            return Err(Fault::new(file, what));
        }
        if top.lazy.is_empty() != top.gives.is_empty() {
            return Err(Fault::new(file, "`lazy` and `gives` belong together"));
        }
        let named: Vec<_> = top.include.iter().chain(&top.lazy).collect();
        for names in [named, top.gives.iter().collect()] {
            for (at, name) in names.iter().enumerate() {
                if names[..at].contains(name) {
                    return Err(Fault::new(file, format!("names `{name}` twice")));
                }
            }
        }
        Ok(top)
    }
}

fn list(names: &str) -> impl Iterator<Item = &str> {
    names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// Assembles scripts from files.
pub(super) struct Expander<F> {
    /// Returns the text of a file of `lua/`.
    text: F,
    /// Files in the script so far, and the stack of files that are being included, innermost last.
    seen: Vec<String>,
    open: Vec<String>,
    lazy: Vec<String>,
    gives: Vec<String>,
}

/// Returns the assembled script of this file.
pub(super) fn expand(file: &str, layout: Layout) -> Result<String, Fault> {
    Expander::new(|path: &str| text_in(layout, path, text)).expand(file)
}

/// Returns the text of a file: the one for this layout, if layouts differ in it.
pub(super) fn text_in<'a>(
    layout: Layout,
    path: &str,
    text: impl Fn(&str) -> Option<&'a str>,
) -> Option<&'a str> {
    let folder = match layout {
        Layout::Hero => "lib/layout_hero",
        Layout::Context => "lib/layout_context",
    };
    let own = path.strip_prefix("lib/");
    own.and_then(|name| text(&format!("{folder}/{name}")))
        .or_else(|| text(path))
}

impl<'a, F: Fn(&str) -> Option<&'a str>> Expander<F> {
    pub(super) fn new(text: F) -> Self {
        let (seen, open, lazy, gives) = Default::default();
        Self {
            text,
            seen,
            open,
            lazy,
            gives,
        }
    }

    pub(super) fn expand(mut self, file: &str) -> Result<String, Fault> {
        let (mut first, mut often, mut seldom) = (String::new(), String::new(), String::new());
        self.add(FIRST, file, &mut first)?;
        let top = self.top(file, file)?;
        self.add_all(file, &top, &mut often)?;
        // Lazy files may include further lazy files.
        let mut at = 0;
        while let Some(name) = self.lazy.get(at).cloned() {
            self.add(&name, file, &mut seldom)?;
            at += 1;
        }
        let schema = Protocol::of_file(file);
        let rights = match (schema, top.flag) {
            // A commit checks the rights to each of its keys; a script that only reads leaves nothing half done.
            (Protocol::Context, _) | (_, Some(Flag::NoWrites)) => String::new(),
            _ => {
                let late = if top.late { "" } else { &seldom };
                let now = format!("{often}{late}{}", top.body);
                let commands = rights::commands(schema, &now);
                let denied = format!("return {}", rights::error());
                rights::check(schema, &commands, &denied)
            }
        };
        let rights = if rights.is_empty() {
            rights
        } else {
            format!("do {rights} end\n")
        };
        if self.lazy.is_empty() {
            return Ok(first + &often + &rights + top.body);
        }
        let late = match top.late {
            true => rights::check(
                schema,
                &rights::commands(schema, &seldom),
                &format!("return {}", rights::error()),
            ),
            false => String::new(),
        };
        let gives = self.gives.iter().map(|name| format!("{name} = {name}"));
        let gives = gives.collect::<Vec<_>>().join(", ");
        Ok(format!(
            "{first}local slow_path, slow_denied, made\n{often}local function make()\n{seldom}return {{{gives}}}\nend\n\
             slow_path = function()\n  made = made or make()\n  return made\nend\nslow_denied = function()\n  \
             if made then return end\n  {late}\nend\n{rights}{}",
            top.body
        ))
    }

    /// Parses the first lines of a file; `by` is the file that includes it.
    fn top(&self, file: &str, by: &str) -> Result<Top<'a>, Fault> {
        let text = (self.text)(file);
        let text = text.ok_or_else(|| Fault::new(by, format!("there is no lua/{file}")))?;
        Top::read(file, text)
    }

    /// Adds a file that `by` includes, after the files that it includes itself.
    fn add(&mut self, file: &str, by: &str, out: &mut String) -> Result<(), Fault> {
        if self.open.iter().any(|open| open == file) {
            let way = self.open.join(", ");
            let what = format!("includes lua/{file}, which includes it: {way}");
            return Err(Fault::new(by, what));
        }
        if self.seen.iter().any(|seen| seen == file) {
            return Ok(());
        }
        self.seen.push(file.to_owned());
        let top = self.top(file, by)?;
        if top.flag.is_some() || top.late {
            return Err(Fault::new(file, "flags are for scripts"));
        }
        self.add_all(file, &top, out)?;
        // A file that only names others adds no text.
        if top.body.lines().any(|line| !line.starts_with("--")) {
            out.push_str(top.body);
        }
        Ok(())
    }

    fn add_all(&mut self, file: &str, top: &Top<'a>, out: &mut String) -> Result<(), Fault> {
        self.open.push(file.to_owned());
        for name in &top.include {
            self.add(&format!("lib/{name}.lua"), file, out)?;
        }
        self.open.pop();
        let lazy = top.lazy.iter().map(|name| format!("lib/{name}.lua"));
        for (names, more) in [
            (&mut self.lazy, lazy.collect::<Vec<_>>()),
            (
                &mut self.gives,
                top.gives.iter().map(|name| (*name).to_owned()).collect(),
            ),
        ] {
            for name in more {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(files: &[(&str, &'static str)]) -> Result<String, String> {
        let text = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| *text)
        };
        let expanded = Expander::new(text).expand("a.lua");
        expanded.map_err(|fault| fault.to_string())
    }

    const SLOT: (&str, &str) = ("lib/prelude.lua", "s\n");

    #[test]
    fn each_is_included_once_and_before_what_needs_it() {
        let files = [
            SLOT,
            ("a.lua", "--- @include c, b\n--- @flags allow-oom\na\n"),
            ("lib/b.lua", "--- @include d\nb\n"),
            ("lib/c.lua", "--- @include d\nc\n"),
            ("lib/d.lua", "d\n"),
        ];
        assert_eq!(expanded(&files), Ok("s\nd\nc\nb\na\n".to_owned()));
    }

    #[test]
    fn one_that_only_names_others_adds_only_those() {
        let files = [
            SLOT,
            ("a.lua", "--- @include b\na\n"),
            ("lib/b.lua", "--- @include c\n-- Both.\n"),
            ("lib/c.lua", "c\n"),
        ];
        assert_eq!(expanded(&files), Ok("s\nc\na\n".to_owned()));
    }

    #[test]
    fn what_is_lazy_is_made_within_a_function() {
        let files = [
            SLOT,
            ("a.lua", "--- @include b, c\na\n"),
            ("lib/b.lua", "--- @lazy e gives e, d\nb\n"),
            (
                "lib/c.lua",
                "--- @include d\n--- @lazy f, e gives e, f\nc\n",
            ),
            ("lib/d.lua", "d\n"),
            ("lib/e.lua", "--- @include d, g\ne\n"),
            ("lib/f.lua", "f\n"),
            ("lib/g.lua", "g\n"),
        ];
        let expected = "s\nlocal slow_path, slow_denied, made\nb\nd\nc\nlocal function make()\ng\ne\nf\nreturn {e = e, d = d, f = f}\n\
                        end\nslow_path = function()\n  made = made or make()\n  return made\nend\nslow_denied = function()\n  \
                        if made then return end\n  \nend\na\n";
        assert_eq!(expanded(&files), Ok(expected.to_owned()));
    }

    #[test]
    fn faults_are_named() {
        let fault = |a, b| expanded(&[SLOT, ("a.lua", a), ("lib/b.lua", b)]).err();
        for (a, b, expected) in [
            (
                "--- @include c\n",
                "",
                "lua/a.lua: there is no lua/lib/c.lua",
            ),
            ("--- @include b, b\n", "b\n", "lua/a.lua: names `b` twice"),
            (
                "--- @include b\n--- @lazy b gives c\n",
                "b\n",
                "lua/a.lua: names `b` twice",
            ),
            (
                "--- @include b\n",
                "--- @include b\n",
                "lua/lib/b.lua: includes lua/lib/b.lua, which includes it: a.lua, lib/b.lua",
            ),
            (
                "--- @include b\n",
                "--- @flags allow-oom\nb\n",
                "lua/lib/b.lua: flags are for scripts",
            ),
            (
                "--- @lazy b\n",
                "b\n",
                "lua/a.lua: `lazy` and `gives` belong together",
            ),
            (
                "--- @includes b\n",
                "b\n",
                "lua/a.lua: `--- @includes b` is unknown",
            ),
            (
                "-- A.\n--- @include b\n",
                "b\n",
                "lua/a.lua: `--- @` stands below other lines: put it at the top",
            ),
        ] {
            assert_eq!(fault(a, b).as_deref(), Some(expected));
        }
    }
}
