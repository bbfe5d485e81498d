//! Messages between a worker and a launcher, over a socket pair: the launcher's end is its stdin. It carries the
//! script's input, then the worker's order to end the run, and at last the exit status. End of stream means that the
//! worker is gone.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The byte that comes with the script's input.
const INPUT: u8 = b'i';
/// The worker's order to end everything at once.
const END: u8 = b'e';

/// The worker's end. Gives the order when it is dropped.
#[derive(Debug)]
pub(in super::super) struct Control(UnixStream);

impl Control {
    /// Makes both ends; `input` is under way to the launcher, whose stdin the second is.
    pub(super) fn with(input: &File) -> io::Result<(Self, Stdio)> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let input = [input.as_fd()];
        // There is room for the one that it holds.
        ancillary.push(SendAncillaryMessage::ScmRights(&input));
        sendmsg(
            &ours,
            &[IoSlice::new(&[INPUT])],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        ours.set_nonblocking(true)?;
        Ok((Self(ours), OwnedFd::from(theirs).into()))
    }

    /// Tells the launcher to end everything at once.
    pub(in super::super) fn end(&self) {
        // It fails if the launcher is gone; a repetition never fills the socket.
        let _ = (&self.0).write(&[END]);
    }

    /// The exit status of the interpreter, if the launcher has sent it.
    pub(in super::super) fn status(&self) -> Option<ExitStatus> {
        let mut status = [0; size_of::<i32>()];
        (&self.0).read_exact(&mut status).ok()?;
        Some(ExitStatus::from_raw(i32::from_le_bytes(status)))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.end();
    }
}

/// Order of a worker to its launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The run is over: end everything.
    End,
    /// The worker is gone: end everything, and do what it would have done after.
    Gone,
}

/// The launcher's end.
#[derive(Debug)]
pub(super) struct Worker(UnixStream);

impl Worker {
    /// The socket on this process's stdin.
    pub(super) fn on_stdin() -> io::Result<Self> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self(stdin.into()))
    }

    /// The script's input.
    pub(super) fn input(&self) -> io::Result<OwnedFd> {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut byte)];
        recvmsg(&self.0, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let input = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        input.ok_or_else(|| io::Error::other("the worker sent no input"))
    }

    /// The worker's order; waits for it.
    pub(super) fn order(&self) -> Order {
        match (&self.0).read(&mut [0]) {
            Ok(1..) => Order::End,
            // A worker that broke off while there was something to read for it resets the stream.
            Ok(0) | Err(_) => Order::Gone,
        }
    }

    /// Tells how the interpreter ended.
    pub(super) fn report(&self, status: i32) {
        // It fails if the worker is gone.
        let _ = (&self.0).write_all(&status.to_le_bytes());
    }
}

impl AsFd for Worker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
