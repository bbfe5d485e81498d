//! A node of the simulation: a store that survives crashes, and the memory of its process, which does not. Frames are
//! drafted, answered and resent by the functions of `meshwork_model::mesh` that a node runs.

use std::collections::BTreeMap;

use meshwork_model::context::{MessageStatus, MessageType, Reason};
use meshwork_model::envelope::Nonce;
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::{
    Answer, CANCELLED_FOR_MS, Draft, Entry, Item, Line, PeerState, Received, Sent, SentFrom, Step,
    answer, next_step,
};

/// Number of a message; the messages of all nodes have different ones.
pub(super) type Id = u64;
/// Number of a node.
pub(super) type At = usize;

/// Entries of an outbox that are read at once: few, so that frames are divided.
const PAGE: usize = 3;

/// Time between two sweeps of outboxes that are not sent, in milliseconds.
const SWEEP_MS: u64 = 60_000;

/// Context of all messages.
fn context() -> ContextId {
    ContextId::new(7).unwrap_or_else(|| unreachable!("7 is a context"))
}

/// The message of this number at its sender.
fn sent_from(id: Id) -> SentFrom {
    SentFrom {
        context: context(),
        message: MessageKey::new(1, u32::try_from(id).unwrap_or(u32::MAX)),
        nonce: Nonce([0; 16]),
    }
}

fn id_of(of: &SentFrom) -> Id {
    of.message.id.into()
}

/// An envelope, of which only the number of its message counts.
pub(super) fn envelope(id: Id) -> Vec<u8> {
    id.to_be_bytes().to_vec()
}

/// Returns the message of an envelope.
pub(super) fn message_of(envelope: &[u8]) -> Id {
    envelope
        .iter()
        .fold(0, |id, byte| id << 8 | Id::from(*byte))
}

/// A message at its sender.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) to: At,
    pub(super) queued_ms: u64,
    /// Ends of its timeouts: stored, acknowledged, processed.
    pub(super) ends: [u64; 3],
    pub(super) status: MessageStatus,
    pub(super) stored: bool,
    /// Time at which its sender cancels it.
    pub(super) cancel_at: Option<u64>,
    pub(super) is_cancelled: bool,
    pub(super) outcome: Option<&'static str>,
    pub(super) results: u32,
}

/// A message at its receiver.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    pub(super) from: At,
    pub(super) status: MessageStatus,
    /// Time at which its job ends.
    pub(super) job_ends: u64,
    /// Number of times that its jobs were stored.
    pub(super) runs: u32,
    pub(super) has_result: bool,
    pub(super) is_cancelled: bool,
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    /// Its clock minus the true one.
    pub(super) offset_ms: i64,
    pub(super) sent: BTreeMap<Id, Outgoing>,
    pub(super) received: BTreeMap<Id, Incoming>,
    /// Messages that were cancelled before they arrived, each with the time until which it is remembered.
    pub(super) cancelled: BTreeMap<Id, u64>,
    /// Outboxes by receiver: entries, each with the time of its next attempt.
    pub(super) outboxes: BTreeMap<At, BTreeMap<Entry, u64>>,
    /// Refuses all messages.
    pub(super) refuses: bool,
    pub(super) is_up: bool,
    lines: BTreeMap<At, Line>,
    swept: u64,
}

impl Node {
    pub(super) fn new(peers: impl Iterator<Item = At>, offset_ms: i64, refuses: bool) -> Self {
        Self {
            offset_ms,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            cancelled: BTreeMap::new(),
            outboxes: BTreeMap::new(),
            refuses,
            is_up: true,
            lines: peers.map(|peer| (peer, Line::default())).collect(),
            swept: 0,
        }
    }

