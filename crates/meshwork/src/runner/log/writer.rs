//! A stream on its way into the log: without secrets, cut into lines, and its end kept for the report.

use meshwork_model::job::limits::MAX_LOG;
use meshwork_model::secret::Masker;

use super::tail::Tail;
use super::{CUT, LogSink, MAX_LINE, Stream};

/// Writes one stream of a run. A secret is found however the stream is cut into pieces.
#[derive(Debug)]
pub struct LogWriter {
    sink: LogSink,
    stream: Stream,
    masker: Masker,
    tail: Tail,
    line: Line,
}

/// The line that has not ended yet.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// The rest of it is left out.
    cut: bool,
}

impl LogWriter {
    pub(super) fn new(sink: LogSink, stream: Stream) -> Self {
        Self {
            sink,
            stream,
            masker: Masker::default(),
            tail: Tail::new(MAX_LOG),
            line: Line::default(),
        }
    }

    /// Writes a piece. A line is in the log when it has ended.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.sink.0.secrets.is_empty() {
            self.take_in(bytes);
            return;
        }
        let mut plain = Vec::with_capacity(bytes.len());
        self.masker.push(&self.sink.0.secrets, bytes, &mut plain);
        self.take_in(&plain);
    }

    /// Ends the stream, and a line that has not ended. Returns the last of it, [`MAX_LOG`] bytes at most.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut plain = Vec::new();
        self.masker.finish(&mut plain);
        self.take_in(&plain);
        if !self.line.bytes.is_empty() {
            self.end_line();
        }
        self.line.cut = false;
        std::mem::replace(&mut self.tail, Tail::new(0)).into_bytes()
    }

    fn take_in(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.go_on(text);
            if ends && !self.line.cut {
                self.end_line();
            }
            self.line.cut &= !ends;
        }
    }

    fn go_on(&mut self, text: &[u8]) {
        if self.line.cut {
            return;
        }
        let room = MAX_LINE - self.line.bytes.len();
        self.line
            .bytes
            .extend_from_slice(&text[..text.len().min(room)]);
        if text.len() > room {
            // Told now: it may be long until it ends.
            self.line.cut = true;
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line.bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(&bytes);
        let mut text = String::from_utf8_lossy(bytes);
        let mut cut = self.line.cut;
        // What is no text takes more room than before.
        cut |= text.len() > MAX_LINE;
        if cut {
            let text = text.to_mut();
            text.truncate(text.floor_char_boundary(MAX_LINE - CUT.len()));
            text.push_str(CUT);
        }
        self.sink.send(self.stream, &text);
    }
}
