//! Commands: words without a shell, or several lines for `bash -e`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use sal_text::dedent;

/// Most bytes of stdout, and of stderr, that are kept for the script: the limit of a job's result.
const MAX_KEPT: usize = 16 * 1024 * 1024;

/// Shell of commands of several lines.
const SHELL: &str = "/bin/bash";

/// Exit code of a command that was not started or was killed by a signal.
const NO_CODE: i64 = -1;

/// Reason why a command has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("Empty command")]
    Empty,
    #[error("Failed to execute command: cannot start `{0}`: {1}{note}", note = without_shell(.0))]
    Start(String, io::Error),
    #[error("Script execution failed with exit code {0}: {1}")]
    Script(i64, String),
    #[error("Failed to wait on child process: {0}")]
    Wait(io::Error),
    #[error("Failed to create script file: {0}")]
    File(io::Error),
    #[error("the command printed more than {MAX_KEPT} bytes: let it write to a file")]
    TooMuch,
}

/// Words with which a command of a shell begins, and no program.
const OF_SHELL: [&str; 12] = [
    "cd", "eval", "export", "for", "function", "if", "local", "set", "source", "trap", "until",
    "while",
];

/// Returns what to do if this is no program, but a word or an assignment of a shell.
fn without_shell(program: &str) -> &'static str {
    match OF_SHELL.contains(&program) || program.contains('=') {
        true => "; a command of one line runs without a shell: write it in several lines",
        false => "",
    }
}

/// Result of a command.
#[derive(Debug, Clone)]
pub(crate) struct CommandResult {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) code: i64,
}

/// A command with its options.
#[derive(Debug, Clone)]
pub(crate) struct CommandBuilder {
    text: String,
    variables: Vec<(String, String)>,
    die: bool,
    silent: bool,
    log: bool,
}

impl CommandBuilder {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            variables: Vec::new(),
            die: true,
            silent: false,
            log: false,
        }
    }

    /// Adds a variable to the environment of the command.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn silent(mut self, silent: bool) -> Self {
        self.silent = silent;
        self
    }

    /// Sets whether a command that cannot run throws an error.
    pub(super) fn die(mut self, die: bool) -> Self {
        self.die = die;
        self
    }

    pub(super) fn log(mut self, log: bool) -> Self {
        self.log = log;
        self
    }

    /// Runs the command to its end. A single command that fails has a result; a script of several lines is an error then.
    pub(super) fn execute(&self) -> Result<CommandResult, RunError> {
        let text = self.text.trim();
        if self.log {
            print(&mut io::stdout(), &format!("Executing command: {text}"));
        }
        let result = match text.contains('\n') {
            true => self.script(text),
            false => self.words(text),
        };
        match result {
            Err(error) if !self.die => Ok(CommandResult {
                stdout: String::new(),
                stderr: format!("Error: {error}"),
                code: NO_CODE,
            }),
            result => result,
        }
    }

    fn words(&self, text: &str) -> Result<CommandResult, RunError> {
        let mut words = text.split_whitespace();
        let program = words.next().ok_or(RunError::Empty)?;
        let mut command = Command::new(program);
        command.args(words);
        self.output_of(command, program)
    }

    fn script(&self, text: &str) -> Result<CommandResult, RunError> {
        let mut file = tempfile::Builder::new()
            .suffix(".sh")
            .tempfile()
            .map_err(RunError::File)?;
        let written = file.write_all(dedent(text).as_bytes());
        written.map_err(RunError::File)?;
        let mut command = Command::new(SHELL);
        command.arg("-e").arg(file.path());
        let result = self.output_of(command, SHELL)?;
        match result.code {
            0 => Ok(result),
            code => Err(RunError::Script(code, result.stderr.trim().to_owned())),
        }
    }

    /// Runs a command. Its output goes to that of the job too, unless it is silent.
    fn output_of(&self, mut command: Command, program: &str) -> Result<CommandResult, RunError> {
        command
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = command.spawn();
        let mut child = started.map_err(|error| RunError::Start(program.to_owned(), error))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let silent = self.silent;
        let (stdout, stderr) = thread::scope(|scope| {
            let stderr = scope.spawn(move || collect(stderr, silent, &mut io::stderr()));
            let stdout = collect(stdout, silent, &mut io::stdout());
            (stdout, stderr.join().unwrap_or(None))
        });
        let status = child.wait().map_err(RunError::Wait)?;
        Ok(CommandResult {
            stdout: stdout.ok_or(RunError::TooMuch)?,
            stderr: stderr.ok_or(RunError::TooMuch)?,
            code: status.code().map_or(NO_CODE, i64::from),
        })
    }
}

/// Reads the output of a command to its end, line by line. Returns `None` if it is too long.
fn collect(output: Option<impl Read>, silent: bool, log: &mut impl Write) -> Option<String> {
    let (mut kept, mut line, mut fits) = (String::new(), Vec::new(), true);
    let mut output = BufReader::new(output?);
    // A line has a bound as well: an endless one is read in parts.
    while let Ok(1..) = (&mut output)
        .take(MAX_KEPT as u64)
        .read_until(b'\n', &mut line)
    {
        let text = String::from_utf8_lossy(&line);
        fits &= kept.len() + text.len() <= MAX_KEPT;
        if fits {
            kept.push_str(&text);
        }
        if !silent {
            print(log, text.trim_end_matches('\n'));
        }
        line.clear();
    }
    fits.then_some(kept)
}

/// Prints a line to the log of the job.
fn print(log: &mut impl Write, line: &str) {
    // A job whose output is closed goes on.
    let _ = writeln!(log, "{line}");
}
