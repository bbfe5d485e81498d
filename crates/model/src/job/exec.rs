//! A job of the type `exec`: the script of a program, or the name of one, and its arguments.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The program of a job, in its field `script`. Text that begins with `{` is this struct as JSON; any other text is a
/// script without arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// Program to run.
    pub program: Program,
    /// Its arguments.
    pub args: Vec<String>,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Text of a script, run by the program in its `#!` line, or by `/bin/sh` without such a line.
    Script(String),
    /// A program on the worker's host: an absolute path, or a name in the worker's `PATH`.
    Named(String),
}

/// The reason why a text names no program.
#[derive(Debug, thiserror::Error)]
pub enum InvalidExec {
    /// The text is not JSON of this form.
    #[error(
        "it begins with {{ and is no {{\"program\": NAME, \"args\": […]}} or {{\"script\": TEXT, \"args\": […]}}: {0}; a shell script \
         begins with #!/bin/sh"
    )]
    Json(serde_json::Error),
    /// The text has both a script and a program, or neither.
    #[error("it names a program and has a script, or neither: give one of `program` and `script`")]
    NotOne,
    /// The path is relative, which names another file on each worker.
    #[error(
        "the program `{0}` is a relative path: give an absolute one, or a name that is on the worker's PATH"
    )]
    Relative(String),
    /// An argument has a NUL byte, which the system does not accept.
    #[error("`{0:?}` has a NUL byte, which no program can be given")]
    Nul(String),
    /// The bytes are not UTF-8.
    #[error("it is no UTF-8 text")]
    NoText,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    program: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    script: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<Cow<'a, str>>,
}

impl Exec {
    /// Reads the field `script` of a job.
    ///
    /// # Errors
    /// The text names no program.
    pub fn read(script: &[u8]) -> Result<Self, InvalidExec> {
        let text = std::str::from_utf8(script).map_err(|_| InvalidExec::NoText)?;
        if !text.trim_start().starts_with('{') {
            let program = Program::Script(text.to_owned());
            let args = Vec::new();
            return Ok(Self { program, args });
        }
        let written: Written<'_> = serde_json::from_str(text).map_err(InvalidExec::Json)?;
        let args = written.args.into_iter().map(Cow::into_owned).collect();
        let program = match (written.program, written.script) {
            (Some(program), None) => Program::Named(program.into_owned()),
            (None, Some(script)) => Program::Script(script.into_owned()),
            _ => return Err(InvalidExec::NotOne),
        };
        let exec = Self { program, args };
        exec.check()?;
        Ok(exec)
    }

    /// Returns the text for the field `script` of a job.
    #[must_use]
    pub fn write(&self) -> String {
        let args: Vec<_> = self.args.iter().map(|arg| arg.as_str().into()).collect();
        let (program, script) = match &self.program {
            Program::Script(text) if args.is_empty() && !text.trim_start().starts_with('{') => {
                return text.clone();
            }
            Program::Script(text) => (None, Some(text.as_str().into())),
            Program::Named(name) => (Some(name.as_str().into()), None),
        };
        let written = Written {
            program,
            script,
            args,
        };
        // A struct of texts always serializes.
        serde_json::to_string(&written).unwrap_or_default()
    }

    fn check(&self) -> Result<(), InvalidExec> {
        let named = match &self.program {
            Program::Named(name) => Some(name),
            Program::Script(_) => None,
        };
        if let Some(name) = named
            && (name.is_empty() || (name.contains('/') && !name.starts_with('/')))
        {
            return Err(InvalidExec::Relative(name.clone()));
        }
        match named
            .into_iter()
            .chain(&self.args)
            .find(|word| word.contains('\0'))
        {
            Some(word) => Err(InvalidExec::Nul(word.clone())),
            None => Ok(()),
        }
    }
}

/// Returns the interpreter in a script's first line, and the rest of that line as one argument, like the kernel.
/// Without a `#!` line it is `/bin/sh`.
#[must_use]
pub fn shebang(script: &str) -> (&str, Option<&str>) {
    let Some(line) = script.strip_prefix("#!") else {
        return ("/bin/sh", None);
    };
    let line = line.lines().next().unwrap_or_default().trim();
    match line.split_once([' ', '\t']) {
        Some((interpreter, argument)) => (interpreter, Some(argument.trim_start())),
        None => (line, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Exec {
        let program = Program::Script(text.to_owned());
        let args = Vec::new();
        Exec { program, args }
    }

    #[test]
    fn what_is_written_is_read() {
        let args = vec!["-a".to_owned(), "{script} \"ä\"".to_owned()];
        for exec in [
            script("#!/bin/sh\necho"),
            script("echo\n"),
            script("{ echo; }"),
            script(" {"),
            Exec {
                args: args.clone(),
                ..script("#!/bin/sh")
            },
            Exec {
                program: Program::Named("rsync".to_owned()),
                args,
            },
        ] {
            assert_eq!(Exec::read(exec.write().as_bytes()).unwrap(), exec);
        }
    }

    #[test]
    fn what_names_no_program_is_refused_by_name() {
        for (text, word) in [
            ("{", "#!/bin/sh"),
            (r#"{"prog": "x"}"#, "prog"),
            (r#"{"args": []}"#, "neither"),
            (r#"{"program": "a", "script": "b"}"#, "one of"),
            (r#"{"program": "bin/x"}"#, "bin/x"),
            (r#"{"program": ""}"#, "relative"),
            (r#"{"program": "x", "args": ["a\u0000"]}"#, "NUL"),
        ] {
            let error = Exec::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(Exec::read(b"\xff").is_err());
    }

    #[test]
    fn the_first_line_names_the_interpreter() {
        for (text, expected) in [
            ("echo", ("/bin/sh", None)),
            ("#!/bin/bash\nx", ("/bin/bash", None)),
            (
                "#! /usr/bin/env -S awk -f \r\n",
                ("/usr/bin/env", Some("-S awk -f")),
            ),
            ("#!\n", ("", None)),
        ] {
            assert_eq!(shebang(text), expected);
        }
    }
}
