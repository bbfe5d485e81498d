//! A node of the simulation: a store that survives crashes, and the memory of its process, which does not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use meshwork_model::context::{MessageStatus, MessageType};
use meshwork_model::mesh::{
    Answer, Link, PeerState, Received, Sent, Step, answer, next_step, resend_at,
};

/// Number of a message; the messages of all nodes have different ones.
pub(super) type Id = u64;
/// Number of a node.
pub(super) type At = usize;

/// Number of entries in a frame: few, so that frames are divided.
const FRAME: usize = 3;

/// An item of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Message(Id),
    Ask(Id),
    State(Id, PeerState),
    Result(Id),
    Ping,
}

impl Word {
    const fn asks(self) -> bool {
        matches!(self, Self::Message(_) | Self::Ask(_) | Self::Ping)
    }
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
    /// Time of its next attempt; `None`: no entry in the outbox.
    pub(super) next: Option<u64>,
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
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    /// Its clock minus the true one.
    pub(super) offset_ms: i64,
    pub(super) sent: BTreeMap<Id, Outgoing>,
    pub(super) received: BTreeMap<Id, Incoming>,
    /// States to be sent once, by receiver.
    pub(super) states: BTreeSet<(At, Id)>,
    /// Refuses all messages.
    pub(super) refuses: bool,
    pub(super) is_up: bool,
    links: BTreeMap<At, Link>,
    replies: BTreeMap<At, VecDeque<Word>>,
    pongs: BTreeSet<At>,
}

impl Node {
    pub(super) fn new(peers: impl Iterator<Item = At>, offset_ms: i64, refuses: bool) -> Self {
        Self {
            offset_ms,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            states: BTreeSet::new(),
            refuses,
            is_up: true,
            links: peers.map(|peer| (peer, Link::default())).collect(),
            replies: BTreeMap::new(),
            pongs: BTreeSet::new(),
        }
    }

    pub(super) const fn clock(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.offset_ms)
    }

    /// The process ends, and another one begins: its memory is lost.
    pub(super) fn crash(&mut self) {
        self.links
            .values_mut()
            .for_each(|link| *link = Link::default());
        self.replies.clear();
        self.pongs.clear();
    }

    pub(super) fn peers(&self) -> Vec<At> {
        self.links.keys().copied().collect()
    }

    /// Number of answers in memory.
    pub(super) fn waiting(&self) -> usize {
        self.replies.values().map(VecDeque::len).sum()
    }

    /// Returns the words for a node that may be sent now; `crash` after them forgets that they were sent.
    pub(super) fn words(&mut self, to: At, now: u64) -> Option<Vec<Word>> {
        let clock = self.clock(now);
        let link = self.links.get(&to)?;
        if !link.may_send(now) {
            return None;
        }
        let mut words: Vec<Word> = Vec::new();
        if let Some(replies) = self.replies.get_mut(&to) {
            let count = replies.len().min(FRAME);
            words.extend(replies.drain(..count));
        }
        if link.needs_ping(now) {
            words.push(Word::Ping);
        }
        if !link.is_absent() {
            let states = self.states.iter().filter(|(peer, _)| *peer == to);
            for (_, id) in states.take(FRAME) {
                words.push(self.answer_of(to, *id));
            }
            let due = self.sent.iter().filter(|(_, message)| {
                message.to == to && message.next.is_some_and(|next| next <= clock)
            });
            for (id, message) in due.take(FRAME) {
                match next_step(Some(sent_of(message))) {
                    Step::Send => words.push(Word::Message(*id)),
                    Step::Ask => words.push(Word::Ask(*id)),
                    Step::Forget => {}
                }
            }
        }
        let pong = self.pongs.remove(&to);
        (pong || !words.is_empty()).then_some(words)
    }

    /// Records that words were sent: the entries of the outbox are due again later, or done.
    pub(super) fn note_sent(&mut self, to: At, words: &[Word], now: u64) {
        let clock = self.clock(now);
        if let Some(link) = self.links.get_mut(&to) {
            link.sent(now, words.iter().any(|word| word.asks()));
        }
        for word in words {
            match word {
                Word::Message(id) | Word::Ask(id) => {
                    if let Some(message) = self.sent.get_mut(id) {
                        message.next = Some(resend_at(message.queued_ms, clock));
                    }
                }
                Word::State(id, _) | Word::Result(id) => {
                    self.states.remove(&(to, *id));
                }
                Word::Ping => {}
            }
        }
    }

    /// Removes ended messages from the outbox, and ends those whose timeouts are over.
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
            if next_step(Some(sent_of(message))) == Step::Forget {
                message.next = None;
            }
        }
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
            self.states.insert((message.from, *id));
        }
    }

    fn answer_of(&self, from: At, id: Id) -> Word {
        let received = self
            .received
            .get(&id)
            .filter(|message| message.from == from);
        let answered = answer(received.map(|message| Received {
            status: message.status,
            message_type: MessageType::Job,
            has_result: message.has_result,
            is_refused: false,
        }));
        match answered {
            Answer::State(state) => Word::State(id, state),
            Answer::Result => Word::Result(id),
        }
    }

    /// Hears of a node. `None`: it is not trusted, or its clock is too far away.
    pub(super) fn heard(&mut self, from: At) {
        if let Some(link) = self.links.get_mut(&from) {
            link.heard();
        }
    }

    /// Takes a word of another node.
    pub(super) fn take(&mut self, from: At, word: Word, job_ends: u64, expired: bool) {
        let reply = match word {
            Word::Message(id) => Some(self.take_message(from, id, job_ends, expired)),
            Word::Ask(id) => Some(self.answer_of(from, id)),
            Word::Ping => {
                self.pongs.insert(from);
                None
            }
            Word::State(id, state) => {
                self.take_state(from, id, state);
                None
            }
            Word::Result(id) => {
                self.take_result(from, id);
                None
            }
        };
        if let Some(reply) = reply {
            let replies = self.replies.entry(from).or_default();
            if !replies.contains(&reply) {
                replies.push_back(reply);
            }
        }
    }

    fn take_message(&mut self, from: At, id: Id, job_ends: u64, expired: bool) -> Word {
        if self.received.contains_key(&id) {
            return self.answer_of(from, id);
        }
        if self.refuses || expired {
            return Word::State(id, PeerState::Refused);
        }
        let message = Incoming {
            from,
            status: MessageStatus::Dispatched,
            job_ends,
            runs: 0,
            has_result: false,
        };
        self.received.insert(id, message);
        Word::State(id, PeerState::Stored)
    }

    /// Returns a message of this node, if it went to the node that speaks of it and has not ended.
    fn open(&mut self, from: At, id: Id) -> Option<&mut Outgoing> {
        let message = self.sent.get_mut(&id)?;
        (message.to == from && !message.status.is_final()).then_some(message)
    }

    fn take_state(&mut self, from: At, id: Id, state: PeerState) {
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
                message.outcome = Some("refused");
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
    }
}
