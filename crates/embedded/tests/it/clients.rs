//! Foreign clients at the socket: redis-cli, redis-py, ioredis, redis-rs, and the first commands of go-redis. A
//! client that is not available is skipped by name; in CI only ioredis may be.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::support::{Raw, Runs as _, own};
use futures_util::StreamExt as _;
use meshwork_embedded::{Options, Owner, Reply};
use redis::AsyncCommands as _;
use tempfile::TempDir;

const REDIS_PY: &str = "redis==8.1.0";
const IOREDIS: &str = "ioredis@6.0.0";

async fn fresh() -> (TempDir, Owner, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), Options::default()).await;
    let socket = dir.path().join("redis.sock");
    (dir, owner, socket)
}

/// Runs a program to its end without blocking the engine, which is in this process.
async fn run(mut command: Command, input: &str) -> Output {
    let input = input.to_owned();
    let run = move || {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().unwrap().write_all(input.as_bytes())?;
        child.wait_with_output()
    };
    tokio::task::spawn_blocking(run).await.unwrap().unwrap()
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

fn skip(test: &str, why: &str, also_in_ci: bool) {
    assert!(
        also_in_ci || std::env::var_os("CI").is_none(),
        "{test}: {why}"
    );
    eprintln!("skipped: {test}: {why}");
}

/// Creates a folder below `target/` once for all test runs, by a command that gets its path.
fn prepared(name: &str, make: impl FnOnce(&Path) -> Command) -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let folder = root.join(name);
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(root.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let ready = folder.join("ready");
    if !ready.exists() {
        let output = make(&folder).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        File::create(ready).unwrap();
    }
    Ok(folder)
}

#[tokio::test]
async fn redis_cli() {
    if !there("redis-cli") {
        return skip("redis_cli", "no redis-cli in PATH", false);
    }
    let (_dir, _owner, socket) = fresh().await;
    let cli = |args: &[&str]| {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(&socket).args(args);
        command
    };
    let said = async |args: &[&str], input: &str| text(&run(cli(args), input).await);
    assert_eq!(said(&["PING"], "").await, "PONG\n");
    assert_eq!(said(&["-3", "HSET", "h", "f", "1"], "").await, "1\n");
    assert_eq!(
        said(&["-3", "--no-raw", "HGETALL", "h"], "").await,
        "1# \"f\" => \"1\"\n"
    );
    assert_eq!(
        said(&["-n", "5", "-x", "SET", "a"], "from stdin").await,
        "OK\n"
    );
    assert_eq!(said(&["-n", "5", "GET", "a"], "").await, "from stdin\n");
    let transaction = "MULTI\nSET t 1\nINCR t\nEXEC\n";
    assert_eq!(said(&[], transaction).await, "OK\nQUEUED\nQUEUED\nOK\n2\n");
    let eval = &["EVAL", "return {KEYS[1], ARGV[1]}", "1", "k", "v"];
    assert_eq!(said(eval, "").await, "k\nv\n");
    assert_eq!(said(&["--scan", "--pattern", "t*"], "").await, "t\n");
    let pipe = "SET p1 1\r\nSET p2 2\r\n";
    assert!(
        said(&["--pipe"], pipe)
            .await
            .contains("errors: 0, replies: 2")
    );
    assert!(said(&["CLIENT", "LIST"], "").await.contains("redis.sock:0"));
    let info = said(&["INFO"], "").await;
    assert!(
        info.contains("aof_enabled:1") && !info.contains("cmdstat_"),
        "{info}"
    );
    let stats = said(&["INFO", "commandstats"], "").await;
    assert!(stats.contains("cmdstat_eval:calls=1,usec="), "{stats}");
    assert!(
        said(&["INFO", "all"], "")
            .await
            .contains("cmdstat_eval:calls=1")
    );
    assert_eq!(said(&["CONFIG", "RESETSTAT"], "").await, "OK\n");
    assert!(!said(&["INFO", "all"], "").await.contains("cmdstat_"));
}

#[tokio::test]
async fn redis_py() {
    if !there("python3") {
        return skip("redis_py", "no python3 in PATH", false);
    }
    let folder = prepared(REDIS_PY, |folder| {
        let mut command = Command::new("sh");
        let install = r#"python3 -m venv "$0" && "$0/bin/pip" install -q "$1""#;
        command.args(["-c", install]).arg(folder).arg(REDIS_PY);
        command
    });
    let folder = match folder {
        Ok(folder) => folder,
        Err(why) => return skip("redis_py", &why, false),
    };
    let (_dir, _owner, socket) = fresh().await;
    for protocol in ["2", "3"] {
        let mut command = Command::new(folder.join("bin/python"));
        command
            .arg("tests/clients/redis_py.py")
            .arg(&socket)
            .arg(protocol);
        assert_eq!(text(&run(command, "").await), "ok\n", "protocol {protocol}");
    }
}

#[tokio::test]
async fn ioredis() {
    if !there("npm") {
        return skip("ioredis", "no npm in PATH", true);
    }
    let folder = prepared(IOREDIS, |folder| {
        let mut command = Command::new("npm");
        command
            .args(["install", "--silent", "--prefix"])
            .arg(folder)
            .arg(IOREDIS);
        command
    });
    let folder = match folder {
        Ok(folder) => folder,
        Err(why) => return skip("ioredis", &why, true),
    };
    let (_dir, _owner, socket) = fresh().await;
    let mut command = Command::new("node");
    command.arg("tests/clients/ioredis.js").arg(&socket);
    command.env("NODE_PATH", folder.join("node_modules"));
    assert_eq!(text(&run(command, "").await), "ok\n");
}

#[tokio::test]
async fn redis_rs() {
    let (_dir, _owner, socket) = fresh().await;
    for query in ["", "?protocol=resp3"] {
        let url = format!("redis+unix://{}{query}", socket.display());
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let () = redis::cmd("FLUSHALL")
            .query_async(&mut connection)
            .await
            .unwrap();
        let (set, sum): (String, i64) = redis::pipe()
            .atomic()
            .set("a", 40)
            .incr("a", 2)
            .query_async(&mut connection)
            .await
            .unwrap();
        assert_eq!((set.as_str(), sum), ("OK", 42));
        let script = redis::Script::new("return redis.call('HSET', KEYS[1], 'f', ARGV[1])");
        for new in [1, 0] {
            let added: i64 = script
                .key("h")
                .arg("v")
                .invoke_async(&mut connection)
                .await
                .unwrap();
            assert_eq!(added, new);
        }
        let scored: Vec<(String, f64)> = async {
            let () = connection.zadd("z", "m", 1.5).await.unwrap();
            connection.zrange_withscores("z", 0, -1).await.unwrap()
        }
        .await;
        assert_eq!(scored, [("m".to_owned(), 1.5)]);

        let mut listener = client.get_async_pubsub().await.unwrap();
        listener.subscribe("news").await.unwrap();
        let heard: i64 = connection.publish("news", "hello").await.unwrap();
        assert_eq!(heard, 1);
        let message = listener.on_message().next().await.unwrap();
        assert_eq!(message.get_payload::<String>().unwrap(), "hello");
    }
}

#[tokio::test]
async fn the_words_with_which_go_redis_begins() {
    let (_dir, owner, _socket) = fresh().await;
    let mut client = Raw::to(&owner).await;
    for line in [
        "hello 3",
        "client setinfo LIB-NAME go-redis(,go1.24.0)",
        "client setinfo LIB-VER 9.14.0",
        // go-redis expects an error here, and then continues without.
        "client maint_notifications on moving-endpoint-type none",
        "ping",
    ] {
        client.send(line).await;
    }
    assert!(matches!(client.reply().await, Some(Reply::Map(_))));
    assert_eq!(client.reply().await, Some(Reply::ok()));
    assert_eq!(client.reply().await, Some(Reply::ok()));
    assert!(matches!(client.reply().await, Some(Reply::Error(_))));
    assert_eq!(client.text("ping").await, Reply::Status("PONG".into()));
}
