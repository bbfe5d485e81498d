//! Output of a job: the ends of stdout and stderr in its record, and the log file that a worker of another system may
//! have named in it.

use meshwork::LogLine;
use meshwork_model::job::Job;
use serde::Serialize;

use crate::out::log_file::LogDirs;
use crate::out::{Out, OutError};

/// Selection of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Stdout,
    Stderr,
}

impl Which {
    /// Returns true if lines of this stream are selected.
    pub(crate) fn includes(self, stream: &str) -> bool {
        match self {
            Self::All => true,
            Self::Stdout => stream == "stdout",
            Self::Stderr => stream == "stderr",
        }
    }
}

#[derive(Debug, Serialize)]
struct Logs<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    log_path: Option<&'a str>,
    log: Option<String>,
}

/// Adds the lines of the current run, which the record has only after the end of the run.
pub(crate) fn add(job: &mut Job, lines: &[LogLine]) {
    for line in lines {
        let log = match line.stream.as_str() {
            "stdout" => &mut job.stdout,
            _ => &mut job.stderr,
        };
        log.extend_from_slice(&line.line);
        log.push(b'\n');
    }
}

/// Prints the streams of a job's record.
pub(crate) fn print(
    job: &Job,
    which: Which,
    dirs: &LogDirs,
    out: &mut Out,
) -> Result<(), OutError> {
    let path = job.log_path.as_deref();
    let file = path.filter(|_| which == Which::All);
    let file = file.and_then(|_| dirs.read(job));
    let secrets = job.env_vars.secrets();
    let file = file.map(|bytes| secrets.mask_bytes(&bytes).into_owned());
    let streams = Streams {
        id: &job.id,
        stdout: &secrets.mask_bytes(&job.stdout),
        stderr: &secrets.mask_bytes(&job.stderr),
        path,
        file: file.as_deref(),
    };
    streams.print(which, out)
}

/// Streams of a job. Secrets of its environment are masked.
pub(crate) struct Streams<'a> {
    pub(crate) id: &'a str,
    pub(crate) stdout: &'a [u8],
    pub(crate) stderr: &'a [u8],
    /// Its log file on the host of its worker.
    pub(crate) path: Option<&'a str>,
    /// Content of that file, if it is on this host.
    pub(crate) file: Option<&'a [u8]>,
}

impl Streams<'_> {
    /// Prints the streams. Several streams get a heading each.
    pub(crate) fn print(&self, which: Which, out: &mut Out) -> Result<(), OutError> {
        let path = self.path.filter(|_| which == Which::All);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if out.is_json() {
            return out.json(&Logs {
                id: self.id,
                stdout: (which != Which::Stderr).then(|| text(self.stdout)),
                stderr: (which != Which::Stdout).then(|| text(self.stderr)),
                log_path: path,
                log: self.file.map(text),
            });
        }
        let parts = [
            ("stdout", self.stdout, which != Which::Stderr),
            ("stderr", self.stderr, which != Which::Stdout),
            (
                path.unwrap_or_default(),
                self.file.unwrap_or_default(),
                true,
            ),
        ];
        let parts = parts
            .iter()
            .filter(|(_, bytes, wanted)| *wanted && !bytes.is_empty());
        let several = parts.clone().count() > 1;
        for (name, bytes, _) in parts {
            if several {
                out.line(format_args!("==> {name} <=="))?;
            }
            out.raw(bytes)?;
        }
        Ok(())
    }
}
