//! `add_child()` and its other name `submit()` without a job of Meshwork, and while nobody answers.

use std::time::Duration;

use meshwork::runtime::builtin;
use meshwork_model::outcome::FailureKind;

use super::support::{failure, output, run, run_of, script, within};

#[tokio::test]
async fn there_are_no_children_without_a_job_of_ours() {
    for name in ["add_child", "submit"] {
        let python = format!("try: {name}('1')\nexcept RuntimeError as error: result = str(error)");
        let rhai =
            format!(r#"let said = ""; try {{ {name}("1"); }} catch (why) {{ said = why; }} said"#);
        for (script_type, source) in [("python", python), ("osis", rhai)] {
            let report = run(script_type, script(&source)).await;
            let said = output(&report);
            assert!(said.contains("works only in jobs of Meshwork"), "{said}");
        }
    }
}

#[tokio::test]
async fn an_error_that_is_not_caught_is_the_jobs() {
    let report = run("python", script("x = 1\nadd_child('1')")).await;
    let failure_of_python = failure(&report);
    assert!(
        failure_of_python
            .message
            .contains("RuntimeError: add_child()"),
        "{failure_of_python:?}"
    );
    let report = run("osis", script("let x = 1;\nadd_child(\"1\")")).await;
    let failure = failure(&report);
    assert!(
        failure.message.contains("add_child() works only"),
        "{failure:?}"
    );
    let traceback = failure.traceback.as_deref().unwrap_or_default();
    assert!(traceback.contains("line 2"), "{traceback}");
}

#[tokio::test]
async fn a_script_that_takes_no_answers_ends_in_time() {
    let source = "import os, signal, socket\n\
        def ask():\n\
        \x20   end = socket.socket(socket.AF_UNIX)\n\
        \x20   end.connect(os.environ['MESHWORK_CALLS'])\n\
        \x20   end.sendall(b'x\\n')\n\
        \x20   return end\n\
        ends = [ask() for _ in range(100)]\n\
        signal.pause()";
    let runner = builtin("python").unwrap();
    let (run, _stop) = run_of(script(source), Duration::from_millis(1500));
    let report = within(runner.run(run)).await;
    assert_eq!(failure(&report).kind, FailureKind::Timeout);
}