    pub(super) const fn clock(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.offset_ms)
    }

    /// The process ends, and another one begins: its memory is lost.
    pub(super) fn crash(&mut self) {
        let lines = self.lines.values_mut();
        lines.for_each(|line| *line = Line::default());
    }

    pub(super) fn peers(&self) -> Vec<At> {
        self.lines.keys().copied().collect()
    }

    /// Number of answers in memory.
    pub(super) fn waiting(&self) -> usize {
        self.lines.values().map(Line::waiting).sum()
    }

    /// Number of entries of all outboxes.
    pub(super) fn queued(&self) -> usize {
        self.outboxes.values().map(BTreeMap::len).sum()
    }

    /// Returns true if a message is in an outbox. States for a node that never comes back stay as long as their records.
    pub(super) fn has_queued(&self) -> bool {
        let is_message = |entry: &Entry| matches!(entry, Entry::Message { .. });
        self.outboxes
            .values()
            .any(|outbox| outbox.keys().any(is_message))
    }

    /// Removes ended messages from the outboxes of absent nodes.
    fn sweep(&mut self, now: u64) {
        if now < self.swept + SWEEP_MS {
            return;
        }
        self.swept = now;
        let absent = self.lines.iter().filter(|(_, line)| line.is_absent());
        for to in absent.map(|(to, _)| to) {
            let Some(outbox) = self.outboxes.get_mut(to) else {
                continue;
            };
            outbox.retain(|entry, _| match entry {
                Entry::Message { of, .. } => {
                    let sent = self.sent.get(&id_of(of)).map(sent_of);
                    next_step(sent) != Step::Forget
                }
                Entry::State { .. } => true,
            });
        }
    }

    /// Adds an entry to an outbox; it is due at once.
    fn queue(&mut self, to: At, entry: Entry, clock: u64) {
        self.outboxes.entry(to).or_default().insert(entry, clock);
        if let Some(line) = self.lines.get_mut(&to) {
            line.wake();
        }
    }

    /// Stores a message to be sent.
    pub(super) fn send(&mut self, id: Id, message: Outgoing) {
        let (to, queued_ms) = (message.to, message.queued_ms);
        self.sent.insert(id, message);
        let of = sent_from(id);
        self.queue(to, Entry::Message { of, queued_ms }, queued_ms);
    }

    /// Returns the frame for a node that may be sent now. A crash after it forgets that it was sent.
    pub(super) fn draft(&mut self, to: At, now: u64) -> Option<Draft<Entry>> {
        let clock = self.clock(now);
        let mut draft = self.lines.get_mut(&to)?.draft(now, || now)?;
        if draft.reads_outbox {
            let outbox = self.outboxes.entry(to).or_default();
            let due = outbox.iter().filter(|(_, next)| **next <= clock);
            let due: Vec<_> = due.map(|(entry, _)| *entry).take(PAGE).collect();
            let mut more = due.len() == PAGE;
            for entry in due {
                let item = match entry {
                    Entry::Message { of, .. } => self.next_item(id_of(&of)),
                    Entry::State { of, .. } => Some(self.answer_of(to, id_of(&of))),
                };
                if !draft.add(entry, &entry, item, clock) {
                    more = true;
                    break;
                }
            }
            if let (Some(line), false) = (self.lines.get_mut(&to), more) {
                line.looked(now);
            }
        }
        if draft.is_frame() {
            return Some(draft);
        }
        self.settle(to, &draft.marks);
        None
    }

    fn next_item(&self, id: Id) -> Option<Item> {
        let of = sent_from(id);
        match next_step(self.sent.get(&id).map(sent_of)) {
            Step::Send => Some(Item::Message(envelope(id))),
            Step::Ask => Some(Item::Ask { of, at: context() }),
            Step::Cancel => Some(Item::Cancel { of, at: context() }),
            Step::Forget => None,
        }
    }

    /// Entries of a frame are due again later, or done.
    fn settle(&mut self, to: At, marks: &[(Entry, Option<u64>)]) {
        let outbox = self.outboxes.entry(to).or_default();
        for (entry, next) in marks {
            match next {
                Some(next) => drop(outbox.insert(*entry, *next)),
                None => drop(outbox.remove(entry)),
            }
        }
    }

    /// Records that a frame was sent.
    pub(super) fn note_sent(&mut self, to: At, draft: &Draft<Entry>, now: u64) {
        if let Some(line) = self.lines.get_mut(&to) {
            line.sent(now, draft.asks());
        }
        self.settle(to, &draft.marks);
    }

    /// Ends messages whose timeouts are over, and tells senders of the progress of their messages.
    pub(super) fn tend(&mut self, now: u64) {
        let clock = self.clock(now);
        for message in self.sent.values_mut() {
            if !message.status.is_final() {
                let [stored, acknowledged, processed] = message.ends;
                let waits = message.status == MessageStatus::Dispatched;
                let end = match () {
                    () if waits && !message.stored && clock > stored => Some("not_delivered"),
                    () if waits && clock > acknowledged => Some("not_acknowledged"),
                    () if clock > processed => Some("result_unknown"),
                    () => None,
                };
                if let Some(end) = end {
                    message.status = MessageStatus::Error;
                    message.outcome = Some(end);
                }
            }
        }
        self.request_cancels(clock);
        self.cancelled.retain(|_, until| *until > clock);
        let mut changed = Vec::new();
        for (id, message) in &mut self.received {
            let next = match message.status {
                MessageStatus::Dispatched => MessageStatus::Acknowledged,
                MessageStatus::Acknowledged if message.job_ends <= now => MessageStatus::Processed,
                _ => continue,
            };
            match next {
                MessageStatus::Acknowledged => message.runs += 1,
                _ => message.has_result = true,
            }
            message.status = next;
            changed.push((message.from, sent_from(*id)));
        }
        for (from, of) in changed {
            let at = context();
            self.queue(from, Entry::State { of, at }, clock);
        }
        self.sweep(now);
    }

    /// Cancels messages whose senders change their minds.
    fn request_cancels(&mut self, clock: u64) {
        let mut due = Vec::new();
        for (id, message) in &mut self.sent {
            let is_due = message.cancel_at.is_some_and(|at| at <= clock);
            if is_due && !message.is_cancelled && !message.status.is_final() {
                message.is_cancelled = true;
                due.push((*id, message.to, message.queued_ms));
            }
        }
        for (id, to, queued_ms) in due {
            let of = sent_from(id);
            self.queue(to, Entry::Message { of, queued_ms }, clock);
        }
    }

    fn take_cancel(&mut self, from: At, id: Id, clock: u64) -> Item {
        match self.received.get_mut(&id) {
            Some(message) if !message.status.is_final() => {
                (message.status, message.is_cancelled) = (MessageStatus::Error, true);
            }
            Some(_) => {}
            None => drop(self.cancelled.insert(id, clock + CANCELLED_FOR_MS)),
        }
        self.answer_of(from, id)
    }

    fn answer_of(&self, from: At, id: Id) -> Item {
        if self.cancelled.contains_key(&id) {
            return cancelled(id);
        }
        let received = self
            .received
            .get(&id)
            .filter(|message| message.from == from);
        if received.is_some_and(|message| message.is_cancelled) {
            return cancelled(id);
        }
        let answered = answer(received.map(|message| Received {
            status: message.status,
            message_type: MessageType::Job,
            has_result: message.has_result,
            is_refused: false,
        }));
        match answered {
            Answer::State(state) => state_of(id, state),
            Answer::Result => Item::Result {
                re: sent_from(id),
                from: sent_from(id),
                json: Vec::new(),
            },
        }
    }

    /// Hears of a node. `None`: it is not trusted, or its clock is too far away.
    pub(super) fn heard(&mut self, from: At) {
        if let Some(line) = self.lines.get_mut(&from) {
            line.heard();
        }
    }

    /// Takes an item of another node.
    pub(super) fn take(&mut self, from: At, item: &Item, clock: u64, job: (u64, bool)) {
        let (job_ends, expired) = job;
        let reply = match item {
            Item::Message(envelope) => {
                let id = message_of(envelope);
                Some(self.take_message(from, id, job_ends, expired))
            }
            Item::Ask { of, .. } => Some(self.answer_of(from, id_of(of))),
            Item::Cancel { of, .. } => Some(self.take_cancel(from, id_of(of), clock)),
            Item::Ping { id } => Some(Item::Pong {
                id: *id,
                version: String::new(),
            }),
            Item::Pong { .. } => None,
            Item::State {
                of, state, reason, ..
            } => {
                self.take_state(from, id_of(of), *state, reason.as_ref());
                None
            }
            Item::Result { re, .. } => {
                self.take_result(from, id_of(re));
                None
            }
        };
        if let Some(reply) = reply {
            self.lines.entry(from).or_default().reply(reply);
        }
    }

    fn take_message(&mut self, from: At, id: Id, job_ends: u64, expired: bool) -> Item {
        if self.received.contains_key(&id) || self.cancelled.contains_key(&id) {
            return self.answer_of(from, id);
        }
        if self.refuses || expired {
            return state_of(id, PeerState::Refused);
        }
        let message = Incoming {
            from,
            status: MessageStatus::Dispatched,
            job_ends,
            runs: 0,
            has_result: false,
            is_cancelled: false,
        };
        self.received.insert(id, message);
        state_of(id, PeerState::Stored)
    }

    /// Returns a message of this node, if it went to the node that speaks of it and has not ended.
    fn open(&mut self, from: At, id: Id) -> Option<&mut Outgoing> {
        let message = self.sent.get_mut(&id)?;
        (message.to == from && !message.status.is_final()).then_some(message)
    }

    fn take_state(&mut self, from: At, id: Id, state: PeerState, reason: Option<&Reason>) {
        let Some(message) = self.open(from, id) else {
            return;
        };
        match state {
            PeerState::Stored => message.stored = true,
            PeerState::Acknowledged => {
                (message.stored, message.status) = (true, MessageStatus::Acknowledged);
            }
            PeerState::Failed | PeerState::Refused => {
                message.status = MessageStatus::Error;
                let is_cancelled = reason.is_some_and(|it| it.code == Reason::CANCELLED);
                message.outcome = Some(if is_cancelled { "cancelled" } else { "refused" });
            }
            PeerState::Unknown => message.stored = false,
            PeerState::Processed | PeerState::Busy => {}
        }
    }

    fn take_result(&mut self, from: At, id: Id) {
        if let Some(message) = self.open(from, id) {
            message.status = MessageStatus::Processed;
            message.outcome = Some("processed");
            message.results += 1;
        }
    }
}

fn sent_of(message: &Outgoing) -> Sent {
    Sent {
        status: message.status,
        is_stored: message.stored,
        is_cancelled: message.is_cancelled,
    }
}

fn cancelled(id: Id) -> Item {
    Item::State {
        of: sent_from(id),
        at: context(),
        state: PeerState::Failed,
        reason: Some(Reason::new(Reason::CANCELLED, "")),
    }
}

fn state_of(id: Id, state: PeerState) -> Item {
    Item::State {
        of: sent_from(id),
        at: context(),
        state,
        reason: None,
    }
}
