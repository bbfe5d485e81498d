//! Serves an engine to other processes like a Redis server: over a Unix socket, and optionally over TCP. The owner of
//! the directory chooses the path and the permissions of the socket.

mod connection;
mod wire;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::{JoinHandle, JoinSet},
};

use crate::engine::Handle;

/// Greatest number of clients, as in Redis by default: each needs a file descriptor and buffers.
pub(crate) const MAX_CLIENTS: usize = 10_000;
/// Reply to further clients.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";
/// Pause after a connection could not be accepted, as without free file descriptors, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for clients to read pending replies at a shutdown. A client that reads needs little of it, also on a busy
/// machine; one that does not read must not delay the shutdown.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// The listening sockets and their connections. Dropping it closes them at once.
pub(crate) struct Listener {
    control: Control,
    accepting: Vec<JoinHandle<()>>,
}

impl Listener {
    /// Begins to serve.
    ///
    /// `path` is the socket's path as clients see it.
    pub(crate) fn start(
        handle: &Handle,
        (unix, path): (UnixListener, PathBuf),
        tcp: Option<TcpListener>,
        max_clients: usize,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let door = Door {
            handle: handle.clone(),
            places: Arc::new(Semaphore::new(max_clients.min(Semaphore::MAX_PERMITS))),
            stopped,
        };
        let (fresh, listener) = watch::channel(Arc::new(unix));
        let unix = Unix {
            listener,
            address: format!("{}:0", path.display()),
        };
        let control = Control { stop, unix: fresh };
        let mut accepting = vec![tokio::spawn(accept(door.clone(), unix))];
        accepting.extend(tcp.map(|tcp| tokio::spawn(accept(door, tcp))));
        Self { control, accepting }
    }

    /// Returns the control of the listener for another task.
    pub(crate) fn control(&self) -> Control {
        self.control.clone()
    }

    /// Accepts no more clients, sends the replies of commands that have run, and closes. Takes up to three seconds.
    pub(crate) async fn stop(mut self) {
        self.control.stop();
        for task in std::mem::take(&mut self.accepting) {
            // The task ends within its grace; a panic in it has been reported.
            let _ = task.await;
        }
    }
}

/// Changes a running listener.
#[derive(Clone)]
pub(crate) struct Control {
    stop: watch::Sender<bool>,
    unix: watch::Sender<Arc<UnixListener>>,
}

impl Control {
    /// Accepts new clients of the Unix socket from `unix`; present ones stay.
    pub(crate) fn listen(&self, unix: UnixListener) {
        self.unix.send_replace(Arc::new(unix));
    }

    /// Ends the service: no new clients, and present ones get the replies of commands that have run.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for task in &self.accepting {
            task.abort();
        }
    }
}

/// Shared parts of new connections.
#[derive(Clone)]
struct Door {
    handle: Handle,
    places: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
}

/// A kind of listening socket.
trait Accept: Send + 'static {
    type Reader: AsyncRead + Unpin + Send + 'static;
    type Writer: AsyncWrite + Unpin + Send + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<Client<Self>>> + Send;
    /// Sends a message to a client beyond the limit, without blocking.
    fn try_write(writer: &Self::Writer, bytes: &[u8]) -> io::Result<usize>;
}

/// A new client.
struct Client<L: Accept + ?Sized> {
    reader: L::Reader,
    writer: L::Writer,
    /// Address in `CLIENT LIST`.
    address: String,
}

struct Unix {
    /// The present socket, which is replaced when its file was deleted.
    listener: watch::Receiver<Arc<UnixListener>>,
    address: String,
}

impl Accept for Unix {
    type Reader = tokio::net::unix::OwnedReadHalf;
    type Writer = tokio::net::unix::OwnedWriteHalf;

    async fn accept(&self) -> io::Result<Client<Self>> {
        let mut listener = self.listener.clone();
        let (stream, _) = loop {
            let present = Arc::clone(&listener.borrow_and_update());
            tokio::select! {
                accepted = present.accept() => break accepted?,
                Ok(()) = listener.changed() => {}
            }
        };
        let (reader, writer) = stream.into_split();
        Ok(Client {
            reader,
            writer,
            address: self.address.clone(),
        })
    }

    fn try_write(writer: &Self::Writer, bytes: &[u8]) -> io::Result<usize> {
        writer.try_write(bytes)
    }
}

impl Accept for TcpListener {
    type Reader = tokio::net::tcp::OwnedReadHalf;
    type Writer = tokio::net::tcp::OwnedWriteHalf;

    async fn accept(&self) -> io::Result<Client<Self>> {
        let (stream, address) = Self::accept(self).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Client {
            reader,
            writer,
            address: address.to_string(),
        })
    }

    fn try_write(writer: &Self::Writer, bytes: &[u8]) -> io::Result<usize> {
        writer.try_write(bytes)
    }
}

impl Door {
    /// Completes when the listener stops.
    async fn stopped(&self) {
        // An error means that the sender is gone: this task is then about to be aborted.
        let _ = self.stopped.clone().wait_for(|stopped| *stopped).await;
    }
}

async fn accept<L: Accept>(door: Door, listener: L) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = door.stopped() => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(client) => match Arc::clone(&door.places).try_acquire_owned() {
                    Ok(place) => {
                        clients.spawn(serve(door.clone(), client, place));
                    }
                    Err(_) => {
                        let _: io::Result<usize> = L::try_write(&client.writer, TOO_MANY);
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_GRACE, async {
        while clients.join_next().await.is_some() {}
    })
    .await;
}

async fn serve<L: Accept>(door: Door, client: Client<L>, place: OwnedSemaphorePermit) {
    let Client {
        reader,
        writer,
        address,
    } = client;
    let mut session = door.handle.session();
    session.set_address(address);
    if let Err(error) = connection::serve(session, reader, writer, door.stopped()).await {
        tracing::debug!(%error, "a client has gone");
    }
    drop(place);
}
