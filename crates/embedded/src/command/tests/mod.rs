//! Commands run one by one against a store of their own, without an engine.

mod blocking;
mod deadline;
mod effects;
mod replay;
mod streams;
mod transcript;

use bytes::Bytes;

use super::{Ctx, Outcome, Stop};
use crate::{
    Protocol, encode_reply,
    session_command::find,
    store::{Effect, Store},
};

/// The start time, far from all deadlines of the tests.
const NOW_MS: u64 = 1_800_000_000_000;

/// The time of a replay: after everything in the log.
const LATER_MS: u64 = 2 * NOW_MS;

/// A store, and the recorded writes of commands.
struct Bench {
    store: Store,
    db: usize,
    now_ms: u64,
    protocol: Protocol,
    effects: Vec<Effect>,
}

impl Bench {
    fn new() -> Self {
        Self {
            store: Store::new(),
            db: 0,
            now_ms: NOW_MS,
            protocol: Protocol::Resp2,
            effects: Vec::new(),
        }
    }

    fn call(&mut self, args: &[Bytes], woken_by: Option<Bytes>) -> Outcome {
        let spec = find(args).map_err(Stop::Error)?;
        spec.check_arity(args.len()).map_err(Stop::Error)?;
        let Some(run) = spec.data else {
            panic!("{} is no data command", spec.name)
        };
        let mut ctx = Ctx {
            store: &mut self.store,
            db: self.db,
            now_ms: self.now_ms,
            clock_ms: if self.now_ms == 0 {
                LATER_MS
            } else {
                self.now_ms
            },
            in_script: false,
            resp3: self.protocol == Protocol::Resp3,
            woken_by,
            effects: &mut self.effects,
        };
        run(&mut ctx, args)
    }

    fn run(&mut self, line: &str) -> Outcome {
        self.call(&words(line), None)
    }

    /// Returns the reply in wire format, with spaces for line breaks.
    fn reply(&mut self, line: &str) -> String {
        let reply = match self.run(line) {
            Ok(reply)
            | Err(Stop::Wait {
                otherwise: reply, ..
            }) => reply,
            Err(Stop::Error(text)) => crate::Reply::Error(text),
        };
        let mut bytes = Vec::new();
        encode_reply(&reply, self.protocol, &mut bytes);
        let text = String::from_utf8_lossy(&bytes)
            .replace("\r\n", " ")
            .replace('\0', "\\0");
        text.trim().to_owned()
    }

    /// Returns the writes since the last call, as lines.
    fn take_effects(&mut self) -> Vec<String> {
        std::mem::take(&mut self.effects).iter().map(line).collect()
    }

    /// Returns all data, in an order that does not depend on its history.
    fn content(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.store.snapshot().map(|effect| line(&effect)).collect();
        lines.sort();
        lines
    }
}

/// Returns the words of a line; `""` is an empty one, and spaces may be in quotes.
fn words(line: &str) -> Vec<Bytes> {
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(Bytes::from(part.to_owned()));
        } else {
            words.extend(
                part.split_whitespace()
                    .map(|word| Bytes::from(word.to_owned())),
            );
        }
    }
    words
}

fn line(effect: &Effect) -> String {
    let args: Vec<_> = effect
        .args
        .iter()
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect();
    if effect.db == 0 {
        args.join(" ")
    } else {
        format!("{}: {}", effect.db, args.join(" "))
    }
}
