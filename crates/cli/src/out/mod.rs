//! Output on stdout: data only. [`mod@note`] writes to stderr.

pub(crate) mod dashboard;
mod format;
pub(crate) mod job_view;
mod json;
mod keys;
pub(crate) mod log_file;
pub(crate) mod logs;
mod note;
mod parts;
mod progress;
mod row;
mod table;
mod text;

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;

use crate::error::CommandError;
use crate::exit::Exit;

pub(crate) use format::{ListFormat, format_of, with_format};
pub(crate) use keys::{Keys, restore, with_keys};
pub(crate) use note::{note, notes_as_json, script_note, warn};
pub(crate) use progress::Progress;
pub(crate) use row::Row;
pub(crate) use table::{Column, Table};
pub(crate) use text::{indented, one_line, printable, show_raw, visible, with_cut_words};

/// Errors of output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutError {
    /// The reader is gone, as after `| head`; no message.
    #[error("the reader of the output is gone")]
    NoReader,
    #[error("the output cannot be written: {0}")]
    Write(io::Error),
}

impl From<io::Error> for OutError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NoReader,
            _ => Self::Write(error),
        }
    }
}

impl From<OutError> for CommandError {
    fn from(error: OutError) -> Self {
        match &error {
            OutError::NoReader => Self::new(Exit::NO_READER, error),
            OutError::Write(_) => {
                Self::new(Exit::SYSTEM, error).with_hint("check whether the disk is full")
            }
        }
    }
}

/// Returns true for a terminal that moves its cursor.
pub(crate) fn can_draw(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Stdout and its format.
pub(crate) struct Out {
    json: bool,
    pub(crate) list: ListFormat,
    /// True if stdout is a terminal.
    terminal: bool,
    parts: parts::Parts,
    /// Number of the context that the command uses, if any.
    pub(crate) context: Option<u32>,
    stdout: BufWriter<Stdout>,
}

impl Out {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            list: ListFormat::Table,
            terminal: io::stdout().is_terminal(),
            parts: parts::Parts::default(),
            context: None,
            stdout: BufWriter::new(io::stdout()),
        }
    }

    /// Returns true with `--json`.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a line of text. On a terminal, control characters are replaced.
    pub(crate) fn line(&mut self, text: impl Display) -> Result<(), OutError> {
        if let Some(prefix) = self.parts.prefix() {
            self.write(prefix.as_bytes())?;
        }
        match self.terminal {
            true => self.write(format!("{text}\n").as_bytes()),
            false => Ok(writeln!(self.stdout, "{text}")?),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), OutError> {
        match self.terminal {
            true => Ok(self.stdout.write_all(&text::for_terminal(bytes))?),
            false => Ok(self.stdout.write_all(bytes)?),
        }
    }

    /// Prints bytes, with a newline at the end if they have none. On a terminal, control characters are replaced.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), OutError> {
        self.write(bytes)?;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            self.stdout.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Prints a text with colours, whose names have no control characters.
    pub(crate) fn coloured(&mut self, text: &str) -> Result<(), OutError> {
        Ok(self.stdout.write_all(text.as_bytes())?)
    }

    /// Prints bytes exactly. On a terminal, adds a missing newline, and replaces control characters.
    pub(crate) fn exact(&mut self, bytes: &[u8]) -> Result<(), OutError> {
        match self.terminal {
            true => self.raw(bytes),
            false => self.write(bytes),
        }
    }

    /// Prints a line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), OutError> {
        match self.parts.named(value) {
            Some(value) => json::write(&mut self.stdout, &value)?,
            None => json::write(&mut self.stdout, value)?,
        }
        Ok(self.stdout.write_all(b"\n")?)
    }

    /// Prints a table within the width of the terminal.
    pub(crate) fn table(&mut self, table: Table) -> Result<(), OutError> {
        self.line(table.drawn(self.width()))
    }

    /// Returns the width of the terminal, in columns; none if stdout is no terminal.
    pub(crate) fn width(&self) -> Option<u16> {
        let terminal = self.terminal.then(console::Term::stdout);
        let size = terminal.and_then(|terminal| terminal.size_checked());
        size.map(|(_, columns)| columns)
    }

    /// Flushes stdout.
    pub(crate) fn flush(&mut self) -> Result<(), OutError> {
        Ok(self.stdout.flush()?)
    }
}
