//! Messages between a worker and its launcher, over a socket pair that is the launcher's stdin: the script's input and
//! variables with the orders for its confinement, the worker's order to end the run, the launcher's note that the script
//! may have started, and the exit status, or the error for which the script has not started. End of stream means that the
//! worker has ended. A launcher and the process that becomes or starts the program communicate in the same way.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use super::environment::Environment;
use super::orders::Orders;
use super::usage::{self, EXCEEDED, LimitExceeded, USAGE};
use super::{handoff, wait_for};
use meshwork_model::sandbox::Usage;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Byte that accompanies the descriptors.
const INPUT: u8 = b'i';
/// Byte of the order to end the run.
const END: u8 = b'e';
/// Byte that the launcher sends before it starts the script.
const BEGUN: u8 = b'b';
/// First byte of the exit status.
const STATUS: u8 = b's';
/// First byte of the error for which the script has not started.
const NOT_STARTED: u8 = b'n';
/// First byte of the error for which the script cannot be confined.
const NOT_CONFINED: u8 = b'c';
/// First byte of the limit for which the run was ended.
const OVER: u8 = b'x';
/// First byte of the usage of the run.
const USED: u8 = b'u';

/// Greatest length of all messages of a launcher.
const MAX_REPORT: usize = 64 + EXCEEDED + USAGE + handoff::MAX_ERROR;

/// Descriptors of a script besides its output, and its variables.
#[derive(Debug)]
pub(in super::super) struct Inherited {
    /// Its stdin.
    pub(in super::super) input: OwnedFd,
    /// Its variables.
    pub(in super::super) environment: Environment,
    /// The socket for its requests.
    pub(in super::super) calls: Option<OwnedFd>,
}

/// The end of a script, as its launcher reports it.
#[derive(Debug)]
pub(in super::super) enum Launched {
    /// The script has ended.
    Ended(ExitStatus),
    /// The script has not started.
    NotStarted(io::Error),
    /// The script cannot be confined here, and has not started.
    NotConfined(io::Error),
    /// The launcher was killed before it started the script.
    Killed(ExitStatus),
}

/// Report of a launcher that has ended.
#[derive(Debug, Default)]
pub(in super::super) struct Report {
    /// True if the script may have started.
    pub(in super::super) has_begun: bool,
    /// The limit for which the run was ended.
    pub(in super::super) exceeded: Option<LimitExceeded>,
    /// The usage of all processes; `None` from a launcher that was killed.
    pub(in super::super) usage: Option<Usage>,
    /// The end of the script; `None` from a launcher that was killed.
    pub(in super::super) end: Option<Launched>,
}

/// The worker's end. It sends the order when it is dropped.
#[derive(Debug)]
pub(in super::super) struct Control(UnixStream);

impl Control {
    /// Creates both ends. The second is the stdin of the launcher, and the others and the orders are sent to it.
    pub(super) fn with(inherited: &Inherited, orders: &Orders) -> io::Result<(Self, Stdio)> {
        let orders = orders.encode()?;
        let length = u32::try_from(orders.len()).map_err(io::Error::other)?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut all = vec![inherited.input.as_fd(), inherited.environment.as_fd()];
        all.extend(inherited.calls.as_ref().map(AsFd::as_fd));
        send(&ours, INPUT, &all)?;
        ours.set_nonblocking(true)?;
        // They are shorter than the buffer of the socket.
        (&ours).write_all(&[&length.to_le_bytes()[..], &orders].concat())?;
        Ok((Self(ours), OwnedFd::from(theirs).into()))
    }

    /// Orders the launcher to kill all processes.
    pub(in super::super) fn end(&self) {
        // Fails if the launcher has ended. A repeated order never fills the socket.
        let _ = (&self.0).write(&[END]);
    }

    /// Returns the file system in memory, if there is one, as soon as the script may have started.
    pub(super) fn begun(&self) -> Option<Option<OwnedFd>> {
        let mut first = [0];
        let peeked = rustix::net::recv(&self.0, &mut first[..], RecvFlags::PEEK);
        if peeked.is_err() || first != [BEGUN] {
            return None;
        }
        let received = receive(&self.0, &mut first);
        Some(received.ok().and_then(|files| files.into_iter().next()))
    }

