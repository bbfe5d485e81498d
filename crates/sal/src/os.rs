//! Module `os`: files, folders and the platform. Answers are sentences, as those of the published crate.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rhai::{Array, Engine};

use crate::answer::{Answer, thrown};
use crate::http::{self, HttpError};

/// Folder for programs below `HOME`, which is the job's own folder.
const PROGRAMS: &str = "hero/bin";
/// Most bytes of a file that a script reads: the size of a job's input.
const MAX_READ: u64 = 16 << 20;

/// Error of a function.
#[derive(Debug, thiserror::Error)]
enum OsError {
    #[error("Directory '{0}' does not exist")]
    NoDirectory(String),
    #[error("No files found matching '{0}'")]
    NoFile(String),
    #[error("Failed to create parent directories: {0}")]
    Create(io::Error),
    #[error("Failed to copy file: {0}")]
    Copy(io::Error),
    #[error("Failed to delete: {0}")]
    Delete(io::Error),
    #[error("{0}")]
    Failed(String),
    #[error("Command not found: {0}")]
    NoCommand(String),
    #[error("Failed to execute command: cannot start `{0}`: {1}")]
    Start(&'static str, io::Error),
    #[error("Invalid glob pattern: {0}")]
    Pattern(#[from] glob::PatternError),
    #[error("Path '{0}' exists but is not a directory")]
    NotADirectory(String),
    #[error("Path '{0}' is not a regular file")]
    NotAFile(String),
    #[error("Unknown file type at '{0}'")]
    UnknownType(String),
    #[error("Failed to get file metadata: {0}")]
    Metadata(io::Error),
    #[error("Failed to change directory: {0}")]
    ChangeDirectory(io::Error),
    #[error("Failed to read file: {0}")]
    Read(io::Error),
    #[error(
        "Failed to read file: it has {0} bytes, the limit is {MAX_READ}; read a part with a command, as `head -c`"
    )]
    TooLarge(u64),
    #[error("Failed to write to file: {0}")]
    Write(io::Error),
    #[error("Failed to append to file: {0}")]
    Append(io::Error),
    #[error("Error downloading url: {0}: {1}")]
    Download(String, HttpError),
    #[error("Error: Downloaded file is too small ({0}KB < {1}KB)")]
    TooSmall(i64, i64),
}

type Done<T> = Result<T, OsError>;

pub(crate) fn register(engine: &mut Engine) {
    engine.register_fn("copy", |src: &str, dest: &str| {
        said_of(&[src, dest], copy(src, dest, false))
    });
    engine.register_fn("copy_bin", |src: &str| said(copy_bin(src)));
    engine.register_fn("exist", |path: &str| Path::new(path).exists());
    engine.register_fn("find_file", |dir: &str, name: &str| {
        said(find_file(dir, name))
    });
    engine.register_fn("find_files", |dir: &str, name: &str| {
        array(found(dir, &format!("**/{name}"), Path::is_file))
    });
    engine.register_fn("find_dir", |dir: &str, name: &str| {
        said(find_dir(dir, name))
    });
    engine.register_fn("find_dirs", |dir: &str, name: &str| {
        array(found(dir, &format!("**/{name}"), Path::is_dir))
    });
    engine.register_fn("delete", |path: &str| said_of(&[path], delete(path)));
    engine.register_fn("mkdir", make_folder);
    engine.register_fn("file_size", |path: &str| said_of(&[path], file_size(path)));
    engine.register_fn("rsync", |src: &str, dest: &str| said(rsync(src, dest)));
    engine.register_fn("chdir", |path: &str| said_of(&[path], chdir(path)));
    engine.register_fn("file_read", |path: &str| said_of(&[path], file_read(path)));
    engine.register_fn("file_write", |path: &str, text: &str| {
        said_of(&[path], file_write(path, text))
    });
    engine.register_fn("file_write_append", |path: &str, text: &str| {
        said_of(&[path], append(path, text))
    });
    engine.register_fn("mv", |src: &str, dest: &str| {
        said_of(&[src, dest], mv(src, dest))
    });
    engine.register_fn("chmod_exec", |path: &str| {
        said_of(&[path], chmod_exec(path))
    });
    engine.register_fn("cmd_ensure_exists", |commands: &str| {
        said(ensure_exists(commands))
    });
    engine.register_fn("download", |url: &str, dest: &str, min_kb: i64| {
        said(download(url, dest, min_kb))
    });
    engine.register_fn("download_file", |url: &str, dest: &str, min_kb: i64| {
        said(download_file(url, dest, min_kb))
    });
    register_platform(engine);
}

