//! Makes one log of the append-only files of a Redis server: those of its manifest, in their order.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use super::{
    LOG_FILE, LogError, SUMS_FILE, TEMP_FILE, claim,
    load::{self, SERVER_DIR, sync_dir},
};
use crate::{resp::encode_command, store::Effect};

/// Greatest size of a manifest in bytes. It has a line for each file.
const MAX_MANIFEST: u64 = 1024 * 1024;
/// End of a manifest's name.
const MANIFEST: &str = ".manifest";

/// The files of a server, in the order of their commands.
#[derive(Debug)]
struct Manifest {
    files: Vec<PathBuf>,
}

impl Manifest {
    /// Reads the manifest in `dir`, the directory of the append-only files of a server.
    fn read(dir: &Path) -> Result<Self, LogError> {
        let list = || -> io::Result<Vec<PathBuf>> {
            let entries = fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
            entries.collect()
        };
        let mut found = list().map_err(LogError::io(dir, "list"))?;
        found.retain(|path| path.to_string_lossy().ends_with(MANIFEST));
        let [path] = &found[..] else {
            return Err(LogError::Manifest {
                path: dir.to_owned(),
                fault: format!("it has {} files *{MANIFEST}, not one", found.len()),
            });
        };
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(MAX_MANIFEST).read_to_string(&mut text))
            .map_err(LogError::io(path, "read"))?;
        let mut lines = Vec::new();
        for line in text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            lines.push(Line::read(line).ok_or_else(|| LogError::Manifest {
                path: path.clone(),
                fault: format!("the line {line:?} names no file"),
            })?);
        }
        // History files are of the time before the base file.
        lines.retain(|line| line.kind != Kind::History);
        lines.sort_by_key(|line| (line.kind, line.sequence));
        let files = lines.iter().map(|line| dir.join(line.name)).collect();
        Ok(Self { files })
    }
}

/// Kind of a file, in the order of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Base,
    Increment,
    History,
}

/// A line of a manifest: `file NAME seq N type b|i|h`, and fields of later versions.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    name: &'a str,
    sequence: u64,
    kind: Kind,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let rest = line.strip_prefix("file ")?;
        // A name with spaces is in quotes.
        let (name, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_once(' ')?,
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let field = |name: &str| {
            let at = words.iter().step_by(2).position(|word| *word == name)?;
            words.get(2 * at + 1).copied()
        };
        let kind = match field("type")? {
            "b" => Kind::Base,
            "i" => Kind::Increment,
            "h" => Kind::History,
            _ => return None,
        };
        let is_name = !name.is_empty() && !name.contains('/') && !name.contains('\\');
        is_name.then_some(Self {
            name,
            sequence: field("seq")?.parse().ok()?,
            kind,
        })
    }
}

/// Returns the directory of a server's append-only files: `dir`, or the one in it.
fn server_dir(dir: &Path) -> PathBuf {
    let inner = dir.join(SERVER_DIR);
    if inner.is_dir() {
        inner
    } else {
        dir.to_owned()
    }
}

/// Makes the files of a server in `from` the log of the data directory `dir`, which the caller has locked. Passes each
/// transaction to `replay`. Returns the files.
///
/// The server's directory stays, unless it is in `dir`: there, it gets another name, so that the log can be opened.
pub(crate) fn import(
    dir: &Path,
    from: &Path,
    mut replay: impl FnMut(&[Effect]) -> Result<(), String>,
) -> Result<Vec<PathBuf>, LogError> {
    let from = server_dir(from);
    let Manifest { files } = Manifest::read(&from)?;
    let temp = dir.join(TEMP_FILE);
    let mut out = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temp)
        .map_err(LogError::io(&temp, "create"))?;
    for (at, path) in files.iter().enumerate() {
        let mut file = File::open(path).map_err(LogError::io(path, "open"))?;
        load::refuse_rdb(path, &file)?;
        let content = load::read_all(path, &file, &mut replay)?;
        // Only the last file can end within a write.
        if content.torn && at + 1 < files.len() {
            return Err(LogError::Corrupt {
                path: path.clone(),
                offset: content.len,
                what: "it ends within a command, and is not the last file".to_owned(),
            });
        }
        let mut select = Vec::new();
        encode_command(&["SELECT", "0"], &mut select);
        file.rewind()
            .and_then(|()| io::copy(&mut file.take(content.len), &mut out))
            .and_then(|_| io::copy(&mut &select[..], &mut out))
            .map_err(LogError::io(&temp, "copy the files of the server to"))?;
    }
    out.sync_all().map_err(LogError::io(&temp, "sync"))?;
    put_in_place(dir, &from, &out)?;
    Ok(files)
}

