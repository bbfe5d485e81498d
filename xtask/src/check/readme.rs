//! The commands of README.md in an empty clone, as a newcomer runs them: each has to succeed, and its times are printed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Failure};
use crate::workspace::{Workspace, without_own_variables};

/// Timeout of a command: both build everything, on a small and busy machine.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Begins a block of commands.
const FENCE: &str = "```console\n";

/// Begins a command of cargo in such a block.
const PROMPT: &str = "$ cargo ";

/// Variables that a newcomer does not have, beside those of cargo for this package and those of Meshwork.
const NOT_SET: [&str; 5] = [
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_INCREMENTAL",
    "CI",
    "REDIS_URL",
];

/// Clones the last commit into a temporary folder, and runs the commands there.
pub(super) fn check(workspace: &Workspace) -> Result<(), Failure> {
    let name = format!("meshwork-readme-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let outcome = in_clone(&workspace.root, &folder);
    fs::remove_dir_all(&folder).ok();
    outcome
}

/// Runs the commands of README.md in a clone below `folder`, also after a failure.
fn in_clone(root: &Path, folder: &Path) -> Result<(), Failure> {
    let clone = folder.join("clone");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet"]).arg(root).arg(&clone);
    process::run(&mut git, LIMIT)?;
    let path = clone.join("README.md");
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let mut failed = Vec::new();
    for words in commands(&text)? {
        eprintln!("$ {words}");
        match process::timed(&mut command(words, &clone, folder), LIMIT) {
            Ok(times) => eprintln!("`{words}` took {times}"),
            Err(failure) => failed.push(failure.to_string()),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(failed.join("\n"))),
    }
}

/// Returns the commands of cargo in the blocks of commands.
fn commands(readme: &str) -> Result<Vec<&str>, Failure> {
    let blocks = readme.split(FENCE).skip(1);
    let lines = blocks.flat_map(|rest| rest.split("\n```").next().unwrap_or_default().lines());
    let commands: Vec<_> = lines
        .filter(|line| line.starts_with(PROMPT))
        .filter_map(|line| line.strip_prefix("$ "))
        .collect();
    match commands.is_empty() {
        true => Err(Failure::new("README.md has no command of cargo")),
        false => Ok(commands),
    }
}

/// Returns a command of a shell in the clone, with data and keys below `folder`.
fn command(words: &str, clone: &Path, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", words]).current_dir(clone);
    without_own_variables(&mut command);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("MESHWORK_") || NOT_SET.contains(&&*text) {
            command.env_remove(&name);
        }
    }
    command.env("XDG_DATA_HOME", folder.join("data"));
    command.env("XDG_CONFIG_HOME", folder.join("config"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ask;

    #[test]
    fn the_commands_are_those_of_console_blocks() {
        let workspace = Workspace::find().unwrap();
        let readme = fs::read_to_string(workspace.root.join("README.md")).unwrap();
        let found = commands(&readme).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("cargo run "), "{found:?}");
        assert!(found[1].starts_with("cargo xtask test"), "{found:?}");
        let other = "$ cargo a\n```rust\n$ cargo b\n```\n```console\n$ meshwork run\ncargo c\n```\n$ cargo d\n";
        assert!(commands(other).is_err());
    }

    #[test]
    fn each_command_runs_in_a_clone_without_the_variables_of_this_process() {
        let folder = std::env::temp_dir().join(format!("xtask-readme-{}", std::process::id()));
        let origin = folder.join("origin");
        fs::create_dir_all(&origin).unwrap();
        let write = |text: &str| fs::write(origin.join("README.md"), text).unwrap();
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
            ask(git.args(words).current_dir(&origin), LIMIT).unwrap();
        };
        git(&["init", "--quiet"]);
        let lines = "$ cargo --nonsense\n$ cargo --version && test -z \"$CARGO_MANIFEST_DIR\" && pwd > ../place";
        write(&format!("{FENCE}{lines}\n```\n"));
        git(&["add", "README.md"]);
        git(&["commit", "--quiet", "-m", "first"]);
        write("not committed");
        let outcome = in_clone(&origin, &folder);
        let place = fs::read_to_string(folder.join("place"));
        fs::remove_dir_all(&folder).unwrap();
        let failure = outcome.unwrap_err().to_string();
        assert!(
            failure.contains("`sh -c cargo --nonsense` failed"),
            "{failure}"
        );
        assert_eq!(failure.lines().count(), 1, "{failure}");
        assert!(place.unwrap().ends_with("/clone\n"));
    }
}
