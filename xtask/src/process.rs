//! Child processes with a bound on their time.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Why a chore failed, in a sentence.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The command as one would type it.
pub(crate) fn in_words(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(OsStr::to_string_lossy);
    std::iter::once(program.into())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs to the end with our own stdout and stderr; an error if it fails or takes too long.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<(), Failure> {
    let child = spawn(command)?;
    let output = wait(child, command, limit)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "`{}` failed: {}",
        in_words(command),
        output.status
    )))
}

/// As [`run`]; the error says too what stands on stderr from the first line on that tells of an error.
pub(crate) fn run_quoting(command: &mut Command, limit: Duration) -> Result<(), Failure> {
    let mut child = spawn(command.stderr(Stdio::piped()))?;
    let stream = child.stderr.take().expect("stderr is piped");
    let quote = thread::spawn(move || quote(stream));
    let output = wait(child, command, limit)?;
    if output.status.success() {
        return Ok(());
    }
    let quoted = quote.join().unwrap_or_default();
    let (words, status) = (in_words(command), output.status);
    Err(Failure::new(format!("`{words}` failed: {status}{quoted}")))
}

/// Lines of an error that are told again.
const QUOTED: usize = 40;

/// Passes lines on to our stderr.
fn quote(stream: impl Read) -> String {
    let mut quoted = String::new();
    let mut room = QUOTED;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        eprintln!("{line}");
        if room > 0 && (room < QUOTED || line.contains("error")) {
            room -= 1;
            quoted.push_str("\n    ");
            quoted.push_str(&line);
        }
    }
    quoted
}

/// Runs to the end and returns what it said; an error if it fails or takes too long.
pub(crate) fn ask(command: &mut Command, limit: Duration) -> Result<String, Failure> {
    let child = spawn(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )?;
    let output = wait(child, command, limit)?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors
        .trim()
        .lines()
        .last()
        .unwrap_or("it said nothing")
        .to_owned();
    Err(Failure::new(format!(
        "`{}` failed: {last}",
        in_words(command)
    )))
}

/// Runs with its stdout going, line by line, to `see`; returns whether it succeeded.
pub(crate) fn watch(
    command: &mut Command,
    limit: Duration,
    mut see: impl FnMut(&str),
) -> Result<bool, Failure> {
    let started = Instant::now();
    let mut child = spawn(command.stdout(Stdio::piped()))?;
    let lines = lines_of(&mut child);
    let mut last = String::new();
    loop {
        match lines.recv_timeout(limit.saturating_sub(started.elapsed())) {
            Ok(line) => {
                see(&line);
                last = line;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                kill_tree(child.id());
                // Reaped, so that nothing of it is left when we return.
                child.wait().ok();
                let words = in_words(command);
                return Err(Failure::new(format!(
                    "`{words}` was stopped after {limit:?}; its last line: {last}"
                )));
            }
        }
    }
    let left = limit.saturating_sub(started.elapsed());
    Ok(wait(child, command, left)?.status.success())
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let stream = child.stdout.take().expect("stdout is piped");
    // Bounded, so that a flood of output waits for us and not the other way round.
    let (sender, receiver) = mpsc::sync_channel(1024);
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn spawn(command: &mut Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| {
        Failure::new(format!(
            "`{}` cannot be started: {error}",
            in_words(command)
        ))
    })
}

fn wait(child: Child, command: &Command, limit: Duration) -> Result<Output, Failure> {
    let id = child.id();
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(limit) {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) => Err(Failure::new(format!("`{}`: {error}", in_words(command)))),
        Err(_) => {
            kill_tree(id);
            Err(Failure::new(format!(
                "`{}` was stopped after {limit:?}",
                in_words(command)
            )))
        }
    }
}

/// Kills a process with all that it started. They are in our own process group, so that whoever
/// ends us ends them too; hence they are found by their parents, and the root is stopped first,
/// since the children of one that has ended are init's.
fn kill_tree(root: u32) {
    signal("-STOP", root);
    let table = ask(Command::new("ps").args(["-A", "-o", "pid=,ppid="]), LISTING);
    for child in descendants(&table.unwrap_or_default(), root) {
        signal("-KILL", child);
    }
    signal("-KILL", root);
}

/// How long `ps` may take.
const LISTING: Duration = Duration::from_secs(10);

fn signal(name: &str, id: u32) {
    Command::new("kill")
        .args([name, &id.to_string()])
        .status()
        .ok();
}

/// All below `root` in a table of process and parent numbers.
fn descendants(table: &str, root: u32) -> Vec<u32> {
    let pairs: Vec<(u32, u32)> = table
        .lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        })
        .collect();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(
            pairs
                .iter()
                .filter(|pair| pair.1 == parent)
                .map(|pair| pair.0),
        );
        at += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn children_of_children_are_found() {
        assert_eq!(descendants(" 1 0\n 5 1\n 9 7\n 7 5\n 8 1\n", 5), [7, 9]);
    }

    #[test]
    fn what_takes_too_long_is_ended_with_its_children() {
        let limit = Duration::from_millis(300);
        let mut child = None;
        let mut command = shell("sleep 100 & echo $!; wait");
        let failure = watch(&mut command, limit, |line| child = Some(line.to_owned())).unwrap_err();
        assert!(
            failure.to_string().contains("was stopped after 300ms"),
            "{failure}"
        );
        let child = child.expect("the shell names its child");
        let state = ask(
            Command::new("ps").args(["-o", "stat=", "-p", &child]),
            PATIENCE,
        );
        assert!(state.is_err() || state.is_ok_and(|state| state.starts_with('Z')));
    }

    #[test]
    fn a_failure_quotes_its_error() {
        let script = "echo warning >&2; echo error: bad >&2; echo here >&2; exit 1";
        let failure = run_quoting(&mut shell(script), PATIENCE).unwrap_err();
        let said = failure.to_string();
        assert!(
            said.ends_with("exit status: 1\n    error: bad\n    here"),
            "{said}"
        );
        run_quoting(&mut shell("echo error >&2"), PATIENCE).unwrap();
    }

    #[test]
    fn a_failure_carries_the_last_words() {
        let failure = ask(
            &mut shell("echo first >&2; echo last >&2; exit 3"),
            PATIENCE,
        );
        assert!(failure.unwrap_err().to_string().ends_with("failed: last"));
    }
}
