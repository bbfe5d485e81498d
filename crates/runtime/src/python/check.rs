//! Checks the syntax of a Python script with the interpreter that would run it.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::name::ScriptType;
use meshwork_model::time::duration_of;
use tokio::process::Command;

use super::super::check::{ScriptError, SourcePosition};
use super::super::process;
use super::interpreter;

/// Longest time of a check. Python compiles the largest script in seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Compiles stdin. Prints the first error in one line: line, column, message.
const COMPILE: &str = r#"
import sys
try:
    compile(sys.stdin.buffer.read(), "script.py", "exec", dont_inherit=True)
except SyntaxError as error:
    fault = (error.lineno or 0, error.offset or 0, "%s: %s" % (type(error).__name__, error.msg))
except Exception as error:
    fault = (0, 0, "%s: %s" % (type(error).__name__, error))
else:
    sys.exit(0)
line, column, message = fault
print(max(line, 0), max(column, 0), " ".join(message.split())[:1000].encode("utf-8", "replace").decode())
"#;

/// Checks a script.
pub(in super::super) fn check(script: Vec<u8>) -> BoxFuture<'static, Result<(), ScriptError>> {
    Box::pin(async move {
        let unchecked = |error: &dyn std::fmt::Display| ScriptError::Unchecked(error.to_string());
        let interpreter = interpreter::find().await;
        let interpreter = interpreter.map_err(|error| unchecked(&error))?;
        let input = move || process::stdin(&std::env::temp_dir(), Some(&script));
        let input = process::blocking(input).await;
        let input = input.map_err(|error| unchecked(&error))?;
        let said = ask(&interpreter.path, input).await?;
        match read(&said) {
            None => Ok(()),
            Some((message, at)) => Err(ScriptError::Syntax {
                script_type: ScriptType::PYTHON,
                message,
                at,
            }),
        }
    })
}

async fn ask(interpreter: &Path, input: File) -> Result<String, ScriptError> {
    let mut command = Command::new(interpreter);
    command.args(["-I", "-X", "utf8", "-W", "ignore", "-c", COMPILE]);
    command.env_clear().stdin(input).stderr(Stdio::null());
    let name = interpreter.display();
    let unchecked = |why: String| ScriptError::Unchecked(format!("{name} {why}"));
    match tokio::time::timeout(PATIENCE, process::output(command)).await {
        Ok(Ok(output)) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        // A script can crash Python's parser.
        Ok(Ok(output)) => Err(unchecked(format!("gave up on it ({})", output.status))),
        Ok(Err(error)) => Err(unchecked(format!("cannot be started: {error}"))),
        Err(_) => Err(unchecked(format!(
            "took more than {} for it",
            duration_of(PATIENCE)
        ))),
    }
}

fn read(said: &str) -> Option<(String, SourcePosition)> {
    let said = said.trim_end();
    let mut parts = said.splitn(3, ' ');
    let mut number = || parts.next()?.parse().ok();
    let (line, column) = (number()?, number()?);
    let message = parts.next().unwrap_or_default().to_owned();
    Some((message, SourcePosition { line, column }))
}
