//! Connections without a path, for runs that may not create Unix sockets: all processes of such a run inherit one socket.
//! To connect, a process makes a pair of sockets, and passes one of them over the inherited one. `bootstrap.py` does so
//! too.

use std::env;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream as Stream;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::super::sandbox::CALLS_SOCKET_VARIABLE;

/// Byte that accompanies a connection.
const CONNECT: u8 = b'c';

/// Worker's end of the inherited socket.
#[derive(Debug)]
pub(super) struct Inherited(UnixStream);

/// Content of a message.
enum Message {
    Connection(OwnedFd),
    /// Anything else, which a process harms only itself with.
    Nothing,
    /// No process has the other end.
    End,
}

impl Inherited {
    /// Creates both ends. The processes of the run inherit the second.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = Stream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self(UnixStream::from_std(ours)?), theirs.into()))
    }

    /// Waits for a connection. Returns `None` after the last process has ended.
    pub(super) async fn accept(&self) -> io::Result<Option<UnixStream>> {
        loop {
            self.0.readable().await?;
            let received = self
                .0
                .try_io(Interest::READABLE, || receive(&self.0).map_err(Into::into));
            match received {
                Ok(Message::End) => return Ok(None),
                Ok(Message::Connection(socket)) => {
                    let socket = Stream::from(socket);
                    let connected = socket.set_nonblocking(true);
                    // Fails for what is no socket.
                    if let Ok(stream) = connected.and_then(|()| UnixStream::from_std(socket)) {
                        return Ok(Some(stream));
                    }
                }
                Ok(Message::Nothing) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn receive(socket: &UnixStream) -> rustix::io::Result<Message> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut byte)];
    let received = recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let connection = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(match connection {
        Some(connection) => Message::Connection(connection),
        None if received.bytes == 0 => Message::End,
        None => Message::Nothing,
    })
}

/// Connects to the worker over the inherited socket. Returns `None` without one.
pub(super) fn connect() -> Option<io::Result<UnixStream>> {
    let inherited = number(&env::var(CALLS_SOCKET_VARIABLE).ok()?)?;
    Some(pass(inherited))
}

/// Returns the descriptor that the variable names, if it is still that socket.
fn number(variable: &str) -> Option<RawFd> {
    let (number, inode) = variable.split_once(':')?;
    let number: RawFd = number.parse().ok()?;
    let now = fs::metadata(format!("/proc/self/fd/{number}")).ok()?;
    let is_it = now.file_type().is_socket() && now.ino().to_string() == inode;
    is_it.then_some(number)
}

fn pass(inherited: RawFd) -> io::Result<UnixStream> {
    let (ours, theirs) = Stream::pair()?;
    let passed = [theirs.as_raw_fd()];
    sendmsg::<()>(
        inherited,
        &[IoSlice::new(&[CONNECT])],
        &[ControlMessage::ScmRights(&passed)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    ours.set_nonblocking(true)?;
    UnixStream::from_std(ours)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_connection_is_passed() {
        let (ours, theirs) = Inherited::pair().unwrap();
        let mut client = pass(theirs.as_raw_fd()).unwrap();
        let mut server = ours.accept().await.unwrap().unwrap();
        client.write_all(b"there").await.unwrap();
        server.write_all(b"back").await.unwrap();
        let (mut there, mut back) = ([0; 5], [0; 4]);
        server.read_exact(&mut there).await.unwrap();
        client.read_exact(&mut back).await.unwrap();
        assert_eq!((&there, &back), (b"there", b"back"));
        drop(theirs);
        assert!(ours.accept().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn other_messages_are_ignored() {
        let (ours, theirs) = Inherited::pair().unwrap();
        let mut plain = Stream::from(theirs);
        plain.write_all(b"noise").unwrap();
        let file = [fs::File::open("/dev/null").unwrap()];
        let passed = [file[0].as_raw_fd()];
        let (bytes, none) = ([IoSlice::new(b"c")], MsgFlags::empty());
        let rights = [ControlMessage::ScmRights(&passed)];
        sendmsg::<()>(plain.as_raw_fd(), &bytes, &rights, none, None).unwrap();
        let _client = pass(plain.as_raw_fd()).unwrap();
        assert!(ours.accept().await.unwrap().is_some());
    }

    #[test]
    fn only_the_inherited_socket_is_used() {
        let (socket, other) = Stream::pair().unwrap();
        let inode = rustix::fs::fstat(socket.as_fd()).unwrap().st_ino;
        let (it, another) = (socket.as_raw_fd(), other.as_raw_fd());
        assert_eq!(number(&format!("{it}:{inode}")), Some(it));
        for variable in [
            format!("{another}:{inode}"),
            "x".into(),
            "x:1".into(),
            "-1:1".into(),
        ] {
            assert_eq!(number(&variable), None, "{variable}");
        }
    }
}
