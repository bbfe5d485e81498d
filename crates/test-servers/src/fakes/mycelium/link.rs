//! Links between fake daemons: lines of JSON over TCP. A frame for another daemon goes to all peers but the one that it
//! came from, at most [`MAX_HOPS`] times.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::node::{Hop, Node};

/// Greatest number of links that a frame passes.
const MAX_HOPS: u8 = 4;
/// Pause before a link is made again.
const RECONNECT: Duration = Duration::from_millis(50);
/// Interval of the daemon's clock.
const TICK: Duration = Duration::from_millis(2);
/// Frames that wait for a slow peer; more are dropped, and sent again later.
const WAITING: usize = 4096;

/// Accepts links of peers, keeps links to `peers`, and runs the clock, until the process ends.
pub fn start(node: &Arc<Node>, listener: TcpListener, peers: Vec<SocketAddr>) {
    let accepting = Arc::clone(node);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(Arc::clone(&accepting), stream));
        }
    });
    for peer in peers {
        let node = Arc::clone(node);
        tokio::spawn(async move {
            let mut attempts = tokio::time::interval(RECONNECT);
            loop {
                attempts.tick().await;
                if let Ok(stream) = TcpStream::connect(peer).await {
                    serve(Arc::clone(&node), stream).await;
                }
            }
        });
    }
    let node = Arc::clone(node);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            let frames = node.state().tick(node.now_ms());
            frames.into_iter().for_each(|frame| node.links.send(frame));
        }
    });
}

/// Serves one link to its end.
async fn serve(node: Arc<Node>, stream: TcpStream) {
    let (read, mut write) = stream.into_split();
    let (sender, mut lines) = mpsc::channel::<Arc<str>>(WAITING);
    let number = node.links.add(sender);
    let writing = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if write.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(hop) = serde_json::from_str::<Hop>(&line) {
            take(&node, hop, number);
        }
    }
    node.links.remove(number);
    writing.abort();
}

/// Takes a frame from a link: for this daemon, or for another one.
fn take(node: &Node, hop: Hop, from: u64) {
    if hop.frame.dst() == node.pk() {
        let answer = node
            .state()
            .receive(hop.frame, node.now_ms(), rand::random());
        answer.into_iter().for_each(|frame| node.links.send(frame));
    } else if hop.hops < MAX_HOPS {
        let hops = hop.hops + 1;
        node.links.forward(Hop { hops, ..hop }, Some(from));
    }
}
