//! The engine and the server side by side: runs each step on both, and compares.

use std::{io, path::Path, pin::Pin, task::Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use meshwork_embedded::{Handle, Protocol, Reply, Session, decode_reply, encode_reply};

use super::{
    data,
    generate::{SESSIONS, ends_soon, settle_ids},
    same::{Different, command_name, same, sorted},
    step::{Arg, Step, quoted},
    wire::Wire,
    words::LATE_MS,
};

type Args = Vec<Vec<u8>>;

/// The first session that may subscribe.
const LISTENERS: usize = SESSIONS / 2;

/// Marks the end of the pushed messages of a step.
const MARK: &str = "end-of-step";

/// A blocked call of the engine, which owns the session until it ends.
type Waiting = Pin<Box<dyn Future<Output = (Session, Reply)>>>;

/// One session on both sides.
struct Slot {
    /// `None` while a call is blocked.
    engine: Option<Session>,
    waiting: Option<(Args, Waiting)>,
    wire: Wire,
    ids: [i64; 2],
    /// The commands since MULTI.
    queued: Option<Vec<Args>>,
    listening: bool,
}

/// Both sides, with their sessions.
pub(super) struct Pair {
    handle: Handle,
    slots: Vec<Slot>,
    /// A connection to the server that is never in a transaction and never blocked.
    control: Wire,
}

impl Pair {
    /// Returns an empty engine and an emptied server.
    pub(super) fn fresh(socket: &Path) -> io::Result<Self> {
        let mut control = Wire::connect(socket)?;
        for request in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"]] {
            control.ask(request)?;
        }
        let handle = Handle::in_memory();
        let slots: io::Result<Vec<Slot>> = (0..SESSIONS)
            .map(|number| Slot::open(&handle, socket, number % 2 == 1))
            .collect();
        Ok(Self {
            handle,
            slots: slots?,
            control,
        })
    }

    /// Runs a step on both sides.
    pub(super) fn step(&mut self, step: &Step) -> Result<(), Different> {
        match step {
            Step::CompareData => {
                self.check_waiting()?;
                data::compare(&self.handle, &mut self.control)?;
            }
            Step::Call { session, args } => {
                let mut args = args.clone();
                self.settle_ids(*session, &mut args);
                let [ours, theirs] = [0, 1].map(|side| self.resolved(&args, side));
                if self.makes_sense(*session, &ours) {
                    self.call(*session, &ours, &theirs)?;
                }
            }
        }
        self.settle()
    }

    /// Lets XADD use the clock's id only where it continues from the last one.
    fn settle_ids(&mut self, session: usize, args: &mut [Arg]) {
        let plain = self.resolved(args, 0);
        if command_name(&plain) != "xadd" || plain.len() < 2 {
            return;
        }
        let slot = &mut self.slots[session];
        let asks = slot.engine.is_some() && slot.queued.is_none();
        if asks && slot.last_ms(&plain[1]).is_some_and(|ms| ms >= LATE_MS) {
            return;
        }
        let mut plain = plain;
        settle_ids(&mut plain);
        for (arg, plain) in args.iter_mut().zip(plain) {
            *arg = Arg::Bytes(plain);
        }
    }

    fn resolved(&self, args: &[Arg], side: usize) -> Args {
        let bytes = |arg: &Arg| match arg {
            Arg::Bytes(bytes) => bytes.clone(),
            Arg::ClientOf(session) => self.slots[*session].ids[side].to_string().into_bytes(),
        };
        args.iter().map(bytes).collect()
    }

    /// Returns whether a call can be compared in the session's state.
    fn makes_sense(&self, session: usize, args: &Args) -> bool {
        let slot = &self.slots[session];
        let name = command_name(args);
        let is_on = |how: &Vec<u8>| how.eq_ignore_ascii_case(b"on");
        let waits = |arg: &Vec<u8>| arg.eq_ignore_ascii_case(b"block");
        let blocks = name.starts_with('b') || (name.starts_with("xread") && args.iter().any(waits));
        match name.as_str() {
            _ if slot.engine.is_none() => false,
            // The reply of EXEC would not show the end of the items of a queued SUBSCRIBE, HELLO would change the
            // protocol half-way, and random members of SPOP could not be restored.
            "hello" | "spop" => slot.queued.is_none(),
            // Half of the sessions never subscribe: RESP2 permits few other commands to a subscriber.
            _ if name.ends_with("subscribe") => slot.queued.is_none() && session >= LISTENERS,
            // The end of the messages of a subscribed session would be hard to find.
            "multi" => !slot.listening,
            // There would be no reply, or only after a useless wait.
            "client|reply" => args.get(2).is_none_or(is_on),
            "wait" => args.get(1).is_none_or(|replicas| replicas == b"0"),
            // One session must never block; and the engine delivers messages to a blocked subscriber only after the
            // wait.
            _ if blocks => session != 0 && !slot.listening,
            _ => true,
        }
    }

    fn call(&mut self, session: usize, ours: &Args, theirs: &Args) -> Result<(), Different> {
        let name = command_name(ours);
        let slot = &mut self.slots[session];
        slot.wire
            .send(theirs)
            .map_err(|error| describe(ours, &error))?;
        // Before the protocol may change.
        let pushed = slot.pushed();
        let engine = slot.engine.take().expect("checked: no call waits");
        let mut waiting = call_engine(engine, ours);
        let Poll::Ready((engine, reply)) = poll_once(&mut waiting) else {
            return self.wait(session, ours, waiting);
        };
        slot.engine = Some(engine);
        if slot.listening || name.ends_with("subscribe") {
            slot.compare_frames(ours, &reply, pushed)?;
            return self.follow_up(session, &name, ours, &reply);
        }
        let one = slot.encoded(&reply);
        let other = slot
            .wire
            .receive()
            .map_err(|error| describe(ours, &error))?;
        let queued = slot.queued.clone().unwrap_or_default();
        if !same(ours, &queued, &one, &other) {
            return Err(difference(ours, &one, &other));
        }
        slot.note(&name, ours, &reply);
        self.follow_up(session, &name, ours, &reply)
    }

    /// Corrects or compares more closely after a reply with a random part.
    fn follow_up(
        &mut self,
        session: usize,
        name: &str,
        args: &Args,
        reply: &Reply,
    ) -> Result<(), Different> {
        let failed = matches!(reply, Reply::Error(_)) || self.slots[session].queued.is_some();
        match (name, args.get(1)) {
            ("spop", Some(key)) if !failed => {
                let undo = vec![b"DEL".to_vec(), key.clone()];
                let slot = &mut self.slots[session];
                slot.wire
                    .send(&undo)
                    .map_err(|error| describe(&undo, &error))?;
                slot.wire
                    .receive()
                    .map_err(|error| describe(&undo, &error))?;
                slot.engine_now(&undo);
                Ok(())
            }
            ("scan" | "hscan" | "sscan" | "zscan", Some(_)) if !failed => {
                let slot = &mut self.slots[session];
                let [ours, theirs] = slot
                    .scan_whole(args)
                    .map_err(|error| describe(args, &error))?;
                if ours == theirs {
                    Ok(())
                } else {
                    Err(format!("{}\n  {ours:?}\n  {theirs:?}", line(args)))
                }
            }
            _ => Ok(()),
        }
    }

    /// Handles a call that blocks on the engine: it must block on the server, too.
    fn wait(&mut self, session: usize, args: &Args, waiting: Waiting) -> Result<(), Different> {
        self.slots[session].waiting = Some((args.clone(), waiting));
        if ends_soon(args) {
            return self.slots[session].finish();
        }
        self.check_waiting()
    }

    /// Checks that no session that is blocked on the engine got a reply on the server.
    fn check_waiting(&mut self) -> Result<(), Different> {
        // Twice: the first may be read together with an earlier command.
        for _ in 0..2 {
            self.control
                .ask(&["PING"])
                .map_err(|error| error.to_string())?;
        }
        for slot in &mut self.slots {
            if let Some((args, _)) = &slot.waiting {
                let args = args.clone();
                let reply = slot.wire.peek().map_err(|error| describe(&args, &error))?;
                if let Some(reply) = reply {
                    return Err(difference(&args, b"(waits)", &reply));
                }
            }
        }
        Ok(())
    }

    /// Compares the replies of sessions whose wait ended on the engine.
    fn settle(&mut self) -> Result<(), Different> {
        self.slots.iter_mut().try_for_each(Slot::settle)
    }
}

