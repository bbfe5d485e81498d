//! Tests of the test servers: their options, and that they never outlive a test.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use meshwork_test_servers::eventually;
use meshwork_test_servers::fakes::FakeRedis6;
use meshwork_test_servers::servers::{RealServer, ServerOptions, Tool, need, shared};
use redis::{Client, ClientTlsConfig, Commands, RedisResult, TlsCertificates};

const BOUND: Duration = Duration::from_secs(20);

fn ping(url: &str) -> RedisResult<String> {
    Client::open(url)?.get_connection()?.ping()
}

fn answers_on_tcp_and_socket(options: ServerOptions) {
    let Some(server) = options.start() else {
        return;
    };
    assert_eq!(ping(&server.url()).unwrap(), "PONG");
    assert_eq!(
        ping(&format!("unix:{}", server.socket().display())).unwrap(),
        "PONG"
    );
}

#[test]
fn redis_answers() {
    answers_on_tcp_and_socket(RealServer::redis());
}

#[test]
fn valkey_answers() {
    answers_on_tcp_and_socket(RealServer::valkey());
}

#[test]
fn a_password_with_odd_signs_is_asked_for() {
    let Some(server) = RealServer::redis().password("p@s/s:w%").start() else {
        return;
    };
    assert_eq!(ping(&server.url()).unwrap(), "PONG");
    assert!(ping(&server.url_without_login()).is_err());
}

#[test]
fn an_acl_user_replaces_the_default_user() {
    let Some(server) = RealServer::redis().acl_user("worker", "secret").start() else {
        return;
    };
    assert_eq!(ping(&server.url()).unwrap(), "PONG");
    assert!(ping(&server.url_without_login()).is_err());
}

#[test]
fn tls_wants_a_certificate_of_the_client() {
    let Some(server) = RealServer::redis().tls().start() else {
        return;
    };
    // Fails if another test was first, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let files = server.tls_files().unwrap();
    let read = |path: &Path| fs::read(path).unwrap();
    let connect = |client_tls| {
        let root_cert = Some(read(&files.ca));
        Client::build_with_tls(
            server.url(),
            TlsCertificates {
                client_tls,
                root_cert,
            },
        )
        .unwrap()
        .get_connection()
        .and_then(|mut connection| connection.ping::<String>())
    };
    let identity = ClientTlsConfig {
        client_cert: read(&files.client_cert),
        client_key: read(&files.client_key),
    };
    assert_eq!(connect(Some(identity)).unwrap(), "PONG");
    assert!(connect(None).is_err());
}

#[test]
fn a_killed_server_starts_again_with_its_data() {
    let Some(mut server) = RealServer::redis().append_only().start() else {
        return;
    };
    let client = Client::open(server.url()).unwrap();
    let _: () = client
        .get_connection()
        .unwrap()
        .set("key", "value")
        .unwrap();
    server.kill9();
    assert!(client.get_connection().is_err());
    server.start_again();
    server.restart();
    let value: String = client.get_connection().unwrap().get("key").unwrap();
    assert_eq!(value, "value");
}

#[test]
fn a_paused_server_is_silent_until_resumed() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let mut connection = Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap();
    connection
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    server.pause();
    assert!(connection.ping::<String>().is_err());
    server.resume();
    assert_eq!(ping(&server.url()).unwrap(), "PONG");
}

#[test]
fn shared_databases_are_apart() {
    let (Some(one), Some(two)) = (shared(Tool::Redis), shared(Tool::Redis)) else {
        return;
    };
    assert_eq!(one.server.pid(), two.server.pid());
    let _: () = Client::open(one.url())
        .unwrap()
        .get_connection()
        .unwrap()
        .set("k", 1)
        .unwrap();
    let keys: i64 = redis::cmd("DBSIZE")
        .query(&mut Client::open(two.url()).unwrap().get_connection().unwrap())
        .unwrap();
    assert_eq!(keys, 0);
}

#[test]
fn the_fake_says_redis_6_and_remembers() {
    let fake = FakeRedis6::start();
    let mut connection = Client::open(fake.url()).unwrap().get_connection().unwrap();
    let info: String = redis::cmd("INFO")
        .arg("server")
        .query(&mut connection)
        .unwrap();
    assert!(info.contains("redis_version:6.2.14"));
    assert!(fake.commands().contains(&"INFO server".to_owned()));
}

/// Name of the variable that marks the process which [`a_killed_test_leaves_no_server`] starts from this binary.
const VICTIM: &str = "MESHWORK_TEST_VICTIM";

/// In the child only: starts a server, prints its address, and waits to be killed.
#[test]
fn victim() {
    if env::var_os(VICTIM).is_none() {
        return;
    }
    let server = RealServer::redis().start().unwrap();
    println!("victim: {} {}", server.pid(), server.dir().display());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn start_victim() -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "victim", "--nocapture"])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_killed_test_leaves_no_server() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let mut victim = start_victim();
    let (pid, dir) = BufReader::new(victim.stdout.take().unwrap())
        .lines()
        .find_map(|line| {
            let line = line.unwrap();
            let (_, words) = line.split_once("victim: ")?;
            let (pid, dir) = words.split_once(' ')?;
            Some((pid.to_owned(), dir.to_owned()))
        })
        .expect("the victim says where its server is");
    let alive = |pid: &str| {
        Command::new("kill")
            .args(["-0", pid])
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(alive(&pid));
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually(
        "the server ends and its directory is removed",
        BOUND,
        async || (!alive(&pid) && !Path::new(&dir).exists()).then_some(()),
    )
    .await;
}
