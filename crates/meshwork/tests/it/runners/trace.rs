//! The trace that a job belongs to, as what runs it sees it.

use meshwork::runtime::{self, JobContext};
use meshwork_model::job::Job;
use meshwork_test_servers::servers::{Tool, need};

use super::support::{PATIENCE, job, output, run, run_with};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A job with this script, and these texts of others.
fn traced(script: &str, parent: &str, state: &str) -> Job {
    job(&[
        ("script", script.as_bytes()),
        ("mw_traceparent", parent.as_bytes()),
        ("mw_tracestate", state.as_bytes()),
    ])
}

#[tokio::test]
async fn scripts_in_rhai_know_constants() {
    let script = "fn both() { [global::TRACEPARENT, global::TRACESTATE] } both()";
    let script = &script.replace("global::", "");
    let with = run("osis", traced(script, PARENT, " a=1 , b=2")).await;
    assert_eq!(output(&with), format!("[\"{PARENT}\",\"a=1,b=2\"]"));
    let without = run("osis", traced(script, "00-0-0-0", "a=1")).await;
    assert_eq!(output(&without), "[null,null]");
}

#[tokio::test]
async fn scripts_in_python_find_it_in_their_environment() {
    if need(Tool::Python).is_none() {
        return;
    }
    let script = "import os\nresult = [os.environ.get(n) for n in ('TRACEPARENT', 'TRACESTATE')]";
    let with = run("python", traced(script, PARENT, "a=1")).await;
    assert_eq!(output(&with), format!("[\"{PARENT}\",\"a=1\"]"));
    // A state that is not valid is left out alone.
    let half = run("python", traced(script, PARENT, "a")).await;
    assert_eq!(output(&half), format!("[\"{PARENT}\",null]"));
    let without = run("python", traced(script, "", "a=1")).await;
    assert_eq!(output(&without), "[null,null]");
}

#[tokio::test]
async fn handlers_are_given_it() {
    let tell = async |(): (), context: JobContext| {
        let trace = context.trace.ok_or("no trace")?;
        Ok::<_, &str>((trace.parent(), trace.state().map(str::to_owned)))
    };
    let runner = runtime::handler(tell);
    let with = run_with(&*runner, traced("null", PARENT, "a=1"), PATIENCE).await;
    assert_eq!(output(&with), format!("[\"{PARENT}\",\"a=1\"]"));
    let without = run_with(&*runner, traced("null", "x", ""), PATIENCE).await;
    assert_eq!(without.result.unwrap_err().message, "no trace");
}