impl Slot {
    fn open(handle: &Handle, socket: &Path, resp3: bool) -> io::Result<Self> {
        let mut slot = Self {
            engine: Some(handle.session()),
            waiting: None,
            wire: Wire::connect(socket)?,
            ids: [0; 2],
            queued: None,
            listening: false,
        };
        if resp3 {
            let hello = vec![b"HELLO".to_vec(), b"3".to_vec()];
            slot.engine_now(&hello);
            slot.wire.ask(&hello)?;
        }
        if let Reply::Int(id) = slot.wire.ask(&["CLIENT", "ID"])? {
            let ours = slot.engine.as_ref().map_or(0, Session::id);
            slot.ids = [i64::try_from(ours).unwrap_or(i64::MAX), id];
        }
        Ok(slot)
    }

    /// Runs a call that does not block, on the engine only.
    fn engine_now(&mut self, args: &Args) -> Reply {
        let engine = self.engine.take().expect("no call waits");
        let (engine, reply) = call_engine(engine, args)
            .now_or_never()
            .expect("it does not wait");
        self.engine = Some(engine);
        reply
    }

    /// Returns the time in the last id of a stream.
    fn last_ms(&mut self, key: &[u8]) -> Option<u64> {
        let ask = ["XINFO".into(), "STREAM".into(), key.to_vec()];
        let Reply::Map(fields) = self.engine_now(&ask.to_vec()) else {
            return None;
        };
        let is_last =
            |(name, _): &&(Reply, Reply)| *name == Reply::Bulk("last-generated-id".into());
        let (_, Reply::Bulk(id)) = fields.iter().find(is_last)? else {
            return None;
        };
        let id = std::str::from_utf8(id).ok()?;
        id.split_once('-')?.0.parse().ok()
    }

