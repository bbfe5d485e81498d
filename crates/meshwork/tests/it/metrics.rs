//! Metrics: what a worker and the store tell, in which words, and what it costs to ask.

#[allow(dead_code, reason = "other tests need more of it")]
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engines::embedded;
use crate::worker_support::{Gate, Scripted, osis, raw};
use futures_util::future::join_all;
use meshwork::metrics::{FIGURES, Format, Kind, Metric, Metrics};
use meshwork::protocol::bananas::Client as BananasClient;
use meshwork::{Client, JobRequest, Unhealthy, Worker};
use meshwork_broker::bananas::Bananas;
use meshwork_model::keys::bananas::BananasKeys;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

const PATIENCE: Duration = Duration::from_secs(30);

fn worker(client: &Client, runner: &Arc<Scripted>) -> Worker {
    Worker::new(client).runtime(osis(), Arc::clone(runner) as _)
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
    let place = "{type=\"osis\",group=\"default\",inst=\"\",priority=\"normal\"}";
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

/// A worker listens to the queues of its type, its group and itself, each with a list per priority.
#[tokio::test(flavor = "multi_thread")]
async fn only_queues_that_were_used_have_series() {
    let client = embedded();
    let worker = worker(&client, &Scripted::echo());
    let worker = worker.instance("one".parse().unwrap());
    let worker = worker.start().await.unwrap();
    worker.registered().await;
    let look = async || {
        samples(
            &Metrics::new(&client)
                .whole()
                .text(Format::OpenMetrics)
                .await,
        )
    };
    let of_queues = |series: &BTreeMap<String, f64>| {
        let labels = series.keys().filter_map(|name| name.split_once('{'));
        let labels = labels.filter(|(_, labels)| labels.contains("inst="));
        labels
            .map(|(_, labels)| labels.split(",origin").next().unwrap().to_owned())
            .map(|labels| labels.trim_end_matches('}').to_owned())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let series = look().await;
    assert!(of_queues(&series).is_empty(), "{series:#?}");
    let pool = "{type=\"osis\",group=\"default\"}";
    assert_eq!(series[&format!("meshwork_workers{pool}")], 1.0);
    // Without a group, and for the group `default`: workers of that group run both.
    client.run(JobRequest::new(osis(), "1")).await.unwrap();
    let of_group = JobRequest::new(osis(), "1").group("default".parse().unwrap());
    client.run(of_group).await.unwrap();
    let series = look().await;
    let place = "type=\"osis\",group=\"default\",inst=\"\",priority=\"normal\"";
    assert_eq!(of_queues(&series), [place.to_owned()].into(), "{series:#?}");
    assert_eq!(
        series[&format!("meshwork_jobs_finished_total{{{place}}}")],
        2.0
    );
    assert_eq!(series[&format!("meshwork_queue_listeners{{{place}}}")], 1.0);
    worker.stop().await;
}

/// Jobs wait for the group `default`, which nobody runs, while workers of another group listen to the type.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_with_jobs_and_without_workers_is_seen() {
    let client = embedded();
    let worker = worker(&client, &Scripted::echo()).group("io".parse().unwrap());
    let worker = worker.start().await.unwrap();
    worker.registered().await;
    client.run(JobRequest::new(osis(), "1")).await.unwrap();
    let listeners = async || {
        let page = Metrics::new(&client)
            .whole()
            .text(Format::OpenMetrics)
            .await;
        let place = "{type=\"osis\",group=\"default\",inst=\"\",priority=\"normal\"}";
        samples(&page)[&format!("meshwork_queue_listeners{place}")]
    };
    assert_eq!(listeners().await, 1.0);
    let of_group = JobRequest::new(osis(), "1").group("default".parse().unwrap());
    client.enqueue(of_group).await.unwrap();
    assert_eq!(listeners().await, 0.0);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_plain_clients_count_as_foreign() {
    let client = embedded();
    let gate = Gate::new();
    let worker = worker(&client, &Scripted::gated(&gate))
        .start()
        .await
        .unwrap();
    client.enqueue(JobRequest::new(osis(), "1")).await.unwrap();
    gate.wait_for(1).await;
    let created = async |origin: &str| {
        let page = Metrics::new(&client)
            .whole()
            .text(Format::OpenMetrics)
            .await;
        let place = "type=\"osis\",group=\"default\",inst=\"\",priority=\"normal\"";
        samples(&page)[&format!("meshwork_jobs_created_total{{{place},origin=\"{origin}\"}}")]
    };
    assert_eq!(
        (created("meshwork").await, created("foreign").await),
        (1.0, 0.0)
    );
    let queue = client.broker().keys().work_queue_type(&osis());
    raw::<()>(
        &client,
        &[
            "HSET",
            "hero:job:theirs",
            "status",
            "dispatched",
            "script",
            "1",
        ],
    )
    .await;
    raw::<()>(&client, &["LPUSH", &queue, "theirs"]).await;
    gate.wait_for(2).await;
    assert_eq!(
        (created("meshwork").await, created("foreign").await),
        (1.0, 1.0)
    );
    gate.open();
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
    client.enqueue(JobRequest::new(osis(), "1")).await.unwrap();
    gate.wait_for(1).await;
    assert_eq!(monitor.busy(), 1);
    let stopping = tokio::spawn(worker.stop());
    eventually("it is not ready", PATIENCE, async || monitor.ready().err()).await;
    assert_eq!(monitor.ready(), Err(Unhealthy::Stopping));
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
    let unhealthy = eventually("it is not ready", PATIENCE, async || monitor.ready().err()).await;
    assert_eq!(unhealthy, Unhealthy::Unregistered);
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
    let row = |figure: &Metric| {
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
            12,
        ),
    ];
    for (file, text, least) in files {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c: char| !is_name(c));
        let words =
            words.filter(|word| word.starts_with("meshwork_") || word.starts_with("process_"));
        let mut found = 0;
        for word in words {
            let is_it = |figure: &Metric| match figure.kind {
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
