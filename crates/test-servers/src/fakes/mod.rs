//! Fake servers, for behaviour that no real server has on demand.

pub mod mycelium;
mod redis6;
mod silent;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

pub use redis6::FakeRedis6;
pub use silent::FakeSilent;

/// Listens on a free port of loopback until the end of the process, and serves each client on a thread of its own.
fn listen(serve: impl Fn(&TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(&client));
        }
    });
    address
}
