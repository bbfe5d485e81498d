//! Live output of a job: stdout to stdout, everything else to stderr.

use std::borrow::Cow;

use meshwork::view::JobView;
use meshwork::{Client, LogLine};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::secret::Secrets;
use meshwork_model::state::Status;
use meshwork_model::time;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::log_file::LogDirs;
use crate::out::logs::Which;
use crate::out::{Out, OutError, script_note};
use crate::single;

/// Line of a log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line<'a> {
    /// Time of the line, if it was recorded.
    at: Option<String>,
    pub(crate) stream: Cow<'a, str>,
    pub(crate) line: Cow<'a, str>,
}

/// Prints the output of a job until it has ended. Its outcome becomes the exit code.
pub(crate) async fn follow(
    client: &Client,
    id: &JobId,
    which: Which,
    dirs: &LogDirs,
    out: &mut Out,
) -> Result<Exit, CommandError> {
    let secrets = client.status(id).await?.env_vars.secrets();
    let mut follower = client.follow_log(id).await?;
    let mut any = false;
    while let Some(lines) = follower.next().await? {
        any = true;
        for line in &lines {
            tell(out, which, &secrets, line)?;
        }
        out.flush()?;
    }
    let job = client.status(id).await?;
    if !any {
        kept(&job, which, dirs, out)?;
    }
    if job.status() == Some(Status::Finished) {
        return Ok(Exit::DONE);
    }
    out.flush()?;
    let ended = JobView::new(&job, job.state(false), out.context);
    single::tell_failure(&format!("job {id}"), &ended);
    Ok(Exit::FAILED)
}

fn tell(out: &mut Out, which: Which, secrets: &Secrets, line: &LogLine) -> Result<(), OutError> {
    if which.includes(&line.stream) {
        let at = Some(time::iso(line.at_ms));
        recorded(out, at, &line.stream, &secrets.mask_bytes(&line.line))?;
    }
    Ok(())
}

/// Prints the logs of a worker that does not forward lines: the ends in the record, or a file on this host.
fn kept(job: &Job, which: Which, dirs: &LogDirs, out: &mut Out) -> Result<(), OutError> {
    let secrets = job.env_vars.secrets();
    let file = match job.stdout.is_empty() && job.stderr.is_empty() {
        true if which == Which::All => dirs.read(job).unwrap_or_default(),
        _ => Vec::new(),
    };
    let logs = [
        ("stdout", &job.stdout),
        ("stderr", &job.stderr),
        ("stdout", &file),
    ];
    for (stream, bytes) in logs {
        let bytes = secrets.mask_bytes(bytes);
        if bytes.is_empty() || !which.includes(stream) {
            continue;
        }
        let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        for line in lines.split(|byte| *byte == b'\n') {
            recorded(out, None, stream, line)?;
        }
    }
    Ok(())
}

fn recorded(out: &mut Out, at: Option<String>, stream: &str, line: &[u8]) -> Result<(), OutError> {
    if out.is_json() {
        let (stream, line) = (stream.into(), String::from_utf8_lossy(line));
        return out.json(&Line { at, stream, line });
    }
    if stream == "stdout" {
        return out.raw(&[line, b"\n"].concat());
    }
    script_note(line);
    Ok(())
}

/// Prints a line of a log.
pub(crate) fn print(out: &mut Out, line: Line<'_>) -> Result<(), OutError> {
    recorded(out, line.at, &line.stream, line.line.as_bytes())
}