/// Makes the file the log. An import that is interrupted here can be repeated.
fn put_in_place(dir: &Path, from: &Path, fresh: &File) -> Result<(), LogError> {
    let (temp, log) = (dir.join(TEMP_FILE), dir.join(LOG_FILE));
    let present = match File::open(&log) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return finish(dir, from, &temp, &log);
        }
        Err(error) => return Err(LogError::io(&log, "open")(error)),
    };
    if !claim::lock(&present).map_err(LogError::io(&log, "lock"))? {
        return Err(LogError::Present { path: log });
    }
    let same = is_same(&present, fresh).map_err(LogError::io(&log, "read"))?;
    let empty = present.metadata().is_ok_and(|about| about.len() == 0);
    match same || empty {
        true => finish(dir, from, &temp, &log),
        false => Err(LogError::Present { path: log }),
    }
}

fn finish(dir: &Path, from: &Path, temp: &Path, log: &Path) -> Result<(), LogError> {
    let sums = dir.join(SUMS_FILE);
    match fs::remove_file(&sums) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(LogError::io(&sums, "remove")(error));
        }
        _ => {}
    }
    fs::rename(temp, log).map_err(LogError::io(log, "replace"))?;
    sync_dir(dir)?;
    if from == dir.join(SERVER_DIR) {
        let aside = unused(dir);
        fs::rename(from, &aside).map_err(LogError::io(&aside, "move the server's files to"))?;
        sync_dir(dir)?;
    }
    Ok(())
}

/// Returns a name for the imported directory that nothing has.
fn unused(dir: &Path) -> PathBuf {
    let mut names = (1_u64..).map(|at| dir.join(format!("{SERVER_DIR}.imported-{at}")));
    let free = names.find(|path| !path.exists());
    free.expect("the numbers do not end")
}

fn is_same(present: &File, fresh: &File) -> io::Result<bool> {
    let (present, fresh) = (fs::File::try_clone(present)?, fresh.try_clone()?);
    if present.metadata()?.len() != fresh.metadata()?.len() {
        return Ok(false);
    }
    let (mut present, mut fresh) = (io::BufReader::new(present), io::BufReader::new(fresh));
    present.rewind()?;
    fresh.rewind()?;
    let mut pairs = present.bytes().zip(fresh.bytes());
    Ok(pairs.all(|(one, other)| matches!((one, other), (Ok(one), Ok(other)) if one == other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_versions_are_read() {
        let line = |name, sequence, kind| {
            Some(Line {
                name,
                sequence,
                kind,
            })
        };
        for (text, expected) in [
            (
                "file appendonly.aof seq 1 type b",
                line("appendonly.aof", 1, Kind::Base),
            ),
            (
                "file a.2.incr.aof seq 2 type i startoffset 14",
                line("a.2.incr.aof", 2, Kind::Increment),
            ),
            (
                "file \"my file.aof\" seq 3 type h",
                line("my file.aof", 3, Kind::History),
            ),
            ("file a seq x type b", None),
            ("file a seq 1 type z", None),
            ("file a seq 1", None),
            ("file ../a seq 1 type b", None),
            ("a seq 1 type b", None),
        ] {
            assert_eq!(Line::read(text), expected, "{text}");
        }
    }

    #[test]
    fn files_are_read_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = dir.path().join("appendonly.aof.manifest");
        let text =
            "file c seq 3 type i\nfile h seq 1 type h\nfile b seq 2 type i\nfile a seq 9 type b\n";
        fs::write(manifest, text).unwrap();
        let files = Manifest::read(dir.path()).unwrap().files;
        assert_eq!(files, ["a", "b", "c"].map(|name| dir.path().join(name)));
    }
}