    fn encoded(&self, reply: &Reply) -> Vec<u8> {
        let protocol = self
            .engine
            .as_ref()
            .map_or(Protocol::Resp2, Session::protocol);
        let mut bytes = Vec::new();
        encode_reply(reply, protocol, &mut bytes);
        bytes
    }

    /// Tracks the session's transaction by its replies.
    fn note(&mut self, name: &str, args: &Args, reply: &Reply) {
        match (name, reply) {
            ("multi", Reply::Status(_)) => self.queued = Some(Vec::new()),
            ("exec", Reply::Array(_) | Reply::NilArray)
            | ("discard" | "reset", Reply::Status(_)) => {
                self.queued = None;
            }
            ("exec", Reply::Error(text)) if text.starts_with("EXECABORT") => self.queued = None,
            (_, Reply::Status(text)) if text == "QUEUED" => {
                self.queued.get_or_insert_default().push(args.clone());
            }
            _ => {}
        }
    }

    /// Compares a step of a subscribed session: pushed messages may come before and after the reply.
    fn compare_frames(
        &mut self,
        args: &Args,
        reply: &Reply,
        mut ours: Vec<Vec<u8>>,
    ) -> Result<(), Different> {
        ours.extend(self.pushed());
        let bytes = self.encoded(reply);
        if !bytes.is_empty() {
            ours.push(bytes);
        }
        let mark = vec![b"PING".to_vec(), MARK.as_bytes().to_vec()];
        self.wire
            .send(&mark)
            .map_err(|error| describe(args, &error))?;
        let end = self.engine_now(&mark);
        ours.extend(self.pushed());
        let end = self.encoded(&end);
        let mut theirs: Vec<Vec<u8>> = Vec::new();
        loop {
            let frame = self
                .wire
                .receive()
                .map_err(|error| describe(args, &error))?;
            if frame == end {
                break;
            }
            if theirs.len() > ours.len() {
                return Err(difference(args, &ours.concat(), &theirs.concat()));
            }
            theirs.push(frame);
        }
        self.listening = command_name(args) != "reset" || args.len() > 1;
        let exact = ours.len() == theirs.len()
            && ours
                .iter()
                .zip(&theirs)
                .all(|(one, other)| same(args, &[], one, other));
        if exact || in_any_order(args, &ours) == in_any_order(args, &theirs) {
            return Ok(());
        }
        Err(difference(args, &ours.concat(), &theirs.concat()))
    }

