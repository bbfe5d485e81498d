//! Metrics, health and the figures of queues, as scrapers, platforms and people ask for them.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::common::{BOUND, Ground, Running, json, on_all_data};
use rustix::process::Signal;
use serde_json::Value;

/// A request over a connection of its own; the head and the body of the answer. What closes the connection
/// without one answers nothing.
fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    // It may be refused before all of it is there.
    stream.write_all(request.as_bytes()).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_lowercase(), body.to_owned())
}

fn get(address: &str, path: &str, headers: &str) -> (String, String) {
    let end = "connection: close\r\n\r\n";
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{headers}{end}"),
    )
}

/// Address of a process' endpoint, from its event on stdout.
fn address_of(event: &Value) -> String {
    let url = event["metrics"].as_str().unwrap();
    url.strip_prefix("http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap()
        .to_owned()
}

/// A worker that serves, and where.
fn serving(ground: &Ground, args: &[&str]) -> (Running, String) {
    let serve = [
        "worker",
        "--json",
        "--type",
        "osis",
        "--metrics-addr",
        "127.0.0.1:0",
    ];
    let mut worker = ground.start(&[&serve, args].concat());
    let event = json(&worker.line());
    (worker, address_of(&event))
}

on_all_data! {
    fn a_worker_serves_metrics_and_how_it_is(ground: &Ground) {
        ground.file("a.rhai", "1");
        let (worker, address) = serving(ground, &[]);
        ground.run(&["run", "a.rhai"]).ok();
        let (head, page) = get(&address, "/metrics", "accept: application/openmetrics-text\r\n");
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(page.ends_with("# EOF\n"), "{page}");
        let ran = "meshwork_run_seconds_count{type=\"osis\",outcome=\"finished\"} 1\n";
        let counted = "meshwork_jobs_finished_total{type=\"osis\",group=\"default\",inst=\"\",priority=\"normal\"} 1\n";
        for sample in [ran, counted, "meshwork_store_up 1\n", "meshwork_worker_ready 1\n"] {
            assert!(page.contains(sample), "{sample}: {page}");
        }
        let (head, page) = get(&address, "/metrics", "");
        assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
        assert!(page.contains("# TYPE meshwork_jobs_finished_total counter\n"), "{page}");
        for path in ["/healthz", "/readyz"] {
            assert!(get(&address, path, "").0.starts_with("http/1.1 200"), "{path}");
        }
        worker.stop();
    }

    fn while_it_stops_it_is_healthy_and_not_ready(ground: &Ground) {
        ground.file("endless.rhai", "loop { }");
        let (mut worker, address) = serving(ground, &["--shutdown-timeout", "600"]);
        ground.run(&["job", "submit", "endless.rhai"]).ok();
        ground.job_that_is("running");
        worker.signal(Signal::TERM);
        assert!(worker.said().contains("repeat the signal"));
        crate::common::eventually("it is not ready", || {
            let (head, body) = get(&address, "/readyz", "");
            (head.starts_with("http/1.1 503") && body.contains("stopping")).then_some(())
        });
        assert!(get(&address, "/healthz", "").0.starts_with("http/1.1 200"));
        worker.signal(Signal::TERM);
        worker.ended().exits(143);
    }

    fn requests_are_bounded(ground: &Ground) {
        let (worker, address) = serving(ground, &[]);
        assert!(get(&address, "/other", "").0.starts_with("http/1.1 404"));
        let post = ask(&address, &format!("POST /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"));
        assert!(post.0.starts_with("http/1.1 405"), "{post:?}");
        let long = format!("x: {}\r\n", "x".repeat(100_000));
        let (head, _) = get(&address, "/metrics", &long);
        assert!(head.is_empty() || head.starts_with("http/1.1 431"), "{head}");
        // One that says nothing is hung up on, long before the bound of this test.
        let (head, _) = ask(&address, "GET /metrics HTTP/1.1\r\n");
        assert!(head.is_empty() || head.starts_with("http/1.1 408"), "{head}");
        worker.stop();
    }

    fn idle_connections_shut_no_probe_out(ground: &Ground) {
        let (worker, address) = serving(ground, &[]);
        let idle: Vec<_> = (0..72).map(|_| TcpStream::connect(&address).unwrap()).collect();
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert!(get(&address, path, "").0.starts_with("http/1.1 200"), "{path}");
        }
        // It was answered beside them, not when their time was over.
        let mut one = &idle[40];
        one.set_nonblocking(true).unwrap();
        let open = one.read(&mut [0]);
        assert!(matches!(&open, Err(error) if error.kind() == ErrorKind::WouldBlock), "{open:?}");
        worker.stop();
    }

    fn metrics_are_printed_once_or_served_without_a_worker(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["run", "a.rhai"]).ok();
        let page = ground.run(&["metrics"]).ok().stdout;
        let created = "meshwork_jobs_created_total{type=\"osis\",group=\"default\",inst=\"\",priority=\"normal\",origin=\"meshwork\"} 1\n";
        assert!(page.contains(created) && page.ends_with("# EOF\n"), "{page}");
        assert!(!page.contains("meshwork_worker_"), "{page}");
        let samples = ground.run(&["metrics", "--json"]).ok().jsons();
        let created = samples.iter().find(|sample| sample["name"] == "meshwork_jobs_created_total");
        assert_eq!(created.unwrap()["labels"]["type"], "osis");
        let mut exporter = ground.start(&["metrics", "--json", "--addr", "127.0.0.1:0"]);
        let address = address_of(&json(&exporter.line()));
        let (_, page) = get(&address, "/metrics", "");
        assert!(page.contains("meshwork_store_up 1\n"), "{page}");
        assert!(get(&address, "/readyz", "").0.starts_with("http/1.1 200"));
        exporter.signal(Signal::INT);
        exporter.ended().ok();
    }

    fn jobs_of_bananas_are_told_of_where_they_are_asked_for(ground: &Ground) {
        ground.file("count.rhai", "1");
        let serve = ["worker", "--json", "--protocol", "bananas", "--handler", "count=count.rhai"];
        let mut worker = ground.start(&[&serve[..], &["--metrics-addr", "127.0.0.1:0"]].concat());
        let address = address_of(&json(&worker.line()));
        ground.run(&["bananas", "submit", "count", "--wait", "60"]).ok();
        let finished = "meshwork_bananas_jobs_finished_total{route=\"default\",priority=\"normal\"} 1\n";
        let (_, page) = get(&address, "/metrics", "");
        assert!(page.contains(finished) && page.contains("meshwork_store_up 1\n"), "{page}");
        for figure in [
            "meshwork_worker_ready 1\n",
            "meshwork_worker_slots 10\n",
            "meshwork_run_seconds_count{type=\"count\",outcome=\"finished\"} 1\n",
        ] {
            assert!(page.contains(figure), "{figure}: {page}");
        }
        assert!(get(&address, "/readyz", "").0.starts_with("http/1.1 200"));
        for args in [&["metrics", "--bananas"][..], &["metrics", "--bananas=bananas"]] {
            let page = ground.run(args).ok().stdout;
            assert!(page.contains(finished), "{page}");
        }
        let others = ground.run(&["metrics", "--bananas=others"]).ok().stdout;
        assert!(others.contains("meshwork_bananas_dead_letters 0\n") && !others.contains(finished), "{others}");
        assert!(!ground.run(&["metrics"]).ok().stdout.contains("bananas"));
        worker.stop();
    }

    fn a_service_serves_metrics_and_how_it_is(ground: &Ground) {
        ground.file("count.rhai", "#{count: 1}");
        let serve = ["service", "--json", "--name", "demo", "--handler", "demo.count=count.rhai"];
        let mut service = ground.start(&[&serve[..], &["--metrics-addr", "127.0.0.1:0"]].concat());
        let address = address_of(&json(&service.line()));
        ground.run(&["action", "call", "demo.count", "{}"]).ok();
        let (_, page) = get(&address, "/metrics", "");
        for figure in [
            "meshwork_worker_ready 1\n",
            "meshwork_worker_slots 10\n",
            "meshwork_run_seconds_count{type=\"demo.count\",outcome=\"finished\"} 1\n",
        ] {
            assert!(page.contains(figure), "{figure}: {page}");
        }
        for path in ["/healthz", "/readyz"] {
            assert!(get(&address, path, "").0.starts_with("http/1.1 200"), "{path}");
        }
        service.stop();
    }

    fn an_address_that_is_taken_is_named(ground: &Ground) {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        for args in [["worker", "--type", "osis", "--metrics-addr"].as_slice(), &["metrics", "--addr"]] {
            let done = ground.run(&[args, &[&address]].concat()).exits(6);
            assert!(done.stderr.contains(&address) && done.stderr.contains("port 0"), "{done:?}");
        }
        let done = ground.run(&["worker", "--type", "osis", "--metrics-addr", "here"]).exits(2);
        assert!(done.stderr.contains("--metrics-addr"), "{done:?}");
    }

    fn the_figures_of_queues_are_shown(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.file("bad.rhai", "throw 1");
        ground.run(&["run", "a.rhai"]).ok();
        ground.run(&["run", "bad.rhai"]).exits(1);
        let args = ["job", "submit", "a.rhai", "--type", "v", "--priority", "high"];
        ground.run(&args).ok();
        let shown = ground.run(&["queue", "stats", "--interval", "0.5"]).ok().stdout;
        assert!(shown.contains("finished/s") && shown.contains("script 1"), "{shown}");
        assert!(shown.contains("\nv:prio:0 ") && !shown.contains('\x1b'), "{shown}");
        let stats = ground.run(&["queue", "stats", "--interval", "0.5", "--json"]).ok().json();
        let queues = stats["queues"].as_array().unwrap();
        let osis = queues.iter().find(|queue| queue["queue"] == "hero:q:work:type:osis").unwrap();
        assert_eq!((&osis["finished"], &osis["failed"]), (&json("1"), &json("1")));
        assert_eq!(osis["errors"], json("{\"script\": 1}"));
        let v = queues.iter().find(|queue| queue["queue"] == "hero:q:work:type:v:prio:0").unwrap();
        assert_eq!(v["waiting"], 1);
        assert!(v["oldest_seconds"].as_f64().unwrap() >= 0.5, "{v}");
        let mut watch = ground.start(&["queue", "stats", "--watch", "--json", "--interval", "0.5"]);
        let ticks = [json(&watch.line()), json(&watch.line())];
        assert!(ticks[0]["at"].as_str().unwrap() < ticks[1]["at"].as_str().unwrap());
        watch.signal(Signal::INT);
        watch.ended().ok();
        for interval in ["0", "0.4", "3601", "x"] {
            ground.run(&["queue", "stats", "--interval", interval]).exits(2);
        }
    }
}

on_all_data! {
    fn metrics_are_for_names_of_this_host(ground: &Ground) {
        let (worker, address) = serving(ground, &["--metrics-host", "worker.example"]);
        let port = address.rsplit_once(':').unwrap().1;
        let status = |path: &str, host: &str| {
            let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            ask(&address, &request).0.split(' ').nth(1).unwrap().to_owned()
        };
        for host in [&address, &format!("localhost:{port}"), "worker.example", "worker.example:9464"] {
            assert_eq!(status("/metrics", host), "200", "{host}");
        }
        // A web page that has its own name resolved to this address.
        for host in ["evil.example", &format!("evil.example:{port}"), "x"] {
            assert_eq!(status("/metrics", host), "403", "{host}");
            assert_eq!(status("/healthz", host), "200", "{host}: probes name any host");
        }
        worker.stop();
    }
}
