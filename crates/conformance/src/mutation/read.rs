//! Reads mutations from `mutations/`, a file for each verb, so that a new one compiles nothing. A line begins with
//!
//! * `@@ ` before the name of a mutation,
//! * `-` before each line of the text that it replaces, as it stands in the script,
//! * `+` before each line of what stands there instead; without one, nothing does,
//! * `near:` before the files whose cases are tried first, for all mutations below it,
//! * `#` before a comment.

use std::fs;
use std::path::Path;

use meshwork_broker::script::Verb;

use super::Mutation;
use crate::cases::{Failure, GROUPS};

/// The folder as a path, and relative to the repository.
pub(super) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/mutations");
const SHOWN: &str = "crates/conformance/mutations";

/// Returns all mutations, by verb.
pub(super) fn all() -> Result<Vec<Mutation>, Failure> {
    let mut all = of_folder(Path::new(FOLDER), "")?;
    all.sort_by_key(|mutation| mutation.verb as usize);
    Ok(all)
}

/// Returns the mutations of a folder: `claim.diff` has those of `claim`, `flow/answer.diff` those of `flow_answer`, and
/// `batch/seal_batch.diff` those of `seal_batch`.
fn of_folder(path: &Path, folder: &str) -> Result<Vec<Mutation>, Failure> {
    let failed = |why| failed(&path.to_string_lossy(), &why);
    let mut all = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        let name = entry.file_stem().unwrap_or_default().to_string_lossy();
        if entry.is_dir() {
            all.extend(of_folder(&entry, &name)?);
        } else if entry.extension().is_some_and(|end| end == "diff") {
            let file = Path::new(SHOWN).join(folder).join(format!("{name}.diff"));
            let file = file.to_string_lossy();
            let long = format!("{folder}_{name}");
            let with = |name: &str| Verb::ALL.into_iter().find(|verb| verb.name() == name);
            let verb = with(&long).or_else(|| with(&name));
            let verb = verb.ok_or_else(|| Failure::at(&file, 1, "no verb has this name"))?;
            all.extend(of_verb(verb, &file, &read(&entry)?)?);
        }
    }
    Ok(all)
}

/// Returns the text of a file.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|why| failed(&path.to_string_lossy(), &why))
}

fn failed(path: &str, why: &std::io::Error) -> Failure {
    Failure::at(path, 0, why)
}

/// Parses the mutations of a file's text.
fn of_verb(verb: Verb, file: &str, text: &str) -> Result<Vec<Mutation>, Failure> {
    let (mut all, mut near): (Vec<Mutation>, _) = (Vec::new(), Vec::new());
    let mut begun: Option<Begun> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let fault = |what: &str| Failure::at(file, line, what);
        if let Some(what) = text.strip_prefix("@@ ") {
            all.extend(begun.take().map(|one| one.end(verb, file)).transpose()?);
            if let Some(other) = all.iter().find(|other| other.what == what) {
                return Err(fault(&format!(
                    "`{what}` is another's name, line {}",
                    other.line
                )));
            }
            let (what, near) = (what.to_owned(), near.clone());
            begun = Some(Begun {
                what,
                near,
                line,
                ..Begun::default()
            });
        } else if let Some(names) = text.strip_prefix("near:") {
            near = groups(names)
                .map_err(|name| fault(&format!("no file of cases is called `{name}`")))?;
        } else if let Some(text) = text.strip_prefix('-') {
            let one = begun.as_mut().filter(|one| one.replace.is_empty());
            let one = one.ok_or_else(|| fault("`-` comes behind `@@ name`, and before `+`"))?;
            one.find.push(text.to_owned());
        } else if let Some(text) = text.strip_prefix('+') {
            let one = begun.as_mut().filter(|one| !one.find.is_empty());
            let one = one.ok_or_else(|| fault("`+` comes behind `-`"))?;
            one.replace.push(text.to_owned());
        } else if !text.is_empty() && !text.starts_with('#') {
            return Err(fault("a line begins with `@@ `, `-`, `+`, `near:` or `#`"));
        }
    }
    all.extend(begun.map(|one| one.end(verb, file)).transpose()?);
    Ok(all)
}

/// Returns the files of cases with these names, which commas separate.
fn groups(names: &str) -> Result<Vec<&'static str>, String> {
    let names = names.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let group = GROUPS.iter().find(|group| group.name == name);
            group.map(|group| group.name).ok_or_else(|| name.to_owned())
        })
        .collect()
}

/// A mutation that is not completely parsed yet.
#[derive(Default)]
struct Begun {
    what: String,
    find: Vec<String>,
    replace: Vec<String>,
    near: Vec<&'static str>,
    line: usize,
}

impl Begun {
    fn end(self, verb: Verb, file: &str) -> Result<Mutation, Failure> {
        let find = self.find.join("\n");
        if find.is_empty() {
            return Err(Failure::at(file, self.line, "no `-` says what is replaced"));
        }
        Ok(Mutation {
            verb,
            what: self.what,
            find,
            replace: self.replace.join("\n"),
            near: self.near,
            file: file.to_owned(),
            line: self.line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Mutation>, String> {
        of_verb(Verb::Claim, "claim.diff", text).map_err(|why| why.to_string())
    }

    #[test]
    fn texts_are_taken_as_they_stand() {
        let text = "# One.\n@@ a\n-  x = '-'\n-\n+  x = '+'\n+\n\nnear: keys, slots\n@@ b\n--1\n";
        let all = parsed(text).unwrap();
        assert_eq!(
            (all[0].find.as_str(), all[0].replace.as_str()),
            ("  x = '-'\n", "  x = '+'\n")
        );
        assert_eq!((all[1].find.as_str(), all[1].replace.as_str()), ("-1", ""));
        assert_eq!(
            (&*all[0].near, &*all[1].near),
            (&[][..], &["keys", "slots"][..])
        );
        assert_eq!(
            (all[0].line, all[1].line, all[1].name()),
            (2, 9, "claim::b".to_owned())
        );
    }

    #[test]
    fn faults_are_named_with_their_line() {
        for (text, expected) in [
            ("x", "1: a line begins with `@@ `, `-`, `+`, `near:` or `#`"),
            ("-x", "1: `-` comes behind `@@ name`, and before `+`"),
            (
                "@@ a\n-x\n+y\n-z",
                "4: `-` comes behind `@@ name`, and before `+`",
            ),
            ("@@ a\n+y", "2: `+` comes behind `-`"),
            ("@@ a\n\n@@ b\n-x", "1: no `-` says what is replaced"),
            ("@@ a\n-x\n@@ a\n-y", "3: `a` is another's name, line 1"),
            ("near: nowhere", "1: no file of cases is called `nowhere`"),
        ] {
            assert_eq!(parsed(text).unwrap_err(), format!("claim.diff:{expected}"));
        }
    }
}
