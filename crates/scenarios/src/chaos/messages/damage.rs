//! Damage beside the messages: keys of a wrong type, records that cannot be read, garbage in lists, and a third context
//! that takes nothing. Each damaged message has to end with a reason, and no other message may notice.

use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::RealServer;

use super::{FROM, TO};
use crate::chaos::ChaosError;
use crate::chaos::hostile::failed;

/// The context whose keys are damaged. Both coordinators serve it too.
pub(super) const BLOCKED: u32 = 9;
/// Sender of the damaged messages, who is nobody.
const NOBODY: u32 = 99;

/// Writes damage as plain clients.
pub(super) struct Damage {
    node: Plain,
    /// Databases of the sender and of the receiver.
    from: Plain,
    to: Plain,
    /// Messages at the sender, and at the receiver, that have to end.
    written: [Vec<String>; 2],
    next: usize,
}

impl Damage {
    /// Damages the third context and the registry.
    pub(super) fn begin(server: &RealServer) -> Result<Self, ChaosError> {
        let plain = |id| Plain::connect(&server.url_of(id)).map_err(|it| failed(&it));
        let mut blocked = plain(BLOCKED)?;
        for words in [
            &["HSET", "context:9", "admins", "garbage"][..],
            &["SET", "msg_out", "x"],
            &["SET", "mw:open", "x"],
        ] {
            ask(&mut blocked, words)?;
        }
        let mut node = plain(0)?;
        ask(&mut node, &["HSET", "mw:contexts", "56", "garbage"])?;
        Ok(Self {
            node,
            from: plain(FROM)?,
            to: plain(TO)?,
            written: [Vec::new(), Vec::new()],
            next: 0,
        })
    }

    /// Writes further damage, another kind each time.
    pub(super) fn go_on(&mut self) -> Result<(), ChaosError> {
        self.next += 1;
        let message = format!("message:{NOBODY}:{}", self.next);
        let (seconds, _): (u64, u64) = self.node.ask(&["TIME"]).map_err(|it| failed(&it))?;
        let now = seconds.to_string();
        match self.next % 7 {
            0 => {
                let record = ["message_type", "job", "timeout", "soon", "created_at", &now];
                self.send(&message, &record)?;
            }
            1 => {
                let record = [
                    "message_type",
                    "chat",
                    "target_context",
                    "9",
                    "created_at",
                    &now,
                ];
                self.send(&message, &record)?;
            }
            2 => {
                ask(&mut self.from, &["SET", &message, "x"])?;
                ask(&mut self.from, &["LPUSH", "msg_out", &message, "context:7"])?;
            }
            3 => {
                ask(
                    &mut self.to,
                    &["HSET", &message, "message_type", "job", "job", "{"],
                )?;
                ask(&mut self.to, &["LPUSH", "msg_in:8", &message])?;
                self.written[1].push(message);
            }
            4 => {
                let record = ["message_type", "job", "job", "{", "status", "acknowledged"];
                ask(&mut self.to, &[&["HSET", &*message], &record[..]].concat())?;
                ask(
                    &mut self.to,
                    &["ZADD", "mw:open", "1", &message, "1", "context:8"],
                )?;
                self.written[1].push(message);
            }
            5 => {
                ask(&mut self.to, &["SET", &message, "x"])?;
                ask(&mut self.to, &["LPUSH", "msg_in:8", &message, "context:8"])?;
                ask(&mut self.to, &["LPUSH", "queue:osis", &message])?;
            }
            _ => {
                // One that is listed twice, and one that waits for its timeouts.
                let record = ["message_type", "mail", "job", "[1]", "created_at", &now];
                ask(
                    &mut self.from,
                    &["ZADD", "mw:sent", "1", &message, "1", "context:7"],
                )?;
                self.send(&message, &record)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, message: &str, record: &[&str]) -> Result<(), ChaosError> {
        ask(&mut self.from, &[&["HSET", message], record].concat())?;
        ask(&mut self.from, &["LPUSH", "msg_out", message])?;
        self.written[0].push(message.to_owned());
        Ok(())
    }

    /// Returns the number of damaged messages with a record, and those that have not ended with a reason.
    pub(super) fn ends(&mut self) -> Result<(usize, Vec<String>), ChaosError> {
        let (mut all, mut open) = (0, Vec::new());
        for (written, plain) in self.written.iter().zip([&mut self.from, &mut self.to]) {
            all += written.len();
            for message in written {
                let read = ["HMGET", message, "status", "logs"];
                let found: (Option<String>, Option<String>) =
                    plain.ask(&read).map_err(|it| failed(&it))?;
                let (status, logs) = (found.0.unwrap_or_default(), found.1.unwrap_or_default());
                if status != "error" || !logs.contains("\"text\"") {
                    open.push(format!("{message}: {status:?} with the log {logs:?}"));
                }
            }
        }
        Ok((all, open))
    }
}

fn ask(plain: &mut Plain, words: &[&str]) -> Result<(), ChaosError> {
    let answer = plain.ask::<redis::Value>(words);
    answer.map(drop).map_err(|it| failed(&it))
}
