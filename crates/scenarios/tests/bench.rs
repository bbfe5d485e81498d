//! Each figure of `cargo xtask bench`, with a few jobs: all verbs work, and each line is complete. No test checks a
//! speed.

use meshwork_scenarios::bench::{Counts, Engine, Figure, Growth, Line, Plan, Series, grow, run};
use meshwork_test_servers::servers::{Tool, need};
use serde_json::Value;

const FEW: Counts = Counts {
    one: 10,
    bulk: 400,
    work_each: 20,
    work: 150,
    samples: 3,
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_series_of_growth_is_taken() {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    let growth = Growth {
        series: Series::ALL.to_vec(),
        runs: 1,
        most: 1_000,
        divisor: 200,
        program: env!("CARGO_BIN_EXE_bench").into(),
    };
    let mut curves = Vec::new();
    grow(&growth, |_| {}, |curve| curves.push(curve.json()))
        .await
        .expect("every point can be taken");
    for series in Series::ALL {
        let steps = series.steps().iter().filter(|at| **at <= growth.most);
        let of_series = curves
            .iter()
            .filter(|curve| curve["series"] == series.name());
        let mut figures = 0;
        for curve in of_series {
            figures += 1;
            let points = curve["points"].as_array().expect("points");
            let at: Vec<_> = points.iter().map(|point| &point["at"]).collect();
            assert_eq!(at, steps.clone().collect::<Vec<_>>(), "{curve}");
            let measured = |point: &Value| point["value"].as_f64().is_some_and(|value| value > 0.0);
            assert!(points.iter().all(measured), "{curve}");
            assert_eq!(curve["exponent"].is_number(), points.len() > 1, "{curve}");
        }
        assert!(figures > 0, "{}", series.name());
    }
}

#[test]
fn a_name_means_one_figure_or_all_that_begin_with_it() {
    let names = |name| Vec::from_iter(Figure::named(name).into_iter().map(Figure::name));
    assert_eq!(names("work-10"), ["work-10"]);
    assert_eq!(names("enqueue"), ["enqueue-one", "enqueue-bulk"]);
    assert!(names("work").len() >= 6 && names("wor").is_empty());
    assert_eq!(names("call").len(), 10);
    assert_eq!(
        names("call-latency"),
        ["call-latency-streams", "call-latency-lists"]
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
