//! Answers that the server stored: the pushes to lists of answers in the output of `MONITOR`, which includes those of
//! scripts.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;

use super::ActionsError;
use meshwork_test_servers::servers::RealServer;

/// Text of the command that ends the recording.
const END: &str = "the-end-of-the-play";

/// Number of answers for each correlation id.
pub(super) type Answers = HashMap<String, usize>;

/// A connection that receives the output of `MONITOR`, and the thread that reads it.
pub(super) struct Wire(JoinHandle<std::io::Result<Answers>>);

impl Wire {
    /// Starts to record.
    pub(super) fn listen(server: &RealServer) -> Result<Self, ActionsError> {
        let no_monitor = || ActionsError::io("MONITOR");
        let url = server.url_without_login();
        let host = url.trim_start_matches("redis://").trim_end_matches("/0");
        let mut socket = TcpStream::connect(host).map_err(no_monitor())?;
        socket.write_all(b"MONITOR\r\n").map_err(no_monitor())?;
        let mut lines = BufReader::new(socket);
        let mut ok = String::new();
        lines.read_line(&mut ok).map_err(no_monitor())?;
        let reader = std::thread::Builder::new().name("monitor".to_owned());
        let reader = reader.spawn(move || hear(lines)).map_err(no_monitor())?;
        Ok(Self(reader))
    }

    /// Ends the recording, and returns the answers.
    pub(super) fn end(self, server: &RealServer) -> Result<Answers, ActionsError> {
        let _: String = server.say(&["ECHO", END])?;
        let heard = self.0.join();
        let heard = heard.map_err(|_| ActionsError::Odd("the monitor panicked".to_owned()))?;
        Ok(heard?)
    }
}

fn hear(lines: BufReader<TcpStream>) -> std::io::Result<Answers> {
    let mut answers = Answers::new();
    for line in lines.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.contains(END) {
            return Ok(answers);
        }
        if let Some(id) = answer(&line) {
            *answers.entry(id.to_owned()).or_default() += 1;
        }
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}

/// Returns the correlation id of the answer that this line shows.
fn answer(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("] \"LPUSH\" \"")?;
    let (key, message) = rest.split_once("\" \"")?;
    let (_, id) = message.split_once(r#"\"correlation_id\":\""#)?;
    key.contains(":responses:")
        .then(|| id.split('\\').next())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_count() {
        let to = |key: &str| {
            format!(
                r#"+1763.5 [0 lua] "LPUSH" "{key}" "{{\"action_id\":\"a\",\"correlation_id\":\"c-1\",\"x\":1}}""#
            )
        };
        assert_eq!(answer(&to("nooble4:dev:a:responses:mw:1")), Some("c-1"));
        assert_eq!(answer(&to("nooble4:dev:a:actions")), None);
        let read = r#"+1763.5 [0 127.0.0.1:1] "BLMPOP" "0" "1" "nooble4:dev:a:responses:mw:1""#;
        assert_eq!(answer(read), None);
    }
}
