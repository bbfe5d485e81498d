//! Child processes with a time limit, and their times.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The reason why a chore failed, in a sentence.
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

/// Returns the command as typed in a shell.
pub(crate) fn in_words(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(OsStr::to_string_lossy);
    std::iter::once(program.into())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command to the end with this process' stdout and stderr; an error if it fails or exceeds the limit.
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

/// Does the same as [`run`]. Returns its time and its processor time, in words.
pub(crate) fn timed(command: &mut Command, limit: Duration) -> Result<String, Failure> {
    let (started, before) = (Instant::now(), processor_time());
    let outcome = run(command, limit);
    let processor = processor_time().saturating_sub(before);
    let times = format!(
        "{}, {} of processor time",
        in_minutes(started.elapsed()),
        in_minutes(processor)
    );
    match outcome {
        Ok(()) => Ok(times),
        Err(failure) => Err(Failure::new(format!("{failure} (after {times})"))),
    }
}

/// Returns a time as `3 min 20 s`.
pub(crate) fn in_minutes(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Ticks of the processor time in `/proc`, per second.
const TICKS: u64 = 100;

/// Returns the processor time of all processes that this one has waited for, with those that they have waited for; zero
/// where `/proc` does not have it.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program is in brackets, and may have blanks.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let of_children = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = of_children
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1_000 / TICKS)
}

/// Does the same as [`run`]; the error also has the lines of stderr from the first one with an error on.
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

/// Number of lines of an error that are repeated.
const QUOTED: usize = 40;

/// Forwards lines to this process' stderr, and returns those of an error.
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

/// Runs a command to the end and returns its output; an error if it fails or exceeds the limit.
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

/// Runs a command and passes its stdout to `see`, line by line; returns whether it succeeded.
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
                // Reaped, so that no zombie is left.
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
    // Bounded, so that a flood of output waits for this process, not the other way round.
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

/// Kills a process with all its descendants. They are in this process' group, so that a signal to that group ends
/// them too. Hence they are found by their parents. The root is suspended first, because init adopts the children of
/// a process that has ended.
fn kill_tree(root: u32) {
    signal("-STOP", root);
    let table = ask(Command::new("ps").args(["-A", "-o", "pid=,ppid="]), LISTING);
    for child in descendants(&table.unwrap_or_default(), root) {
        signal("-KILL", child);
    }
    signal("-KILL", root);
}

/// Timeout of `ps`.
const LISTING: Duration = Duration::from_secs(10);

fn signal(name: &str, id: u32) {
    Command::new("kill")
        .args([name, &id.to_string()])
        .status()
        .ok();
}

/// Returns all descendants of `root` in a table of process and parent ids.
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
    fn times_are_those_of_the_process_and_its_children() {
        assert_eq!(in_minutes(Duration::from_millis(59_900)), "59 s");
        assert_eq!(in_minutes(Duration::from_secs(125)), "2 min 5 s");
        let before = processor_time();
        let busy = "sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done'";
        let said = timed(&mut shell(busy), PATIENCE).unwrap();
        assert!(said.ends_with(" s of processor time"), "{said}");
        assert!(processor_time() > before);
        let failed = timed(&mut shell("exit 3"), PATIENCE).unwrap_err();
        assert!(failed.to_string().contains("(after 0 s, "), "{failed}");
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
