//! Servers and data directories that cannot be used are named, with what to do about it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::says;
use crate::common::{Ground, bare};
use meshwork_test_servers::fakes::FakeRedis6;
use meshwork_test_servers::servers::RealServer;

const USAGE: i32 = 2;
const SERVER: i32 = 3;

#[test]
fn urls() {
    for (url, words) in [
        ("localhost:6379", "redis://"),
        ("http://localhost", "redis://"),
        ("redis://localhost:port", "redis://"),
        ("redis://localhost/x", "redis://"),
        ("redis+sentinel://localhost", "the service of the sentinels"),
        ("redis+cluster://localhost/1", "only database 0"),
        ("redis://localhost?wait_replicas=x", "wait_replicas"),
    ] {
        let ground = Ground::url(url);
        says(&ground.run(&["job", "list"]), USAGE, &[words]);
    }
    let ground = Ground::url("redis://h");
    says(
        &ground.run(&["job", "list", "--tls-ca", "ca.pem"]),
        USAGE,
        &["rediss://"],
    );
    let ground = Ground::url("rediss://h");
    says(
        &ground.run(&["job", "list", "--tls-ca", "ca.pem"]),
        USAGE,
        &["CA certificate ca.pem"],
    );
    says(
        &ground.run(&["job", "list", "--tls-key", "k.pem"]),
        USAGE,
        &["certificate is missing"],
    );
}

#[test]
fn nobody_answers() {
    // Nobody listens to a port that was just free.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let ground = Ground::url(format!("redis://:geheim@{free}"));
    ground.file("a.rhai", "1");
    for args in [
        &["run", "a.rhai"][..],
        &["run", "a.rhai", "--each", "a.rhai"],
        &["job", "submit", "a.rhai"],
        &["job", "list"],
        &["queue", "list"],
        &["dead", "list"],
        &["dead", "replay", "--all", "--yes"],
        &["events", "-f"],
        &["job", "logs", "-f", "j"],
        &["queue", "limit", "set", "osis", "1", "--create"],
        &["worker", "--type", "osis"],
    ] {
        let done = ground.run(args);
        says(&done, SERVER, &[&free.to_string(), "is the server running"]);
        assert!(!done.stderr.contains("geheim"), "{}", done.stderr);
    }
}

#[test]
fn a_wrong_password() {
    let Some(server) = RealServer::redis().password("geheim").start() else {
        return;
    };
    let ground = Ground::url(server.url().replace("geheim", "falsch"));
    ground.file("a.rhai", "1");
    let done = ground.run(&["run", "a.rhai"]);
    says(
        &done,
        SERVER,
        &[
            "refuses the credentials",
            "password",
            &server.port().to_string(),
        ],
    );
    assert!(!done.stderr.contains("falsch"), "{}", done.stderr);
    let ground = Ground::url(server.url_without_login());
    ground.file("a.rhai", "1");
    says(
        &ground.run(&["run", "a.rhai"]),
        SERVER,
        &["refuses the credentials"],
    );
    assert_eq!(Ground::url(server.url()).stored(), "");
}

#[test]
fn a_server_that_throws_jobs_away() {
    let Some(server) = RealServer::redis().max_memory_policy("allkeys-lru").start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "1");
    let words = ["allkeys-lru", "CONFIG SET maxmemory-policy noeviction"];
    says(&ground.run(&["run", "a.rhai"]), SERVER, &words);
    says(&ground.run(&["worker", "--type", "osis"]), SERVER, &words);
}

#[test]
fn a_redis_that_is_too_old() {
    let server = FakeRedis6::start();
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "1");
    says(
        &ground.run(&["run", "a.rhai"]),
        SERVER,
        &["Redis 6.2.14", "7.0 is the oldest", "upgrade"],
    );
    let writes = |command: &String| {
        ["EVAL", "SET", "HSET", "LPUSH"]
            .iter()
            .any(|w| command.starts_with(w))
    };
    assert!(
        !server.commands().iter().any(writes),
        "{:?}",
        server.commands()
    );
}

#[test]
fn no_place_for_the_data() {
    let ground = Ground::url("");
    let mut command = bare(&ground.path(""));
    let output = command
        .env_remove("HOME")
        .args(["job", "list"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(USAGE));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("MESHWORK_DATA") && said.contains("--redis"),
        "{said}"
    );
}

