//! Module `net`: checks of hosts, and commands over SSH.

use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rhai::Engine;

use crate::http;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest request, in seconds.
const REQUEST: u64 = 10;
/// Status of a host that does not answer, and code of a command that did not run.
const NONE: i64 = -1;

pub(crate) fn register(engine: &mut Engine) {
    engine.register_fn("tcp_check", tcp_check);
    engine.register_fn("tcp_ping", ping);
    engine.register_fn("http_check", http_check);
    engine.register_fn("http_status", http_status);
    engine.register_fn("ssh_execute", |host: &str, user: &str, command: &str| {
        let code = ssh(host, user, command).and_then(|output| output.status.code());
        code.map_or(NONE, i64::from)
    });
    engine.register_fn(
        "ssh_execute_output",
        |host: &str, user: &str, command: &str| {
            let output = ssh(host, user, command);
            let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            text.unwrap_or_else(|| "SSH command failed".to_owned())
        },
    );
    engine.register_fn("ssh_ping", |host: &str, user: &str| {
        let output = ssh(host, user, "echo 'Connection successful'");
        output.is_some_and(|output| output.status.success())
    });
}

/// Returns true if a host answers to `ping`.
pub(crate) fn ping(host: &str) -> bool {
    let output = Command::new("ping")
        .args(["-c", "1", "-W", "5", "--", host])
        .output();
    output.is_ok_and(|output| output.status.success())
}

pub(crate) fn http_check(url: &str) -> bool {
    (200..300).contains(&http_status(url))
}

pub(crate) fn tcp_check(host: &str, port: i64) -> bool {
    let Ok(port) = u16::try_from(port) else {
        return false;
    };
    let addresses = (host, port).to_socket_addrs();
    let first = addresses.ok().and_then(|mut found| found.next());
    first.is_some_and(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
}

pub(crate) fn http_status(url: &str) -> i64 {
    http::status(url, REQUEST).unwrap_or(NONE)
}

/// Runs a command on a host. The key of an unknown host is accepted, as in the published crate. Nobody could enter a
/// password.
fn ssh(host: &str, user: &str, command: &str) -> Option<Output> {
    let mut ssh = Command::new("ssh");
    ssh.args(["-o", "ConnectTimeout=5", "-o", "StrictHostKeyChecking=no"]);
    ssh.args(["-o", "BatchMode=yes", "--"]);
    ssh.arg(format!("{user}@{host}")).arg(command);
    ssh.stdin(Stdio::null()).output().ok()
}
