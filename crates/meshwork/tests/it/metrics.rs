//! Metrics: what a worker and the store tell, in which words, and what it costs to ask.

#[allow(dead_code, reason = "other tests need more of it")]
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engines::embedded;
use crate::worker_support::{Gate, Scripted, osis};
use futures_util::future::join_all;
use meshwork::metrics::{FIGURES, Figure, Format, Kind, Metrics};
use meshwork::model::keys::bananas::Bananas as BananasKeys;
use meshwork::protocol::bananas::Client as BananasClient;
use meshwork::{Client, JobRequest, Unfit, Worker};
use meshwork_broker::bananas::Bananas;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

const PATIENCE: Duration = Duration::from_secs(30);

fn worker(client: &Client, runner: &Arc<Scripted>) -> Worker {
    Worker::new(client).runner(osis(), Arc::clone(runner) as _)
}

/// The samples of a page, by name and labels.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_tells_what_a_worker_did() {
    let client = embedded();
    let worker = worker(&client, &Scripted::echo())
        .concurrency(3)
        .start()
        .await
        .unwrap();
    worker.registered().await;
    let metrics = Metrics::new(&client).worker(worker.monitor());
    client.run(JobRequest::new(osis(), "1")).await.unwrap();
    let page = metrics.text(Format::OpenMetrics).await;
    assert!(page.ends_with("# EOF\n"), "{page}");
    let exported = samples(&page);
    let place = "{type=\"osis\",group=\"\",inst=\"\",priority=\"normal\"}";
    assert_eq!(
        exported[&format!("meshwork_claim_latency_seconds_count{place}")],
        1.0
    );
    let runs = "meshwork_run_seconds_count{type=\"osis\",outcome=\"finished\"}";
    assert_eq!(exported[runs], 1.0);
    assert_eq!(exported["meshwork_worker_slots"], 3.0);
    assert_eq!(exported["meshwork_worker_ready"], 1.0);
    assert_eq!(exported["meshwork_store_up"], 1.0);
    assert_eq!(exported[&format!("meshwork_queue_listeners{place}")], 1.0);
    assert!(exported["process_resident_memory_bytes"] > 1_000_000.0);
    let older = metrics.text(Format::Prometheus).await;
    assert!(
        !older.contains("# EOF") && !older.contains("# UNIT"),
        "{older}"
    );
    assert!(
        older.contains("\n# TYPE process_cpu_seconds_total counter\n"),
        "{older}"
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_metric_is_described_as_its_kind_demands() {
    let client = embedded();
    let conn = client.broker().conn().clone();
    let bananas = BananasClient::new(Bananas::new(conn, BananasKeys::default()));
    let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
    let metrics = Metrics::new(&client).bananas(&bananas);
    let metrics = metrics.worker(worker.monitor());
    let page = metrics.text(Format::OpenMetrics).await;
    for figure in FIGURES {
        let name = figure.name;
        let kind = figure.kind.as_str();
        assert!(
            page.contains(&format!("# HELP {name} {}.\n", figure.help)),
            "{name}: {page}"
        );
        assert!(
            page.contains(&format!("# TYPE {name} {kind}\n")),
            "{name}: {page}"
        );
        let unit = figure.unit.map(|unit| format!("# UNIT {name} {unit}\n"));
        assert!(
            unit.is_none_or(|unit| page.contains(&unit)),
            "{name}: {page}"
        );
    }
    let described = page
        .lines()
        .filter(|line| line.starts_with("# TYPE "))
        .count();
    assert_eq!(described, FIGURES.len());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_scrapes_read_the_store_once() {
    let metrics = Metrics::new(&embedded());
    let pages = join_all((0..50).map(|_| metrics.text(Format::OpenMetrics))).await;
    assert!(
        pages
            .iter()
            .all(|page| samples(page)["meshwork_store_up"] == 1.0)
    );
    // Longer than a second on no machine.
    assert_eq!(metrics.shared().reads().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_ready_from_its_registration_until_it_stops() {
    let client = embedded();
    let gate = Gate::new();
    let worker = worker(&client, &Scripted::gated(&gate))
        .start()
        .await
        .unwrap();
    let monitor = worker.monitor();
    worker.registered().await;
    assert_eq!((monitor.ready(), monitor.healthy()), (Ok(()), Ok(())));
    client.submit(JobRequest::new(osis(), "1")).await.unwrap();
    gate.wait_for(1).await;
    assert_eq!(monitor.busy(), 1);
    let stopping = tokio::spawn(worker.stop());
    eventually("it is not ready", PATIENCE, async || monitor.ready().err()).await;
    assert_eq!(monitor.ready(), Err(Unfit::Stopping));
    assert_eq!(monitor.healthy(), Ok(()));
    gate.open();
    assert_eq!(stopping.await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_the_rest_is_told() {
    let Some(mut server) = RealServer::redis().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    let worker = worker(&client, &Scripted::echo())
        .lease(Duration::from_secs(1))
        .start()
        .await
        .unwrap();
    let monitor = worker.monitor();
    worker.registered().await;
    server.kill9();
    let unfit = eventually("it is not ready", PATIENCE, async || monitor.ready().err()).await;
    assert_eq!(unfit, Unfit::Unregistered);
    let metrics = Metrics::new(&client).worker(monitor);
    let exported = eventually("errors are counted", PATIENCE, async || {
        let exported = samples(&metrics.text(Format::OpenMetrics).await);
        let errors = exported["meshwork_worker_connection_errors_total{operation=\"claim\"}"];
        (errors > 0.0).then_some(exported)
    })
    .await;
    assert_eq!(exported["meshwork_store_up"], 0.0);
    assert_eq!(exported["meshwork_worker_ready"], 0.0);
    assert!(!exported.contains_key("meshwork_running_jobs"));
    drop(worker);
}

/// Rows of the table in the documentation, as they have to be.
fn rows() -> Vec<String> {
    let row = |figure: &Figure| {
        let labels: Vec<_> = figure
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let (name, kind) = (figure.sample(), figure.kind.as_str());
        format!(
            "| `{name}` | {kind} | {} | {} |",
            labels.join(", "),
            figure.help
        )
    };
    FIGURES.iter().map(row).collect()
}

#[test]
fn the_documentation_has_the_same_table() {
    let page = include_str!("../../../../docs/metrics.md");
    let is_row = |line: &&str| line.starts_with("| `meshwork_") || line.starts_with("| `process_");
    let exported: Vec<_> = page.lines().filter(is_row).collect();
    let rows = rows();
    for (exported, row) in exported.iter().zip(&rows) {
        assert_eq!(
            exported,
            row,
            "docs/metrics.md; the whole table:\n{}",
            rows.join("\n")
        );
    }
    assert_eq!(
        exported.len(),
        rows.len(),
        "docs/metrics.md; the whole table:\n{}",
        rows.join("\n")
    );
}

#[test]
fn what_is_deployed_asks_for_metrics_that_there_are() {
    let files = [
        (
            "grafana",
            include_str!("../../../../deploy/grafana/meshwork.json"),
            20,
        ),
        (
            "keda",
            include_str!("../../../../deploy/keda/scaledobject.yaml"),
            2,
        ),
        (
            "prometheus",
            include_str!("../../../../deploy/prometheus/alerts.yaml"),
            7,
        ),
    ];
    for (file, text, least) in files {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c: char| !is_name(c));
        let words =
            words.filter(|word| word.starts_with("meshwork_") || word.starts_with("process_"));
        let mut found = 0;
        for word in words {
            let is_it = |figure: &Figure| match figure.kind {
                Kind::Histogram => ["_bucket", "_count", "_sum"]
                    .iter()
                    .any(|suffix| word.strip_suffix(suffix) == Some(figure.name)),
                _ => word == figure.sample(),
            };
            assert!(
                FIGURES.iter().any(is_it),
                "{file} asks for {word}, which nobody tells"
            );
            found += 1;
        }
        assert!(found >= least, "{file}: {found}");
    }
    let dashboard: serde_json::Value = serde_json::from_str(files[0].1).unwrap();
    assert_eq!(dashboard["title"], "Meshwork");
}