#[test]
fn a_data_directory_that_cannot_be() {
    let ground = Ground::url("");
    ground.file("a.rhai", "1");
    let file = ground.file("file", "");
    // Nobody, whoever it is, makes a folder there.
    for place in [file.to_str().unwrap(), "/proc/meshwork"] {
        let mut command = bare(&ground.path(""));
        command.env("MESHWORK_DATA", place);
        let output = command.args(["run", "a.rhai"]).output().unwrap();
        assert_eq!(output.status.code(), Some(SERVER), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(place) && said.contains("Name a"), "{said}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"");
}

#[test]
fn a_data_directory_that_a_server_has_taken_over() {
    let ground = Ground::embedded().unwrap();
    ground.file("a.rhai", "1");
    let taken = ground.path("data/appendonlydir");
    fs::create_dir_all(&taken).unwrap();
    fs::write(
        taken.join("appendonly.aof.manifest"),
        "file x seq 1 type b\n",
    )
    .unwrap();
    let done = ground.run(&["run", "a.rhai"]);
    says(&done, SERVER, &["data", "appendonlydir"]);
    assert!(!ground.path("data/appendonly.aof").exists());
}

#[test]
fn a_corrupted_log() {
    let ground = Ground::embedded().unwrap();
    ground.file("a.rhai", "1");
    ground.run(&["run", "a.rhai"]).ok();
    let log = ground.path("data/appendonly.aof");
    let mut bytes = fs::read(&log).unwrap();
    // Where a command begins, with whole ones behind it: no torn end.
    let middle = bytes.windows(3).position(|at| at == b"\n*3").unwrap();
    bytes[middle + 1] = b'!';
    fs::write(&log, &bytes).unwrap();
    let done = ground.run(&["run", "a.rhai"]);
    says(&done, SERVER, &["appendonly.aof"]);
    assert_eq!(fs::read(&log).unwrap(), bytes, "it is left as it was");
}

/// It is not away: it says so at once.
#[test]
fn a_full_server_says_what_to_do() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "1");
    server
        .say::<()>(&["CONFIG", "SET", "maxmemory", "1"])
        .unwrap();
    let done = ground.run(&["job", "submit", "a.rhai"]);
    says(&done, SERVER, &["OOM", "raise maxmemory"]);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
}

/// It may be made a primary within the time that the call is repeated.
#[test]
fn a_replica_says_what_to_do() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "1");
    server.say::<()>(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    let began = Instant::now();
    let done = ground.run_without_log(&["job", "submit", "a.rhai"]);
    // Calls are repeated for a minute otherwise.
    assert!(began.elapsed() < Duration::from_secs(10));
    says(
        &done,
        SERVER,
        &["read only replica", "address of the primary"],
    );
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
}

/// The kind of server is named at once, with the URL to write instead.
#[test]
fn another_kind_of_server_is_named() {
    let (Some(plain), Some(tls)) = (
        RealServer::redis().start(),
        RealServer::redis().tls().start(),
    ) else {
        return;
    };
    let web = web_server();
    let (plain, tls) = (plain.port(), tls.port());
    for (url, words) in [
        (
            format!("redis://127.0.0.1:{web}"),
            "a web server (HTTP) answers there, not Redis",
        ),
        (
            format!("redis+sentinel://127.0.0.1:{web}/mymaster"),
            "a web server (HTTP) answers there",
        ),
        (
            format!("redis://127.0.0.1:{tls}"),
            "the server expects TLS: write rediss://",
        ),
        (
            format!("rediss://127.0.0.1:{plain}"),
            "the server has no TLS on this port",
        ),
        (
            format!("redis+sentinel://127.0.0.1:{plain}/mymaster"),
            "is a server and no sentinel",
        ),
    ] {
        let done = Ground::url(&url).run(&["job", "list"]).exits(SERVER);
        assert!(done.stderr.contains(words), "{url}: {}", done.stderr);
        assert!(!done.stderr.contains("retrying"), "{url}: {}", done.stderr);
    }
}

/// Answers each connection as a web server does. Returns its port.
fn web_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Any answer fits: the question is no HTTP.
            stream.read_exact(&mut [0]).ok();
            let answer = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n<p>no</p>\n";
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    port
}

#[test]
fn a_renamed_command_is_named_without_its_arguments() {
    // The first and the last are sent as they are, the others by scripts.
    for command in ["EVALSHA", "ZADD", "XADD", "INFO"] {
        let renamed = RealServer::redis().args(&["--rename-command", command, ""]);
        let Some(server) = renamed.start() else {
            return;
        };
        let ground = Ground::url(server.url());
        ground.file("a.rhai", "1");
        let done = ground.run(&["job", "enqueue", "a.rhai"]);
        let named = format!("does not have the command {command}");
        says(&done, SERVER, &[&named, "rename-command"]);
        assert!(!done.stderr.contains("with args"), "{}", done.stderr);
        let doctor = ground.run(&["doctor"]);
        let trial = doctor.stdout.lines().find(|line| line.contains("trial:"));
        assert!(trial.unwrap().contains(&named), "{}", doctor.stdout);
        assert!(trial.unwrap().matches("failed").count() < 2, "{trial:?}");
    }
}
