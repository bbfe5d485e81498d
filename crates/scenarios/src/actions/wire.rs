//! What the server was told to answer: the pushes to lists of answers, as `MONITOR` tells them, those of scripts too.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;

use super::ActionsError;
use meshwork_test_servers::servers::RealServer;

/// What ends it.
const END: &str = "the-end-of-the-play";

/// How often each correlation id was answered.
pub(super) type Answers = HashMap<String, usize>;

/// A connection that hears everything, and a thread that reads it.
pub(super) struct Wire(JoinHandle<std::io::Result<Answers>>);

impl Wire {
    /// Listens from now on.
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

    /// What was heard so far.
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

/// The correlation id of the answer that a line tells of.
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
