//! Writes one stream into the log: masks secrets, splits lines, and keeps the end for the report.

use meshwork_model::job::limits::MAX_LOG;
use meshwork_model::secret::Masker;

use super::tail::Tail;
use super::{CUT, LogSink, MAX_LINE, Stream};

/// Writer of one stream of a run. It finds secrets across pieces.
#[derive(Debug)]
pub struct LogWriter {
    sink: LogSink,
    stream: Stream,
    masker: Masker,
    tail: Tail,
    line: Line,
}

/// The current line.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// True if the line was cut.
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

    /// Writes a piece. A line enters the log when it has ended.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.sink.0.secrets.is_empty() {
            self.take_in(bytes);
            return;
        }
        let mut plain = Vec::with_capacity(bytes.len());
        self.masker.push(&self.sink.0.secrets, bytes, &mut plain);
        self.take_in(&plain);
    }

    /// Ends the stream and its last line. Returns the end of the stream, at most [`MAX_LOG`] bytes.
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
            // Sent now, since the line may not end for a long time.
            self.line.cut = true;
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line.bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(&bytes);
        let mut text = String::from_utf8_lossy(bytes);
        let mut cut = self.line.cut;
        // Invalid UTF-8 becomes longer.
        cut |= text.len() > MAX_LINE;
        if cut {
            let text = text.to_mut();
            text.truncate(text.floor_char_boundary(MAX_LINE - CUT.len()));
            text.push_str(CUT);
        }
        self.sink.send(self.stream, &text);
    }
}