    fn pushed(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(push) = self.engine.as_mut().and_then(Session::try_push) {
            frames.push(self.encoded(&push));
        }
        frames
    }

    fn settle(&mut self) -> Result<(), Different> {
        let Some((_, waiting)) = &mut self.waiting else {
            return Ok(());
        };
        let Poll::Ready((engine, reply)) = poll_once(waiting) else {
            return Ok(());
        };
        self.answered(engine, &reply)
    }

    /// Waits for a call that ends by itself.
    fn finish(&mut self) -> Result<(), Different> {
        let Some((_, waiting)) = &mut self.waiting else {
            return Ok(());
        };
        let (engine, reply) = tokio::runtime::Handle::current().block_on(waiting);
        self.answered(engine, &reply)
    }

    fn answered(&mut self, engine: Session, reply: &Reply) -> Result<(), Different> {
        self.engine = Some(engine);
        let (args, _) = self.waiting.take().expect("it waited");
        let one = self.encoded(reply);
        let other = self
            .wire
            .receive()
            .map_err(|error| describe(&args, &error))?;
        if one == other {
            Ok(())
        } else {
            Err(difference(&args, &one, &other))
        }
    }

    /// Returns all items of a scan on each side, from its start to its end.
    fn scan_whole(&mut self, args: &Args) -> io::Result<[Vec<String>; 2]> {
        let cursor_at = if command_name(args) == "scan" { 1 } else { 2 };
        let width = if matches!(command_name(args).as_str(), "hscan" | "zscan") {
            2
        } else {
            1
        };
        let mut found = [Vec::new(), Vec::new()];
        for (side, found) in found.iter_mut().enumerate() {
            let mut request = args.clone();
            request[cursor_at] = b"0".to_vec();
            loop {
                let reply = if side == 0 {
                    let protocol = self
                        .engine
                        .as_ref()
                        .map_or(Protocol::Resp2, Session::protocol);
                    data::as_seen(&self.engine_now(&request), protocol)
                } else {
                    self.wire.ask(&request)?
                };
                let Reply::Array(parts) = reply else { break };
                let [Reply::Bulk(cursor), Reply::Array(items)] = &parts[..] else {
                    break;
                };
                found.extend(sorted(items.clone(), width));
                if &cursor[..] == b"0" {
                    break;
                }
                request[cursor_at] = cursor.to_vec();
            }
            // A scan may return an item twice.
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
    }
}

fn call_engine(mut session: Session, args: &Args) -> Waiting {
    let args: Vec<Bytes> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
    Box::pin(async move {
        let reply = session.call(&args).await;
        (session, reply)
    })
}

fn poll_once(waiting: &mut Waiting) -> Poll<(Session, Reply)> {
    waiting.now_or_never().map_or(Poll::Pending, Poll::Ready)
}

fn line(args: &Args) -> String {
    args.iter()
        .map(|arg| quoted(arg))
        .collect::<Vec<_>>()
        .join(" ")
}

fn difference(args: &Args, one: &[u8], other: &[u8]) -> Different {
    let (one, other) = (quoted(one), quoted(other));
    format!("{}\n  engine: {one}\n  server: {other}", line(args))
}

fn describe(args: &Args, error: &io::Error) -> Different {
    format!("{}\n  server: {error}", line(args))
}

/// Returns frames in a fixed order. Messages for several patterns come in the order of a hash table, and so do the
/// confirmations of unsubscribing from everything, which also count down.
fn in_any_order(args: &Args, frames: &[Vec<u8>]) -> Vec<String> {
    let leaves_all = args.len() == 1 && command_name(args).ends_with("unsubscribe");
    let frame = |bytes: &Vec<u8>| match decode_reply(bytes) {
        Ok(Some((Reply::Array(mut items) | Reply::Push(mut items), _))) if leaves_all => {
            items.truncate(2);
            format!("{items:?}")
        }
        _ => quoted(bytes),
    };
    let mut frames: Vec<String> = frames.iter().map(frame).collect();
    frames.sort_unstable();
    frames
}
