//! Module `git`: repositories below a folder, by the program `git`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rhai::{Array, Dynamic, Engine};

use crate::answer::{Answer, thrown};

/// Variable with the folder for [`git_clone`].
const BASE: &str = "GIT_DEFAULT_BASE_PATH";
/// Folder for clones without that variable, below the folder for temporary files.
const CLONES: &str = "sal_git_clones";

/// Error of a function.
#[derive(Debug, thiserror::Error)]
enum GitError {
    #[error("Git is not installed: {0}")]
    NotInstalled(io::Error),
    #[error("Could not parse git URL: {0}")]
    Url(String),
    #[error("Invalid base path: {0}")]
    BasePath(String),
    #[error("Error creating directory structure: {0}")]
    Folder(io::Error),
    #[error("{0}: {1}")]
    Failed(&'static str, String),
    #[error("Repository '{0}' not found.")]
    None(String),
    #[error(
        "Multiple repositories ({1}) found matching '{0}'. Use find() for patterns or provide a more specific name for get()."
    )]
    Several(String, usize),
    #[error("Not a git repository at {0}")]
    NoRepository(String),
    #[error("Repository at {0} has local changes")]
    Changes(String),
}

type Done<T> = Result<T, GitError>;

/// Repositories below a folder.
#[derive(Debug, Clone)]
struct GitTree(PathBuf);

/// A repository.
#[derive(Debug, Clone)]
struct GitRepo(PathBuf);

pub(crate) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<GitTree>("GitTree");
    engine.register_type_with_name::<GitRepo>("GitRepo");
    engine.register_fn("git_tree_new", |base: &str| said(GitTree::new(base)));
    engine.register_fn("list", |tree: &mut GitTree| -> Array {
        tree.all().iter().map(|path| text(path).into()).collect()
    });
    engine.register_fn("find", |tree: &mut GitTree, pattern: &str| -> Array {
        tree.find(pattern).into_iter().map(Dynamic::from).collect()
    });
    engine.register_fn("get", |tree: &mut GitTree, name: &str| said(tree.get(name)));
    engine.register_fn("git_clone", |url: &str| said(git_clone(url)));
    engine.register_fn("path", |repo: &mut GitRepo| text(&repo.0));
    engine.register_fn("has_changes", |repo: &mut GitRepo| said(repo.has_changes()));
    engine.register_fn("pull", |repo: &mut GitRepo| said(repo.pull()));
    engine.register_fn("reset", |repo: &mut GitRepo| said(repo.reset()));
    engine.register_fn("commit", |repo: &mut GitRepo, message: &str| {
        said(repo.commit(message))
    });
    engine.register_fn("push", |repo: &mut GitRepo| said(repo.push()));
}

fn said<T>(done: Done<T>) -> Answer<T> {
    done.map_err(|error| thrown(format_args!("Git error: {error}")))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn git(args: &[&str]) -> Done<Output> {
    let mut command = Command::new("git");
    // Without a terminal, git cannot read a password.
    command
        .args(args)
        .stdin(Stdio::null())
        .env("GIT_TERMINAL_PROMPT", "0");
    command.output().map_err(GitError::NotInstalled)
}

/// Runs git, and returns the error that it prints.
fn succeeds(what: &'static str, args: &[&str]) -> Done<()> {
    let output = git(args)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(GitError::Failed(what, why.trim().to_owned()))
        }
    }
}

/// Returns server, account and name of a repository: `https://server/account/name.git`, `git@server:account/name`.
fn parse(url: &str) -> Option<[&str; 3]> {
    let (server, rest) = match url.strip_prefix("git@") {
        Some(rest) => rest.split_once(':')?,
        None => {
            let rest = url
                .strip_prefix("https://")
                .or_else(|| url.strip_prefix("http://"))?;
            rest.split_once('/')?
        }
    };
    let (account, name) = rest.split_once('/')?;
    let name = name.split(['/', '.']).next()?;
    let parts = [server, account, name];
    let is_plain = |part: &&str| !part.is_empty() && *part != ".." && !part.starts_with('-');
    parts.iter().all(is_plain).then_some(parts)
}

fn is_url(text: &str) -> bool {
    text.starts_with("http") || text.starts_with("git@")
}

