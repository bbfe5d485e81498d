//! A fake Mycelium daemon as a process, with the options of the real one that tests need; all others are ignored.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpListener;

use super::node::Node;
use super::{identity, link, router};

/// The options that count.
struct Options {
    key: PathBuf,
    port: u16,
    rpc: SocketAddr,
    peers: Vec<SocketAddr>,
}

fn options(args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        key: PathBuf::from("priv_key.bin"),
        port: 9651,
        rpc: SocketAddr::from(([127, 0, 0, 1], 8990)),
        peers: Vec::new(),
    };
    let mut args = args.peekable();
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

/// Serves as a daemon with these command-line options. Calls `ready` with the address of its API.
///
/// # Errors
/// An option is not valid, or a port is taken.
pub async fn serve(
    args: impl Iterator<Item = String>,
    ready: impl FnOnce(&str),
) -> Result<(), String> {
    let options = options(args)?;
    let said = |fault: std::io::Error| fault.to_string();
    let pk = identity(&options.key).map_err(said)?;
    let links = TcpListener::bind(("127.0.0.1", options.port))
        .await
        .map_err(said)?;
    let rpc = TcpListener::bind(options.rpc).await.map_err(said)?;
    let node = Node::new(pk);
    link::start(&node, links, options.peers);
    let (pk, at) = (node.pk(), options.rpc);
    ready(&format!("fake Mycelium daemon {pk} at http://{at}"));
    axum::serve(rpc, router(node)).await.map_err(said)
}
