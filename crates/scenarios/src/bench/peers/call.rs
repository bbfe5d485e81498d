//! One call of a program with a time limit, and its answer: one line of JSON.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::super::figure::Figure;

/// Longest output that is read. A program that writes more fails.
const OUTPUT: u64 = 64 * 1024;

/// Most characters of an output in an error.
const QUOTED: usize = 200;

/// The figure of one run.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    figure: String,
    /// Version of the library.
    pub(super) version: String,
    /// Values, in the order of the figure's names; `None` for what the library lacks.
    pub(super) values: Vec<Option<f64>>,
    /// Processor time of the program for one job, in µs.
    pub(super) client_us: f64,
}

/// Runs a program to its end. Returns its answer, or the reason why there is none.
pub(super) async fn call(
    command: &[OsString],
    words: &[String],
    url: &str,
    figure: Figure,
    limit: Duration,
) -> Result<Answer, String> {
    let (program, first) = command.split_first().ok_or("no program")?;
    let name = program.to_string_lossy();
    let mut command = Command::new(program);
    command.args(first).args(words).env("REDIS_URL", url);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn();
    let mut child = child.map_err(|why| format!("{name} cannot be started: {why}"))?;
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let ends = async { (tokio::join!(stdout, stderr), child.wait().await) };
    let Ok(((stdout, stderr), status)) = tokio::time::timeout(limit, ends).await else {
        // The program has ended when this returns, or cannot be ended.
        let _ = child.kill().await;
        return Err(format!("no end within {limit:?}"));
    };
    let status = status.map_err(|why| why.to_string())?;
    if !status.success() {
        let last = stderr.trim().lines().last().unwrap_or("no error message");
        return Err(format!("{status}: {}", cut(last)));
    }
    parse(&stdout, figure)
}

/// Returns the output of a program, up to the limit.
async fn read(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // An error ends the output as its end does.
        let _ = pipe.take(OUTPUT).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the last line of an output.
fn parse(stdout: &str, figure: Figure) -> Result<Answer, String> {
    let last = stdout.trim().lines().last().unwrap_or_default();
    let answer: Answer = serde_json::from_str(last)
        .map_err(|why| format!("no line of JSON with a figure, but `{}`: {why}", cut(last)))?;
    let name = figure.name();
    if answer.figure != name {
        let other = cut(&answer.figure);
        return Err(format!("the figure {other} instead of {name}"));
    }
    let (given, expected) = (answer.values.len(), figure.yields().0.len());
    if given != expected {
        return Err(format!("{given} values instead of {expected}"));
    }
    match answer.values.iter().flatten().find(|value| **value <= 0.0) {
        Some(value) => Err(format!("{value} is no value of {name}")),
        None => Ok(answer),
    }
}

/// Returns the beginning of a text.
fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(QUOTED).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn line(figure: &str, values: &str) -> String {
        format!(r#"{{"figure":"{figure}","version":"1.2.3","values":{values},"client_us":4.5}}"#)
    }

    async fn shell(script: &str, limit: Duration) -> Result<Answer, String> {
        let command = ["sh", "-c", script, "sh"].map(OsString::from);
        let words = ["latency".to_owned(), "3".to_owned()];
        call(&command, &words, "redis://here", Figure::Latency, limit).await
    }

    #[test]
    fn an_answer_has_the_figure_and_its_values() {
        let values = "[1.5,2,null,null]";
        let text = format!("a line before\n{}\n", line("latency", values));
        let answer = parse(&text, Figure::Latency).expect("a good line");
        assert_eq!(answer.version, "1.2.3");
        assert_eq!(answer.values, [Some(1.5), Some(2.0), None, None]);
    }

    #[test]
    fn bad_answers_are_named() {
        let cases = [
            (String::new(), "no line of JSON with a figure, but ``"),
            ("nonsense".repeat(100), "but `nonsensenonsense"),
            (r#"{"figure":"latency"}"#.into(), "missing field"),
            (
                line("work-10", "[1,1,1,1]"),
                "the figure work-10 instead of latency",
            ),
            (line("latency", "[1,1]"), "2 values instead of 4"),
            (line("latency", "[1,1,0,1]"), "0 is no value of latency"),
            (line("latency", "[1,1,\"x\",1]"), "invalid type"),
        ];
        for (text, why) in cases {
            let error = parse(&text, Figure::Latency).expect_err(&text);
            assert!(error.contains(why) && error.len() < 400, "{error}");
        }
    }

    #[tokio::test]
    async fn a_program_has_the_server_and_the_verb() {
        let good = line("latency", "[1,1,1,1]");
        let script = format!("test \"$REDIS_URL $*\" = 'redis://here latency 3' && echo '{good}'");
        assert!(shell(&script, PATIENCE).await.is_ok());
    }

    #[tokio::test]
    async fn failures_of_a_program_are_named() {
        let error = shell("echo first >&2; echo last >&2; exit 3", PATIENCE).await;
        assert_eq!(error, Err("exit status: 3: last".to_owned()));
        let error = shell("kill -9 $$", PATIENCE)
            .await
            .expect_err("it is killed");
        assert!(error.contains("signal: 9"), "{error}");
        let missing = [OsString::from("/no-such-program")];
        let error = call(&missing, &[], "", Figure::Latency, PATIENCE).await;
        let error = error.expect_err("there is no program");
        assert!(
            error.starts_with("/no-such-program cannot be started"),
            "{error}"
        );
        let endless = "while :; do echo a long line of output without an end; done";
        let error = shell(endless, PATIENCE).await.expect_err("it is cut off");
        assert!(!error.contains("no end"), "{error}");
    }

    #[tokio::test]
    async fn a_program_without_end_is_ended() {
        let limit = Duration::from_millis(300);
        let error = shell("exec sleep 600", limit).await;
        assert_eq!(error, Err("no end within 300ms".to_owned()));
    }
}