impl GitTree {
    fn new(base: &str) -> Done<Self> {
        succeeds("Git error", &["--version"])?;
        let path = Path::new(base);
        if path.exists() && !path.is_dir() {
            return Err(GitError::BasePath(base.to_owned()));
        }
        fs::create_dir_all(path).map_err(GitError::Folder)?;
        Ok(Self(path.to_owned()))
    }

    /// Returns the folders with a `.git` folder, sorted.
    fn all(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.0.clone()]);
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                match entry.file_name() == ".git" {
                    true => found.push(folder.clone()),
                    false => folders.push(entry.path()),
                }
            }
        }
        found.sort();
        found
    }

    /// Returns the repositories with this path or name; with a `*` at the end, those whose path below the folder begins so.
    fn find(&self, pattern: &str) -> Vec<GitRepo> {
        let matches = |path: &PathBuf| {
            let below = text(path.strip_prefix(&self.0).unwrap_or(path));
            match pattern.strip_suffix('*') {
                Some(start) => below.starts_with(start),
                None => below == pattern || text(path) == pattern,
            }
        };
        self.all()
            .into_iter()
            .filter(matches)
            .map(GitRepo)
            .collect()
    }

    /// Returns a repository, which is cloned if a URL names it.
    fn get(&self, name: &str) -> Done<GitRepo> {
        if is_url(name) {
            return self.cloned(name);
        }
        let mut found = self.find(name);
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(GitError::None(name.to_owned())),
            several => Err(GitError::Several(name.to_owned(), several)),
        }
    }

    fn cloned(&self, url: &str) -> Done<GitRepo> {
        let parts = parse(url).ok_or_else(|| GitError::Url(url.to_owned()))?;
        let path = parts
            .iter()
            .fold(self.0.clone(), |path, part| path.join(part));
        if path.exists() {
            return Ok(GitRepo(path));
        }
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(GitError::Folder)?;
        }
        let args = ["clone", "--depth", "1", "--", url, &text(&path)];
        succeeds("Git clone error", &args)?;
        Ok(GitRepo(path))
    }
}

fn git_clone(url: &str) -> Done<GitRepo> {
    let given = std::env::var(BASE).ok().filter(|base| !base.is_empty());
    let base = given.unwrap_or_else(|| text(&std::env::temp_dir().join(CLONES)));
    GitTree::new(&base)?.cloned(url)
}

impl GitRepo {
    fn run(&self, what: &'static str, args: &[&str]) -> Done<()> {
        let path = text(&self.0);
        succeeds(what, &[&["-C", &path], args].concat())
    }

    fn checked(&self) -> Done<()> {
        match self.0.join(".git").is_dir() {
            true => Ok(()),
            false => Err(GitError::NoRepository(text(&self.0))),
        }
    }

    fn has_changes(&self) -> Done<bool> {
        let output = git(&["-C", &text(&self.0), "status", "--porcelain"])?;
        Ok(!output.stdout.is_empty())
    }

    fn pull(&self) -> Done<Self> {
        self.checked()?;
        if self.has_changes()? {
            return Err(GitError::Changes(text(&self.0)));
        }
        self.run("Git pull error", &["pull"])?;
        Ok(self.clone())
    }

    fn reset(&self) -> Done<Self> {
        self.checked()?;
        self.run("Git reset error", &["reset", "--hard", "HEAD"])?;
        self.run("Git clean error", &["clean", "-fd"])?;
        Ok(self.clone())
    }

    fn commit(&self, message: &str) -> Done<Self> {
        self.checked()?;
        if self.has_changes()? {
            self.run("Git add error", &["add", "."])?;
            self.run("Git commit error", &["commit", "-m", message])?;
        }
        Ok(self.clone())
    }

    fn push(&self) -> Done<Self> {
        self.checked()?;
        self.run("Git push error", &["push"])?;
        Ok(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_server_account_and_repository() {
        for url in [
            "https://h.org/a/b.git",
            "http://h.org/a/b",
            "git@h.org:a/b.git",
        ] {
            assert_eq!(parse(url), Some(["h.org", "a", "b"]), "{url}");
        }
        for url in [
            "https://h.org/a",
            "https://h.org/../b",
            "file:///a/b",
            "https://-x/a/b",
            "git@h.org",
        ] {
            assert_eq!(parse(url), None, "{url}");
        }
    }
}
