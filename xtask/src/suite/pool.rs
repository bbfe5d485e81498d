//! Concurrent test programs: they wait half of their time, so more of them run than there are cores.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{self, Failure};

/// The outcome of a program.
pub(super) struct Ended<T> {
    pub(super) task: T,
    /// Its stdout, line by line.
    pub(super) lines: Vec<String>,
    pub(super) passed: Result<bool, Failure>,
    pub(super) took: Duration,
}

/// Runs `tasks` in order, `at_once` of them at a time, each until `deadline` at most. `see` gets each one when it has
/// ended, one after the other.
pub(super) fn run<T: Send>(
    tasks: Vec<T>,
    at_once: usize,
    deadline: Instant,
    command: impl Fn(&T) -> Command + Sync,
    mut see: impl FnMut(Ended<T>),
) {
    let waiting = Mutex::new(VecDeque::from(tasks));
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_front()
    };
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once {
            let (sender, next, command) = (sender.clone(), &next, &command);
            scope.spawn(move || {
                while let Some(task) = next() {
                    let ended = perform(task, command, deadline);
                    if sender.send(ended).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for ended in ended {
            see(ended);
        }
    });
}

fn perform<T>(task: T, command: impl Fn(&T) -> Command, deadline: Instant) -> Ended<T> {
    let started = Instant::now();
    let mut lines = Vec::new();
    let limit = deadline.saturating_duration_since(started);
    let passed = process::watch(&mut command(&task), limit, |line| {
        lines.push(line.to_owned());
    });
    Ended {
        task,
        lines,
        passed,
        took: started.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &&str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn each_program_is_run_once_and_told_of_whole() {
        let scripts = vec!["echo a; echo b", "exit 1", "echo c"];
        let mut seen = Vec::new();
        run(scripts.clone(), 2, Instant::now() + LIMIT, shell, |ended| {
            seen.push((ended.task, ended.passed.unwrap(), ended.lines.join(" ")));
        });
        seen.sort_unstable_by_key(|(task, ..)| scripts.iter().position(|script| script == task));
        let expected = [
            (scripts[0], true, "a b".to_owned()),
            (scripts[1], false, String::new()),
            (scripts[2], true, "c".to_owned()),
        ];
        assert_eq!(seen, expected);
    }

    /// Two programs that wait for each other end only if they run at the same time.
    #[test]
    fn programs_run_side_by_side() {
        let folder = std::env::temp_dir().join(format!("xtask-pool-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let mut all = true;
        let command = |verb: &&str| shell(&format!("{verb} {}", pipe.display()).as_str());
        run(
            vec!["echo x >", "cat"],
            2,
            Instant::now() + LIMIT,
            command,
            |ended| {
                all &= ended.passed.unwrap();
            },
        );
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(all);
    }
}
