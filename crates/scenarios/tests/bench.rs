//! Each figure of `cargo xtask bench`, with a few jobs: all verbs work, and each line is complete. No test checks a
//! speed.

use std::path::Path;
use std::process::Command;

use meshwork_scenarios::bench::{
    Counts, Engine, Figure, Growth, Line, PROGRAMS, Peer, Plan, Series, grow, run,
};
use meshwork_test_servers::servers::{Tool, need};
use serde_json::{Value, json};

const FEW: Counts = Counts {
    one: 10,
    bulk: 400,
    work_each: 20,
    work: 150,
    samples: 3,
    scripts: 3,
    memory: 100,
    calls: 150,
    timed_calls: 20,
};

async fn lines(engine: Engine) -> Vec<Value> {
    let plan = Plan {
        figures: Figure::all(),
        engines: vec![engine],
        runs: Some(2),
        counts: FEW,
        floor: true,
        peers: Vec::new(),
    };
    let (mut lines, mut steps) = (Vec::new(), 0);
    let add = |line: &Line| lines.push(line.json());
    run(&plan, |_| steps += 1, add)
        .await
        .expect("every figure can be taken");
    assert!(steps >= plan.figures.len() - 2);
    lines
}

/// Checks the lines of every engine.
fn check(lines: &[Value], engine: Engine) {
    let names: Vec<_> = lines.iter().map(|line| line["name"].as_str()).collect();
    for figure in Figure::all().into_iter().map(Figure::name) {
        let is_memory = figure.starts_with("memory");
        let found = names.iter().flatten().any(|name| name.starts_with(&figure));
        assert_eq!(found, !is_memory || engine != Engine::Embedded, "{figure}");
    }
    for line in lines {
        assert_eq!(line["engine"], engine.name());
        assert_eq!(line["runs"], 2);
        assert_eq!(line["peers"], json!([]));
        let number = |name: &str| {
            line[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {line}"))
        };
        assert!(
            number("min") > 0.0 && number("min") <= number("value"),
            "{line}"
        );
        assert!(number("value") <= number("max"), "{line}");
        assert!(number("ratio") >= 0.0 && number("load") >= 0.0, "{line}");
        let unit = line["unit"].as_str().unwrap_or_default();
        assert!(
            ["jobs/s", "calls/s", "us", "bytes/job"].contains(&unit),
            "{line}"
        );
        let is_call = line["name"]
            .as_str()
            .is_some_and(|it| it.starts_with("call"));
        for cost in line["floors"]
            .as_array()
            .into_iter()
            .flatten()
            .chain([line])
        {
            let cost = &cost["cost"];
            assert!(
                cost["client_us"].as_f64().is_some_and(|one| one > 0.0),
                "{line}"
            );
            let is_server = engine != Engine::Embedded;
            for name in ["commands", "bytes_in", "bytes_out"] {
                assert_eq!(
                    cost[name].as_f64().is_some_and(|one| one > 0.0),
                    is_server,
                    "{line}"
                );
            }
            // With so few jobs it may round to zero.
            assert_eq!(cost["server_us"].is_number(), is_server, "{line}");
            // The floor of calls has no scripts.
            let command = if is_call { "lpush" } else { "evalsha" };
            assert_eq!(
                cost["by_command"][command]["calls"].is_number(),
                is_server,
                "{line}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_figure_is_taken_on_a_server() {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    check(&lines(Engine::Redis).await, Engine::Redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_figure_is_taken_on_the_embedded_engine() {
    check(&lines(Engine::Embedded).await, Engine::Embedded);
}

/// Measures series up to a quantity. Returns the curves of each.
async fn curves(series: &[Series], most: usize) -> Vec<(Series, Vec<Value>)> {
    let growth = Growth {
        series: series.to_vec(),
        runs: 1,
        most,
        divisor: 200,
        program: env!("CARGO_BIN_EXE_bench").into(),
    };
    let mut curves = Vec::new();
    grow(&growth, |_| {}, |curve| curves.push(curve.json()))
        .await
        .expect("every point can be taken");
    let of = |one: &Series| {
        let of_one = curves.iter().filter(|curve| curve["series"] == one.name());
        (*one, of_one.cloned().collect())
    };
    series.iter().map(of).collect()
}

/// Returns the quantities and values of a curve.
fn points(curve: &Value) -> Vec<(usize, f64)> {
    let points = curve["points"].as_array().expect("points");
    let number = |value: &Value| value.as_f64().expect("a number");
    let point = |point: &Value| (number(&point["at"]) as usize, number(&point["value"]));
    points.iter().map(point).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_series_of_one_server_is_taken() {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    let most = 1_000;
    let series = [
        Series::Waiting,
        Series::Workers,
        Series::Payload,
        Series::Delay,
    ];
    for (series, curves) in curves(&series, most).await {
        let steps = series.steps().iter().filter(|at| **at <= most);
        for curve in &curves {
            let points = points(curve);
            assert!(points.iter().map(|(at, _)| at).eq(steps.clone()), "{curve}");
            assert!(points.iter().all(|(_, value)| *value > 0.0), "{curve}");
            assert_eq!(curve["exponent"].is_number(), points.len() > 1, "{curve}");
        }
        assert!(!curves.is_empty(), "{}", series.name());
    }
}

/// Returns the points of a figure.
fn figure(curves: &[Value], name: &str) -> Vec<(usize, f64)> {
    let found = curves.iter().find(|curve| curve["figure"] == name);
    points(found.unwrap_or_else(|| panic!("{name}: {curves:?}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_of_a_cluster_has_an_account() {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    let (_, curves) = curves(&[Series::Nodes], 2).await.remove(0);
    for name in ["moved", "rejected"] {
        // A node that sees a call for a context elsewhere refuses it.
        assert_eq!(figure(&curves, name), [(1, 0.0), (2, 0.0)], "{name}");
    }
    let costs = ["client-enqueue", "client-pool", "server-1", "calls-1"];
    for name in costs.into_iter().chain(["work", "work-per-node-s"]) {
        let points = figure(&curves, name);
        assert!(points.iter().all(|(_, value)| *value > 0.0), "{name}");
        assert_eq!(points.len(), 2, "{name}");
    }
    for name in ["server-2", "calls-2"] {
        let points = figure(&curves, name);
        assert!(matches!(points[..], [(2, value)] if value > 0.0), "{name}");
    }
    let growth = figure(&curves, "work-growth");
    assert!(matches!(growth[..], [(1, 1.0), (2, _)]), "{growth:?}");
    // Each node has half of the contexts, so twice the jobs cost a node as many calls.
    let growth = figure(&curves, "calls-growth");
    let doubles = |value: f64| (1.5..3.0).contains(&value);
    assert!(
        matches!(growth[..], [(1, 1.0), (2, value)] if doubles(value)),
        "{growth:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_contexts_are_measured() {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    let (_, curves) = curves(&[Series::Contexts], 10).await.remove(0);
    for name in ["start-p50", "start-p99"] {
        let points = figure(&curves, name);
        assert!(matches!(points[..], [(10, value)] if value > 0.0), "{name}");
    }
    // The cost of a reading is subtracted: it may be more than that of so short a time.
    for name in ["calls", "bytes-in", "bytes-out", "server-cpu", "client-cpu"] {
        let points = figure(&curves, name);
        let taken = matches!(points[..], [(10, value)] if value >= 0.0);
        assert!(taken, "{name}: {points:?}");
    }
}

/// Writes a program. Another process writes it: a program that is open for writing in this one cannot be started while
/// a test in another thread starts a process.
fn write_program(path: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf '%s' "$1" > "$0" && chmod 755 "$0""#]);
    let status = shell.arg(path).arg(script).status();
    assert!(status.expect("sh starts").success());
}

/// A program with fixed values and no results of latencies, which writes down its arguments.
const WORKS: &str = r#"#!/bin/sh
test -n "$REDIS_URL" || exit 2
echo "$*" >> "$0.calls"
case $1 in
    work) figure=$1-$2 values='[50]' ;;
    latency) figure=$1 values='[100,200,null,null]' ;;
    *) figure=$1 values='[50]' ;;
esac
echo "{\"figure\":\"$figure\",\"version\":\"1.2.3\",\"values\":$values,\"client_us\":4.5}"
"#;

const FAILS: &str = "#!/bin/sh\necho first >&2\necho no luck >&2\nexit 3\n";

/// A program with a server of its own.
const OWN: &str = r#"#!/bin/sh
test -z "$REDIS_URL" || exit 2
case $1 in work) figure=$1-$2 ;; *) figure=$1 ;; esac
case $1 in latency) values='[1,1,1,1]' ;; *) values='[1]' ;; esac
echo "$*" >> "$0.calls"
echo "{\"figure\":\"$figure\",\"version\":\"2.0.0\",\"values\":$values,\"client_us\":4.5}"
"#;

/// Removes job queues whose programs are not in the directory of programs.
fn of_tests(mut peers: Vec<Peer>) -> Vec<Peer> {
    peers.retain(|peer| ["bullmq", "apalis", "nats"].contains(&peer.name));
    peers
}

/// Checks the figures of [`WORKS`], [`FAILS`] and [`OWN`] beside one of Meshwork, and their rows in the table.
fn check_peers(line: &Value, text: &str) {
    let name = line["name"].as_str().unwrap_or_default();
    let peers = line["peers"].as_array().expect("a list");
    if name == "work-10-unique" {
        assert!(peers.is_empty(), "{line}");
        return;
    }
    let [works, fails, own] = &peers[..] else {
        panic!("{line}")
    };
    let kind = (&works["engine"], &own["engine"], &own["version"]);
    assert_eq!(kind, (&json!("redis"), &json!("own"), &json!("2.0.0")));
    let commands = [works, own].map(|peer| peer["cost"]["commands"].is_number());
    assert_eq!(commands, [true, false], "{line}");
    let version = (&works["name"], &works["version"]);
    assert_eq!(version, (&json!("bullmq"), &json!("1.2.3")));
    let lacks = name.starts_with("latency-result");
    for field in ["value", "ratio", "to_floor", "min", "max"] {
        let positive = works[field].as_f64().is_some_and(|value| value > 0.0);
        assert!(
            positive || (lacks && works[field].is_null()),
            "{field}: {line}"
        );
    }
    assert_eq!(works["cost"]["client_us"], 4.5);
    let why = "exit status: 3: no luck";
    let why = if name == "work-10" {
        format!("enqueue-bulk: {why}")
    } else {
        why.to_owned()
    };
    assert_eq!(fails["failures"], json!([why, why]));
    assert_eq!(
        (&fails["version"], &fails["value"]),
        (&json!(null), &json!(null))
    );
    assert!(
        text.contains(&format!("  apalis                 not measured: {why}")),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_job_queues_are_measured_and_may_fail() {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    let programs = tempfile::tempdir().expect("a directory");
    write_program(&programs.path().join("bullmq"), WORKS);
    write_program(&programs.path().join("apalis"), FAILS);
    write_program(&programs.path().join("nats"), OWN);
    let names = ["enqueue-one", "work-10", "work-10-unique", "latency"];
    let plan = Plan {
        figures: names.iter().flat_map(|name| Figure::named(name)).collect(),
        engines: vec![Engine::Redis],
        runs: Some(2),
        counts: FEW,
        floor: true,
        peers: of_tests(Peer::all(programs.path())),
    };
    let (mut lines, mut text) = (Vec::new(), String::new());
    let add = |line: &Line| {
        lines.push(line.json());
        text.push_str(&format!("{line}\n"));
    };
    run(&plan, |_| {}, add)
        .await
        .expect("every figure is taken");
    for line in &lines {
        check_peers(line, &text);
    }
    let number = |value: &Value| value.as_f64().expect("a number");
    let (value, ratio) = (&lines[0]["value"], &lines[0]["peers"][0]["ratio"]);
    assert!(
        (number(ratio) * 50.0 - number(value)).abs() < 1.0,
        "{}",
        lines[0]
    );
    let calls = |name| {
        let calls = std::fs::read_to_string(programs.path().join(name)).expect("it was called");
        calls.lines().collect::<Vec<_>>().join(", ")
    };
    let twice = |call: &str| format!("{call}, {call}");
    let [one, work, latency] = ["enqueue-one 10", "work 10 150", "latency 3"].map(twice);
    assert_eq!(calls("nats.calls"), format!("{one}, {work}, {latency}"));
    let work = twice("enqueue-bulk 150, work 10 150");
    assert_eq!(calls("bullmq.calls"), format!("{one}, {work}, {latency}"));
}

#[test]
fn unfit_arguments_beside_peers_are_named() {
    let fails = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command.arg("--peers").args(arguments).env_remove(PROGRAMS);
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = fails(&["--engine", "redis,valkey"]);
    assert_eq!(
        error,
        "bench: --peers measures only on redis: remove --engine valkey\n"
    );
    let error = fails(&["--only", "memory"]);
    assert!(error.contains(
        "one of the figures enqueue-one, enqueue-bulk, work-1, work-10, work-50, latency:"
    ));
    assert!(fails(&[]).contains("run `cargo xtask bench --peers`"));
    let error = fails(&["--chart", "no-such-folder/chart.svg"]);
    let why = "--chart no-such-folder/chart.svg: name a file in an existing directory";
    assert_eq!(error, format!("bench: {why}\n"));
}

#[test]
fn a_name_means_one_figure_or_all_that_begin_with_it() {
    let names = |name| Vec::from_iter(Figure::named(name).into_iter().map(Figure::name));
    assert_eq!(names("work-10"), ["work-10"]);
    assert_eq!(names("enqueue-one"), ["enqueue-one"]);
    let enqueue = [
        "enqueue-one",
        "enqueue-one-10",
        "enqueue-one-100",
        "enqueue-bulk",
    ];
    assert_eq!(names("enqueue"), enqueue);
    assert!(names("work").len() >= 6 && names("wor").is_empty());
    assert_eq!(names("call").len(), 10);
    assert_eq!(
        names("call-latency"),
        ["call-latency-streams", "call-latency-lists"]
    );
}

#[test]
fn a_chart_is_written_after_the_figures() {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("chart.svg");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(["--quick", "--only", "memory-listpack", "--engine", "redis"]);
    let output = command
        .arg("--chart")
        .arg(&file)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let chart = std::fs::read_to_string(file).expect("a chart");
    assert!(
        chart.contains("<title>memory-listpack on redis: Meshwork: "),
        "{chart}"
    );
}

/// Like `| head`: the program ends at its next print, before it measures anything.
#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let (reads, writes) = std::io::pipe().expect("a pipe");
    drop(reads);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(["--quick", "--only", "work-10", "--engine", "embedded"]);
    let output = command.stdout(writes).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(141), ""));
}
