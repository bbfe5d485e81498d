//! Output of a run while it runs: lines, progress, and no secrets.

use meshwork::runtime::log::{Entry, LogDrain, Stream};
use meshwork::runtime::{self, JobContext, Runtime, builtin};
use meshwork_model::outcome::{FailureKind, Report};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::python::need_python;
use super::support::{ENDLESS, failure, job, output, run_of, script, within};
use meshwork_model::job::Job;
use meshwork_test_servers::servers::{Tool, need};

/// A run under way, and what it says.
struct Live {
    drain: LogDrain,
    task: JoinHandle<Report>,
}

impl Live {
    fn start(runner: std::sync::Arc<dyn Runtime>, job: Job) -> Self {
        let (run, _) = run_of(job, ENDLESS);
        let drain = run.log.drain(1000);
        let task = tokio::spawn(async move { runner.run(run).await });
        Self { drain, task }
    }

    /// Returns the next `count` lines, each with its stream, and progress.
    async fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            lines.extend(self.batch().await);
        }
        lines
    }

    async fn batch(&mut self) -> Vec<String> {
        let batch = within(self.drain.next()).await.expect("the run goes on");
        let line = |entry| match entry {
            Entry::Line { stream, text } => format!("{}: {text}", stream.as_str()),
            Entry::Dropped(lines) => format!("{lines} dropped"),
        };
        let mut lines: Vec<_> = batch.entries.into_iter().map(line).collect();
        lines.extend(batch.progress.map(|progress| {
            let message = progress.message().unwrap_or_default().to_owned();
            format!("{} {message}", progress.fraction())
        }));
        lines
    }

    /// Returns all lines until the end, and the report.
    async fn rest(mut self) -> (Vec<String>, Report) {
        let report = within(self.task).await.unwrap();
        let mut all = Vec::new();
        // The run is gone with its sink: the drain ends.
        while let Some(batch) = within(self.drain.next()).await {
            for entry in batch.entries {
                if let Entry::Line { stream, text } = entry {
                    all.push(format!("{}: {text}", stream.as_str()));
                }
            }
        }
        (all, report)
    }
}

#[tokio::test]
async fn lines_of_a_python_script_come_while_it_runs() {
    need_python!();
    let text = "import sys
print('first')
progress(0.25)
while True:
    pass";
    let mut live = Live::start(builtin("python").unwrap(), script(text));
    assert_eq!(live.lines(2).await, ["stdout: first", "0.25 "]);
    live.task.abort();
}

#[tokio::test]
async fn python_tells_its_progress_and_never_waits_for_it() {
    need_python!();
    let text = "
for n in range(100_000):
    progress(n / 100_000, 'step %d\\nof many' % n)
progress(7, 'x' * 5000)
for bad in ('x', None, float('nan')):
    try:
        progress(bad)
    except (TypeError, ValueError):
        pass
    else:
        raise Exception(bad)
result = 'done'";
    let mut live = Live::start(builtin("python").unwrap(), script(text));
    let mut last = String::new();
    // The run is gone with its sink: the drain ends.
    while let Some(batch) = within(live.drain.next()).await {
        let progress = batch.progress.unwrap();
        last = format!(
            "{} {}",
            progress.fraction(),
            progress.message().unwrap_or_default()
        );
    }
    let report = within(live.task).await.unwrap();
    assert_eq!(output(&report), "done");
    assert!(last.starts_with("1 xxx") && last.len() > 1000, "{last}");
}

#[tokio::test]
async fn what_rhai_prints_comes_while_it_runs() {
    let text = r#"print("out"); debug("err"); progress(0.5); progress(1, "all"); 42"#;
    let live = Live::start(builtin("osis").unwrap(), script(text));
    let (lines, report) = live.rest().await;
    assert_eq!(lines, ["stdout: out", "stderr: \"err\""]);
    assert_eq!(output(&report), "42");
    let endless = r#"print("on the way"); progress(0.5, "half"); loop {}"#;
    let mut live = Live::start(builtin("osis").unwrap(), script(endless));
    assert_eq!(live.lines(2).await, ["stdout: on the way", "0.5 half"]);
    live.task.abort();
}

#[tokio::test]
async fn a_handler_logs_and_tells_its_progress() {
    let (go, wait) = mpsc::channel::<()>(1);
    let wait = std::sync::Arc::new(tokio::sync::Mutex::new(wait));
    let handler = runtime::handler(move |(): (), context: JobContext| {
        let wait = std::sync::Arc::clone(&wait);
        async move {
            context.log("one\ntwo");
            wait.lock().await.recv().await;
            context.progress(0.5, "half");
            Ok::<_, String>(())
        }
    });
    let mut live = Live::start(handler, script("null"));
    assert_eq!(live.lines(2).await, ["stdout: one", "stdout: two"]);
    go.send(()).await.unwrap();
    assert_eq!(live.lines(1).await, ["0.5 half"]);
    let (_, report) = live.rest().await;
    assert_eq!(report.stdout, b"one\ntwo\n");
}

#[tokio::test]
async fn secrets_stay_out_of_what_is_said() {
    need_python!();
    let text = "import os, sys, time
secret = os.environ['DB_PASSWORD']
out = sys.stdout.buffer
out.write(b'a ' + secret[:3].encode()); out.flush()
progress(0.5, 'with ' + secret)
out.write(secret[3:].encode() + b' b\\n'); out.flush()
print(secret, file=sys.stderr)
result = secret";
    let env = br#"{"DB_PASSWORD": "hunter22", "CITY": "Ghent"}"#;
    let fields: &[(&str, &[u8])] = &[("script", text.as_bytes()), ("env_vars", env)];
    let live = Live::start(builtin("python").unwrap(), job(fields));
    let (mut lines, report) = live.rest().await;
    lines.sort();
    assert_eq!(lines, ["stderr: ***", "stdout: a *** b"]);
    assert_eq!(output(&report), "hunter22", "the result is as it is");
    assert_eq!(
        (&report.stdout[..], &report.stderr[..]),
        (&b"a *** b\n"[..], &b"***\n"[..])
    );
}

#[tokio::test]
async fn a_line_without_an_end_is_not_lost() {
    need_python!();
    let text = "import sys\nprint('no end', end='')\nsys.exit(3)";
    let (lines, report) = Live::start(builtin("python").unwrap(), script(text))
        .rest()
        .await;
    assert_eq!(lines, [format!("{}: no end", Stream::Stdout.as_str())]);
    assert_eq!(failure(&report).kind, FailureKind::Script);
}
