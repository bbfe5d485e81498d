//! `cargo xtask fake-mycelium`: connected fake Mycelium daemons as processes, for tries by hand.

use std::process::{Child, Command};
use std::time::Duration;

use crate::process::{self, Failure};
use crate::workspace::Workspace;

/// Name of the program.
const NAME: &str = "fake-mycelium";
/// Limit of the build.
const BUILD: Duration = Duration::from_secs(600);
/// Ports for links are this far from those of the APIs.
const LINKS: u16 = 1000;

/// Starts a daemon with its API at each port, connected with all others, and waits for the end of the first one.
pub(crate) fn run(workspace: &Workspace, ports: &[u16]) -> Result<(), Failure> {
    let package = ["--package", "meshwork-test-servers", "--bin", NAME];
    process::run(workspace.cargo(&["build"]).args(package), BUILD)?;
    let program = workspace.built().join(NAME);
    let folder = workspace.target(NAME);
    let failed = |error: std::io::Error| Failure::new(error.to_string());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let link = |port: u16| {
        let fault = || Failure::new(format!("port {port} is too high: give at most 64535"));
        port.checked_add(LINKS).ok_or_else(fault)
    };
    let mut daemons = Daemons(Vec::new());
    for (at, port) in ports.iter().enumerate() {
        let mut daemon = Command::new(&program);
        daemon.arg("-k").arg(folder.join(format!("{port}.key")));
        daemon.arg("-t").arg(link(*port)?.to_string());
        daemon.args(["--jsonrpc-addr", &format!("127.0.0.1:{port}")]);
        if at > 0 {
            daemon.arg("--peers");
        }
        for earlier in &ports[..at] {
            daemon.arg(format!("tcp://127.0.0.1:{}", link(*earlier)?));
        }
        daemons.0.push(daemon.spawn().map_err(failed)?);
    }
    match daemons.0.first_mut() {
        Some(first) => first.wait().map(drop).map_err(failed),
        None => Ok(()),
    }
}

/// Daemons that end with this process.
struct Daemons(Vec<Child>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for daemon in &mut self.0 {
            // It may have ended.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