fn register_platform(engine: &mut Engine) {
    const LINUX_X86: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    const MACOS_ARM: bool = cfg!(all(target_os = "macos", target_arch = "aarch64"));
    engine.register_fn("platform_is_osx", || cfg!(target_os = "macos"));
    engine.register_fn("platform_is_linux", || cfg!(target_os = "linux"));
    engine.register_fn("platform_is_arm", || cfg!(target_arch = "aarch64"));
    engine.register_fn("platform_is_x86", || cfg!(target_arch = "x86_64"));
    let check = |holds: bool, only: &'static str| {
        move || -> Answer<()> {
            match holds {
                true => Ok(()),
                false => Err(thrown(format_args!(
                    "Platform Check Error: This operation is only supported on {only}."
                ))),
            }
        }
    };
    engine.register_fn("platform_check_linux_x86", check(LINUX_X86, "Linux x86_64"));
    engine.register_fn("platform_check_macos_arm", check(MACOS_ARM, "macOS ARM"));
}

/// Creates a folder with those above it.
pub(crate) fn make_folder(path: &str) -> Answer<String> {
    said_of(&[path], mkdir(path))
}

fn said<T>(done: Done<T>) -> Answer<T> {
    done.map_err(thrown)
}

/// Returns the answer, or an error that names one of the paths: errors of the system do not.
fn said_of<T>(paths: &[&str], done: Done<T>) -> Answer<T> {
    done.map_err(|error| {
        let text = error.to_string();
        match paths
            .last()
            .filter(|_| !paths.iter().any(|path| text.contains(path)))
        {
            Some(path) => thrown(format_args!("{text}: '{path}'")),
            None => thrown(text),
        }
    })
}

