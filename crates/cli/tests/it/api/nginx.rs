//! The API behind nginx, with its defaults: it collects answers, and its clients have one address.

use std::net::TcpStream;
use std::process::Command;

use meshwork_test_servers::servers::{Tool, free_port, need};
use serde_json::json;

use super::sse::Events;
use super::{Api, Server, bearer};
use crate::common::{Ground, Running, eventually};

/// A running nginx in front of an API.
struct Nginx {
    _running: Running,
    api: Api,
}

impl Nginx {
    fn start(ground: &Ground, server: &Server) -> Option<Self> {
        let program = need(Tool::Nginx)?;
        let port = free_port();
        let folder = ground.path("nginx");
        std::fs::create_dir(&folder).unwrap();
        let at = folder.display();
        let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {at}/{name};\n"))
            .concat();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n{temp}\
             access_log off;\nserver {{\nlisten 127.0.0.1:{port};\nlocation / {{\n\
             proxy_pass http://{};\nproxy_set_header Host $http_host;\n\
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n}}\n}}\n}}\n",
            server.address
        );
        let config = ground.file("nginx/nginx.conf", config);
        let mut command = Command::new(program);
        command
            .arg("-p")
            .arg(&folder)
            .arg("-e")
            .arg("stderr")
            .arg("-c")
            .arg(config);
        let running = Running::start(command);
        let address = format!("127.0.0.1:{port}");
        eventually("nginx listens", || TcpStream::connect(&address).ok());
        let api = Api { address };
        Some(Self {
            _running: running,
            api,
        })
    }
}

#[test]
fn streams_and_clients_pass_nginx() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let made = ground
        .run(&["key", "create", "root", "--scope", "admin"])
        .ok();
    let root = bearer(made.stdout.trim());
    let server = Server::start(
        &ground,
        &["--trusted-proxy", "127.0.0.1", "--allow-host", "127.0.0.1"],
    );
    let Some(nginx) = Nginx::start(&ground, &server) else {
        return;
    };
    let api = &nginx.api;
    let create = |id: &str| {
        let body = json!({"type": "osis", "script": "1", "id": id}).to_string();
        assert_eq!(
            api.send("POST", "/v1/jobs", &root, &body).status,
            201,
            "{id}"
        );
    };
    create("n-1");
    // Each event comes at once, and comments keep the stream open.
    let mut events = Events::open(api, "/v1/events", &root);
    let mut log = Events::open(api, "/v1/jobs/n-1/logs?follow=true", &root);
    let mut page = Events::open(api, "/ui/live?topic=figures", &root);
    create("n-2");
    assert_eq!(events.next().data["job"], "n-2");
    for stream in [&mut events, &mut log, &mut page] {
        stream.comment("alive");
    }
    // Wrong keys count for the client that sends them.
    let status = |client: &str, key: &str| {
        let headers = format!("x-forwarded-for: {client}\r\n{key}");
        api.send("GET", "/v1/system", &headers, "").status
    };
    let wrong = bearer("mwk_x.y");
    eventually("one client has to wait", || {
        (status("203.0.113.9", &wrong) == 429).then_some(())
    });
    assert_eq!(status("203.0.113.10", &wrong), 401);
    assert_eq!(status("203.0.113.9", &root), 200);
    server.stop();
}
