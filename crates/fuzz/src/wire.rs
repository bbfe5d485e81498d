//! A client of raw bytes: sends requests and returns replies unparsed.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use meshwork_embedded::{Reply, decode_reply, encode_command};

/// Timeout of a reply: the server is on this machine, and idle.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

pub(super) struct Wire {
    stream: UnixStream,
    input: Vec<u8>,
}

impl Wire {
    pub(super) fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            input: Vec::new(),
        })
    }

    pub(super) fn send(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<()> {
        let mut request = Vec::new();
        encode_command(args, &mut request);
        self.stream.write_all(&request)
    }

    /// Returns the next reply or pushed message, as bytes.
    pub(super) fn receive(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            self.read()?;
        }
    }

    /// Sends a request with one reply, and returns the reply.
    pub(super) fn ask(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<Reply> {
        self.send(args)?;
        let frame = self.receive()?;
        decoded(&frame)?
            .map(|(reply, _)| reply)
            .ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// Returns the version of the server.
    pub(super) fn version(&mut self) -> io::Result<String> {
        let Reply::Bulk(info) = self.ask(&["INFO", "server"])? else {
            return Err(ErrorKind::InvalidData.into());
        };
        let info = String::from_utf8_lossy(&info);
        let version = info
            .lines()
            .find_map(|line| line.strip_prefix("redis_version:"));
        Ok(version.unwrap_or("unknown").to_owned())
    }

    /// Returns the available bytes of the next reply or message.
    pub(super) fn peek(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.stream.set_nonblocking(true)?;
        let read = self.read();
        self.stream.set_nonblocking(false)?;
        match read {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => other?,
        }
        self.take()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            len => {
                self.input.extend_from_slice(&chunk[..len]);
                Ok(())
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some((_, len)) = decoded(&self.input)? else {
            return Ok(None);
        };
        Ok(Some(self.input.drain(..len).collect()))
    }
}

fn decoded(bytes: &[u8]) -> io::Result<Option<(Reply, usize)>> {
    decode_reply(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}
