//! `meshwork worker --reload`: a worker in a process of its own, which is started again when a file of its app has changed.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;

/// The option, which the worker itself is not given.
const OPTION: &str = "--reload";
/// Time between two looks at the files.
const LOOKS: Duration = Duration::from_millis(300);
/// Greatest number of files that are looked at.
const MAX_FILES: usize = 20_000;
/// Folders without code of the app; hidden ones and environments of Python are others.
const SKIPPED: [&str; 3] = ["__pycache__", "node_modules", "target"];
/// File in each environment of Python.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// Runs workers until a signal comes, one after another.
pub(super) async fn run(endings: &[&str]) -> Result<Exit, CommandError> {
    let interrupt = Interrupt::listen()?;
    let mut files = Files::of(env::current_dir().unwrap_or_default(), endings);
    loop {
        let mut worker = start()?;
        let changed = tokio::select! {
            changed = files.change() => changed,
            _ = interrupt.heard() => {
                stop(&mut worker).await;
                return Ok(interrupt.exit());
            }
            _ = worker.wait() => {
                note("the worker has ended: a change of a file starts it again");
                tokio::select! {
                    changed = files.change() => changed,
                    _ = interrupt.heard() => return Ok(interrupt.exit()),
                }
            }
        };
        note(format_args!(
            "{} has changed: the worker starts again",
            changed.display()
        ));
        stop(&mut worker).await;
    }
}

/// Starts a worker by the command of this process. Signals of the terminal are for this process, which passes them on.
fn start() -> Result<Child, CommandError> {
    let failed = |source| CommandError::system("start of the worker", &source);
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.args(env::args_os().skip(1).filter(|argument| argument != OPTION));
    command.process_group(0).spawn().map_err(failed)
}

/// Lets a worker end after its jobs, as far as its `--shutdown-timeout` allows.
async fn stop(worker: &mut Child) {
    let pid = worker.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(pid) = pid {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::TERM);
    }
    let _ = worker.wait().await;
}

/// Files of an app, with the times of their last changes.
struct Files<'a> {
    folder: PathBuf,
    endings: &'a [&'a str],
    seen: BTreeMap<PathBuf, SystemTime>,
}

impl<'a> Files<'a> {
    fn of(folder: PathBuf, endings: &'a [&'a str]) -> Self {
        let mut files = Self {
            folder,
            endings,
            seen: BTreeMap::new(),
        };
        files.seen = files.now();
        files
    }

    /// Waits for a change, and returns its file.
    async fn change(&mut self) -> PathBuf {
        loop {
            tokio::time::sleep(LOOKS).await;
            if let Some(changed) = self.look() {
                return changed;
            }
        }
    }

    /// Returns a file that was written, added or removed since the last look.
    fn look(&mut self) -> Option<PathBuf> {
        let now = self.now();
        let changed = |(file, time): (&PathBuf, &SystemTime)| {
            let is_same = self.seen.get(file) == Some(time) && now.get(file) == Some(time);
            (!is_same).then(|| file.clone())
        };
        let changed = now.iter().chain(&self.seen).find_map(changed);
        self.seen = now;
        changed.map(|file| file.strip_prefix(&self.folder).unwrap_or(&file).to_owned())
    }

    fn now(&self) -> BTreeMap<PathBuf, SystemTime> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            // A folder that is gone, or that nobody may read, has no files.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && has_code(&path) => folders.push(path),
                    Ok(kind)
                        if kind.is_file() && self.is_code(&path) && found.len() < MAX_FILES =>
                    {
                        let time = entry.metadata().and_then(|about| about.modified());
                        found.extend(time.ok().map(|time| (path, time)));
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn is_code(&self, file: &Path) -> bool {
        let ending = file.extension();
        ending.is_some_and(|it| self.endings.iter().any(|known| it == *known))
    }
}

fn has_code(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && !SKIPPED.contains(&&*name) && !folder.join(ENVIRONMENT).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_code_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("shop/tasks.py", "1");
        let mut files = Files::of(folder.path().to_owned(), &["py"]);
        let mut look = |file: &str, text: &str| {
            write(file, text);
            let seen = files.look();
            assert_eq!(files.look(), None);
            seen.map(|file| file.to_string_lossy().into_owned())
        };
        assert_eq!(look("shop/mail.py", "1").as_deref(), Some("shop/mail.py"));
        for file in [
            "data.json",
            ".git/a.py",
            "node_modules/a.py",
            "shop/__pycache__/a.py",
        ] {
            assert_eq!(look(file, "1"), None, "{file}");
        }
        write("venv/pyvenv.cfg", "");
        assert_eq!(look("venv/lib/a.py", "1"), None);
        fs::remove_file(folder.path().join("shop/tasks.py")).unwrap();
        assert_eq!(files.look(), Some("shop/tasks.py".into()));
    }
}
