//! A fake Mycelium daemon as a process, with the options of the real one that tests need; all others are ignored.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use meshwork_test_servers::fakes::mycelium::node::Node;
use meshwork_test_servers::fakes::mycelium::rpc::router;
use meshwork_test_servers::fakes::mycelium::{identity, link};
use tokio::net::TcpListener;

/// The options that count.
struct Options {
    key: PathBuf,
    port: u16,
    rpc: SocketAddr,
    peers: Vec<SocketAddr>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        key: PathBuf::from("priv_key.bin"),
        port: 9651,
        rpc: SocketAddr::from(([127, 0, 0, 1], 8990)),
        peers: Vec::new(),
    };
    let mut args = std::env::args().skip(1).peekable();
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or(format!("{name} needs a value"));
        let fault = |text: &str| format!("{name} {text}: not valid");
        match name.as_str() {
            "-k" | "--key-file" => options.key = value()?.into(),
            "-t" | "--tcp-listen-port" => {
                let text = value()?;
                options.port = text.parse().map_err(|_| fault(&text))?;
            }
            "--jsonrpc-addr" => {
                let text = value()?;
                options.rpc = text.parse().map_err(|_| fault(&text))?;
            }
            "--peers" => {
                while let Some(peer) = args.next_if(|peer| !peer.starts_with('-')) {
                    let address = peer.strip_prefix("tcp://").ok_or_else(|| fault(&peer))?;
                    options
                        .peers
                        .push(address.parse().map_err(|_| fault(&peer))?);
                }
            }
            _ => {}
        }
    }
    Ok(options)
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("fake-mycelium: {fault}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), String> {
    let options = options()?;
    let said = |fault: std::io::Error| fault.to_string();
    let pk = identity(&options.key).map_err(said)?;
    let links = TcpListener::bind(("127.0.0.1", options.port))
        .await
        .map_err(said)?;
    let rpc = TcpListener::bind(options.rpc).await.map_err(said)?;
    let node = Node::new(pk);
    link::start(&node, links, options.peers);
    println!(
        "fake Mycelium daemon {} at http://{}",
        node.pk(),
        options.rpc
    );
    axum::serve(rpc, router(node)).await.map_err(said)
}
