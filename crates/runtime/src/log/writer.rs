//! Writes one stream into the log: masks secrets, splits lines, and keeps the end for the report.

use meshwork_model::job::limits::MAX_LOG;
use meshwork_model::secret::Masker;

use super::tail::Tail;
use super::{CUT, LogSink, MAX_LINE, Stream};

/// First line of a stored log that lacks its beginning.
const LOG_CUT: &str = "[earlier output is not stored: a log keeps its last 64 KiB]\n";

/// Writer of one stream of a run. It finds secrets across pieces.
#[derive(Debug)]
pub struct LogWriter {
    sink: LogSink,
    stream: Stream,
    masker: Masker,
    tail: Tail,
    line: Line,
}

/// The current line. After a carriage return, the next text replaces it, as on a terminal.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// True if the line was cut.
    cut: bool,
    /// True after a carriage return.
    returned: bool,
    /// True if the log has a part of the line.
    shown: bool,
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

    /// Writes a piece. A line enters the log when it has ended, or with [`Self::show`].
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
        self.line = Line::default();
        let tail = std::mem::replace(&mut self.tail, Tail::new(0));
        let is_cut = tail.is_cut();
        let mut end = tail.into_bytes();
        if is_cut {
            // The line takes the place of as many bytes.
            end.splice(..LOG_CUT.len().min(end.len()), LOG_CUT.bytes());
        }
        end
    }

    fn take_in(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            for part in text.split_inclusive(|byte| *byte == b'\r') {
                self.go_on(part);
            }
            if ends {
                let nothing_new = self.line.shown && self.line.bytes.is_empty();
                if !self.line.cut && !nothing_new {
                    self.end_line();
                }
                self.line = Line::default();
            }
        }
    }

    /// Returns true if the log lacks a part of the current line.
    pub fn is_behind(&self) -> bool {
        !self.line.bytes.is_empty()
    }

    /// Sends the current line so far: a question, or the progress of a script.
    pub fn show(&mut self) {
        if self.is_behind() {
            self.end_line();
            self.line.shown = true;
        }
    }

    fn go_on(&mut self, text: &[u8]) {
        let (text, returns) = match text.strip_suffix(b"\r") {
            Some(text) => (text, true),
            None => (text, false),
        };
        if self.line.returned && !text.is_empty() {
            self.line.bytes.clear();
            (self.line.returned, self.line.cut) = (false, false);
        }
        self.line.returned |= returns;
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
        let mut text = String::from_utf8_lossy(&bytes);
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