fn array(done: Done<Vec<PathBuf>>) -> Answer<Array> {
    let paths = done.map_err(thrown)?;
    Ok(paths.iter().map(|path| text(path).into()).collect())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Creates the folders above a path.
fn create_above(path: &Path) -> Done<()> {
    let above = path.parent();
    above
        .map_or(Ok(()), fs::create_dir_all)
        .map_err(OsError::Create)
}

fn run(program: &'static str, args: &[&str]) -> Done<std::process::Output> {
    let output = Command::new(program).args(args).output();
    output.map_err(|error| OsError::Start(program, error))
}

fn copy(src: &str, dest: &str, executable: bool) -> Done<String> {
    if src.contains(['*', '?', '[']) {
        return copy_matching(src, dest, executable);
    }
    let (from, to) = (Path::new(src), Path::new(dest));
    if !from.exists() {
        return Err(OsError::NoFile(src.to_owned()));
    }
    create_above(to)?;
    if from.is_file() {
        let name = from.file_name().unwrap_or_default();
        if to.is_dir() {
            copy_file(from, &to.join(name), executable)?;
            let name = name.to_string_lossy();
            return Ok(format!(
                "Successfully copied file '{src}' to '{dest}/{name}'"
            ));
        }
        copy_file(from, to, executable)?;
        Ok(format!("Successfully copied file '{src}' to '{dest}'"))
    } else if from.is_dir() {
        copy_folder(src, dest)?;
        Ok(format!("Successfully copied directory '{src}' to '{dest}'"))
    } else {
        Err(OsError::UnknownType(src.to_owned()))
    }
}

fn copy_file(from: &Path, to: &Path, executable: bool) -> Done<()> {
    fs::copy(from, to).map_err(OsError::Copy)?;
    match executable {
        true => fs::set_permissions(to, Permissions::from_mode(0o755)).map_err(OsError::Copy),
        false => Ok(()),
    }
}

fn copy_folder(src: &str, dest: &str) -> Done<()> {
    let output = run("cp", &["-R", "--", src, dest])?;
    match output.status.success() {
        true => Ok(()),
        false => Err(OsError::Failed(format!(
            "Failed to copy directory: {}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

/// Copies all that a pattern matches. Some may fail if one is copied, as in the published crate.
fn copy_matching(pattern: &str, dest: &str, executable: bool) -> Done<String> {
    let to = Path::new(dest);
    create_above(to)?;
    let paths: Vec<_> = glob::glob(pattern)?.filter_map(Result::ok).collect();
    if paths.is_empty() {
        return Err(OsError::NoFile(pattern.to_owned()));
    }
    let one = |path: &PathBuf| {
        let target = match to.is_dir() {
            true => to.join(path.file_name().unwrap_or_default()),
            false => to.to_owned(),
        };
        match path.is_file() {
            true => copy_file(path, &target, executable).is_ok(),
            false => copy_folder(&text(path), &text(&target)).is_ok(),
        }
    };
    match paths.iter().filter(|path| one(path)).count() {
        0 => Err(OsError::Failed(format!(
            "Failed to copy any files from '{pattern}' to '{dest}'"
        ))),
        copied => Ok(format!(
            "Successfully copied {copied} items from '{pattern}' to '{dest}'"
        )),
    }
}

/// Copies a program to `~/hero/bin`: never to a folder of the host, also as root.
fn copy_bin(src: &str) -> Done<String> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or_else(|| OsError::NoDirectory("HOME".to_owned()))?;
    let folder = Path::new(&home).join(PROGRAMS);
    fs::create_dir_all(&folder).map_err(OsError::Create)?;
    copy(src, &text(&folder), true)
}

/// Returns the paths in a folder that match a pattern.
fn found(dir: &str, pattern: &str, is_wanted: fn(&Path) -> bool) -> Done<Vec<PathBuf>> {
    if !Path::new(dir).is_dir() {
        return Err(OsError::NoDirectory(dir.to_owned()));
    }
    let paths = glob::glob(&format!("{dir}/{pattern}"))?;
    Ok(paths
        .filter_map(Result::ok)
        .filter(|path| is_wanted(path))
        .collect())
}

/// Returns the first file that matches.
fn find_file(dir: &str, name: &str) -> Done<String> {
    let files = found(dir, &format!("**/{name}"), Path::is_file)?;
    let first = files
        .first()
        .ok_or_else(|| OsError::NoFile(name.to_owned()))?;
    Ok(text(first))
}

/// Returns the only folder that matches.
fn find_dir(dir: &str, name: &str) -> Done<String> {
    match &*found(dir, name, Path::is_dir)? {
        [] => Err(OsError::NoDirectory(name.to_owned())),
        [one] => Ok(text(one)),
        _ => Err(OsError::Failed(format!(
            "Multiple directories found matching '{name}', expected only one"
        ))),
    }
}

fn delete(path: &str) -> Done<String> {
    let at = Path::new(path);
    if at.is_file() || at.is_symlink() {
        fs::remove_file(at).map_err(OsError::Delete)?;
        Ok(format!("Successfully deleted file '{path}'"))
    } else if at.is_dir() {
        fs::remove_dir_all(at).map_err(OsError::Delete)?;
        Ok(format!("Successfully deleted directory '{path}'"))
    } else if at.exists() {
        Err(OsError::UnknownType(path.to_owned()))
    } else {
        Ok(format!("Nothing to delete at '{path}'"))
    }
}

fn mkdir(path: &str) -> Done<String> {
    let at = Path::new(path);
    if at.is_dir() {
        return Ok(format!("Directory '{path}' already exists"));
    }
    if at.exists() {
        return Err(OsError::NotADirectory(path.to_owned()));
    }
    fs::create_dir_all(at).map_err(OsError::Create)?;
    Ok(format!("Successfully created directory '{path}'"))
}

/// Returns the path of a file that exists.
fn file(path: &str) -> Done<&Path> {
    let at = Path::new(path);
    if !at.exists() {
        return Err(OsError::NoFile(path.to_owned()));
    }
    match at.is_file() {
        true => Ok(at),
        false => Err(OsError::NotAFile(path.to_owned())),
    }
}

fn file_size(path: &str) -> Done<i64> {
    let about = fs::metadata(file(path)?).map_err(OsError::Metadata)?;
    Ok(i64::try_from(about.len()).unwrap_or(i64::MAX))
}

fn rsync(src: &str, dest: &str) -> Done<String> {
    if !Path::new(src).exists() {
        return Err(OsError::NoFile(src.to_owned()));
    }
    create_above(Path::new(dest))?;
    let output = run("rsync", &["-a", "--delete", "--", src, dest])?;
    match output.status.success() {
        true => Ok(format!("Successfully synced '{src}' to '{dest}'")),
        false => Err(OsError::Failed(format!(
            "Failed to sync directories: {}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

fn chdir(path: &str) -> Done<String> {
    let at = Path::new(path);
    if !at.exists() {
        return Err(OsError::NoDirectory(path.to_owned()));
    }
    if !at.is_dir() {
        return Err(OsError::NotADirectory(path.to_owned()));
    }
    std::env::set_current_dir(at).map_err(OsError::ChangeDirectory)?;
    Ok(format!("Successfully changed directory to '{path}'"))
}

fn file_read(path: &str) -> Done<String> {
    match u64::try_from(file_size(path)?) {
        Ok(size) if size > MAX_READ => Err(OsError::TooLarge(size)),
        _ => fs::read_to_string(path).map_err(OsError::Read),
    }
}

fn file_write(path: &str, content: &str) -> Done<String> {
    create_above(Path::new(path))?;
    fs::write(path, content).map_err(OsError::Write)?;
    Ok(format!("Successfully wrote to file '{path}'"))
}

fn append(path: &str, content: &str) -> Done<String> {
    create_above(Path::new(path))?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    let appended = file.and_then(|mut file| file.write_all(content.as_bytes()));
    appended.map_err(OsError::Append)?;
    Ok(format!("Successfully appended to file '{path}'"))
}

fn mv(src: &str, dest: &str) -> Done<String> {
    let (from, to) = (Path::new(src), Path::new(dest));
    if !from.exists() {
        return Err(OsError::NoFile(src.to_owned()));
    }
    create_above(to)?;
    let kind = if from.is_file() { "file" } else { "directory" };
    let target = match to.is_dir() && from.is_file() {
        true => to.join(from.file_name().unwrap_or_default()),
        false => to.to_owned(),
    };
    match fs::rename(from, &target) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => match from.is_file() {
            true => {
                fs::copy(from, &target).map_err(OsError::Copy)?;
                fs::remove_file(from).map_err(OsError::Delete)?;
            }
            false => {
                copy_folder(src, dest)?;
                fs::remove_dir_all(from).map_err(OsError::Delete)?;
            }
        },
        Err(error) => {
            let message = format!("Failed to move '{src}' to '{dest}': {error}");
            return Err(OsError::Failed(message));
        }
    }
    Ok(format!("Successfully moved {kind} '{src}' to '{dest}'"))
}

fn chmod_exec(path: &str) -> Done<String> {
    let at = Path::new(path);
    if !at.exists() {
        let message = format!("Not a file: Path does not exist: {path}");
        return Err(OsError::Failed(message));
    }
    if !at.is_file() {
        let message = format!("Not a file: Path is not a file: {path}");
        return Err(OsError::Failed(message));
    }
    let mode = fs::metadata(at)
        .map_err(OsError::Metadata)?
        .permissions()
        .mode();
    fs::set_permissions(at, Permissions::from_mode(mode | 0o111)).map_err(OsError::Metadata)?;
    Ok(format!("Made {path} executable"))
}

/// Stores the content at a URL in a file of at least `min_kb` KiB, and returns its path. A part of it is never left.
fn download_file(url: &str, dest: &str, min_kb: i64) -> Done<String> {
    let path = Path::new(dest);
    create_above(path)?;
    let part = format!("{dest}.download");
    let fetched = http::download(url, &part);
    let fetched = fetched.map_err(|error| OsError::Download(url.to_owned(), error));
    let checked = fetched.and_then(|()| match file_size(&part)? / 1024 {
        size if size < min_kb => Err(OsError::TooSmall(size, min_kb)),
        _ => fs::rename(&part, path).map_err(OsError::Write),
    });
    if let Err(error) = checked {
        // Without an answer there is no part.
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    Ok(dest.to_owned())
}

/// Downloads into a folder, and returns the path of the file. An archive is unpacked there, and the folder returned.
fn download(url: &str, dest: &str, min_kb: i64) -> Done<String> {
    let name = url.rsplit('/').next();
    let name = name.filter(|name| !["", ".", ".."].contains(name));
    let invalid = || OsError::Failed(format!("Invalid URL: {url}: cannot extract filename"));
    let name = name.ok_or_else(invalid)?;
    let path = format!("{}/{name}", dest.trim_end_matches('/'));
    download_file(url, &path, min_kb)?;
    let lower = name.to_lowercase();
    let is_tar = [".tar.gz", ".tgz", ".tar"]
        .iter()
        .any(|ending| lower.ends_with(ending));
    let output = if lower.ends_with(".zip") {
        run("unzip", &["-o", "-q", &path, "-d", dest])?
    } else if is_tar {
        run("tar", &["-xf", &path, "-C", dest])?
    } else {
        return Ok(path);
    };
    fs::remove_file(&path).map_err(OsError::Delete)?;
    match output.status.success() {
        true => Ok(dest.to_owned()),
        false => Err(OsError::Failed(format!(
            "Error extracting archive: {}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

fn ensure_exists(commands: &str) -> Done<String> {
    let names = commands.split(',').map(str::trim);
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    let is_missing = |name: &&&str| which::which(name).is_err();
    let missing: Vec<_> = names.iter().filter(is_missing).copied().collect();
    match (&*names, missing.is_empty()) {
        ([], _) => Err(OsError::Failed("No commands specified to check".to_owned())),
        (_, false) => Err(OsError::NoCommand(missing.join(", "))),
        ([one], true) => Ok(format!("Command '{one}' exists")),
        (all, true) => Ok(format!("All commands exist: {}", all.join(", "))),
    }
}