    /// Returns the report of a launcher that has ended.
    pub(in super::super) fn report(&self) -> Report {
        let mut bytes = Vec::new();
        // Fails at the end of what was sent, as the socket does not block.
        let _ = (&self.0).take(MAX_REPORT as u64).read_to_end(&mut bytes);
        let (mut report, mut rest) = (Report::default(), &bytes[..]);
        while let Some((kind, next)) = rest.split_first() {
            rest = match *kind {
                BEGUN => {
                    report.has_begun = true;
                    next
                }
                OVER => {
                    let Some((exceeded, next)) = next.split_first_chunk() else {
                        break;
                    };
                    report.exceeded = LimitExceeded::decode(exceeded);
                    next
                }
                USED => {
                    let Some((used, next)) = next.split_first_chunk() else {
                        break;
                    };
                    report.usage = Some(usage::decode(used));
                    next
                }
                _ => {
                    report.end = Self::end_of(rest);
                    break;
                }
            };
        }
        report
    }

    fn end_of(report: &[u8]) -> Option<Launched> {
        match report.split_first()? {
            (&STATUS, status) => {
                let status = i32::from_le_bytes(status.try_into().ok()?);
                Some(Launched::Ended(ExitStatus::from_raw(status)))
            }
            (&NOT_STARTED, error) => handoff::decode(error).map(Launched::NotStarted),
            (&NOT_CONFINED, error) => handoff::decode(error).map(Launched::NotConfined),
            _ => None,
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends a byte with at most three descriptors.
fn send(socket: &UnixStream, byte: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        // The buffer has room for them.
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let bytes = [byte];
    let parts = [IoSlice::new(&bytes)];
    sendmsg(socket, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a byte with at most three descriptors.
fn receive(socket: &UnixStream, byte: &mut [u8; 1]) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(byte)];
    recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let received = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    Ok(received.collect())
}

/// Order of a worker to its launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The run has ended: kill all processes.
    End,
    /// The worker has ended: kill all processes, and clean up in its place.
    Gone,
}

/// The launcher's end.
#[derive(Debug)]
pub(super) struct Worker(UnixStream);

impl Worker {
    /// Uses the socket on stdin.
    pub(super) fn on_stdin() -> io::Result<Self> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self(stdin.into()))
    }

    /// Receives what the script inherits, and the orders for its confinement.
    pub(super) fn orders(&self) -> io::Result<(Inherited, Orders)> {
        let mut received = receive(&self.0, &mut [0])?.into_iter();
        let (Some(input), Some(environment)) = (received.next(), received.next()) else {
            return Err(io::Error::other("the worker sent no input"));
        };
        let inherited = Inherited {
            input,
            environment: environment.into(),
            calls: received.next(),
        };
        let mut length = [0; size_of::<u32>()];
        (&self.0).read_exact(&mut length)?;
        let mut orders = Vec::new();
        let length = u64::from(u32::from_le_bytes(length));
        (&self.0).take(length).read_to_end(&mut orders)?;
        Ok((inherited, Orders::decode(&orders)?))
    }

    /// Returns true if the other side has ended.
    pub(super) fn is_gone(&self) -> bool {
        let mut ready = [PollFd::new(self, PollFlags::empty())];
        let waited = wait_for(&mut ready, Some(Duration::ZERO));
        waited.is_err() || ready[0].revents().contains(PollFlags::HUP)
    }

    /// Waits for the worker's order.
    pub(super) fn order(&self) -> Order {
        match (&self.0).read(&mut [0]) {
            Ok(1..) => Order::End,
            // A worker that ended with unread data resets the stream.
            Ok(0) | Err(_) => Order::Gone,
        }
    }

    /// Reports that the script may have started, whatever happens to this process, and the file system in memory.
    pub(super) fn begin(&self, in_memory: Option<BorrowedFd<'_>>) {
        // Fails if the worker has ended.
        let _ = send(&self.0, BEGUN, in_memory.as_slice());
    }

    /// Reports the limit for which the run is ended.
    pub(super) fn exceed(&self, exceeded: &LimitExceeded) {
        self.send(OVER, &exceeded.encode());
    }

    /// Reports the usage of the run.
    pub(super) fn used(&self, usage: &Usage) {
        self.send(USED, &usage::encode(usage));
    }

    /// Sends the exit status of the interpreter.
    pub(super) fn report(&self, status: i32) {
        self.send(STATUS, &status.to_le_bytes());
    }

    /// Sends the error for which the interpreter has not started.
    pub(super) fn refuse(&self, error: &io::Error) {
        self.send(NOT_STARTED, &handoff::encode(error));
    }

    /// Sends the error for which the script cannot be confined.
    pub(super) fn cannot_confine(&self, error: &io::Error) {
        self.send(NOT_CONFINED, &handoff::encode(error));
    }

    fn send(&self, kind: u8, rest: &[u8]) {
        // Fails if the worker has ended.
        let _ = (&self.0).write_all(&[&[kind], rest].concat());
    }
}

impl AsFd for Worker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
