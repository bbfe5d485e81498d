//! The exchange with one node, in the memory of a process: the pace of frames, answers that wait for a frame, and the
//! next frame. All that matters is in the store: what is lost with the process is requested again.

use std::collections::VecDeque;

use super::{Entry, Frame, Item, Link, MAX_FRAME, MAX_ITEMS, resend_at};

/// Time until an outbox without due entries is read again, in milliseconds. New entries of this process are noticed at
/// once.
pub const LOOK_AGAIN_MS: u64 = 1_000;
/// Greatest number of answers that wait for a frame. More are dropped: their askers ask again.
const MAX_REPLIES: usize = 1_000;

/// The exchange with one node. Times are in milliseconds, of a clock that never goes back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    link: Link,
    replies: VecDeque<Item>,
    /// The last ping: its number, and its time.
    pinged: Option<(u64, u64)>,
    /// True if somebody asks for a ping, also if the node is absent.
    ping_is_asked: bool,
    /// Time of the next look into its outbox.
    look_at: u64,
}

impl Line {
    /// Adds an answer for the next frame.
    pub fn reply(&mut self, item: Item) {
        if self.replies.len() < MAX_REPLIES && !self.replies.contains(&item) {
            self.replies.push_back(item);
        }
    }

    /// Pings the node with the next frame, or does not any more.
    pub const fn ask_ping(&mut self, is_asked: bool) {
        self.ping_is_asked = is_asked;
    }

    /// Records the answer to the last ping. Returns the round trip in milliseconds; `None`: that ping has an answer, or is
    /// another one.
    pub fn ponged(&mut self, id: u64, now_ms: u64) -> Option<u64> {
        let (_, pinged) = self.pinged.take_if(|(pinged, _)| *pinged == id)?;
        Some(now_ms.saturating_sub(pinged))
    }

    /// Returns the number of answers that wait for a frame.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.replies.len()
    }

    /// Looks into the outbox at the next draft.
    pub const fn wake(&mut self) {
        self.look_at = 0;
    }

    /// Forgets what was sent: it is lost. The node is pinged, so that it knows that this one is back.
    pub fn reset(&mut self) {
        (self.link, self.look_at) = (Link::default(), 0);
    }

    /// Records a frame of the node. Returns true if the node was absent.
    pub fn heard(&mut self) -> bool {
        let was_absent = self.link.heard();
        if was_absent {
            self.look_at = 0;
        }
        was_absent
    }

    /// Returns true if the node does not answer.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        self.link.is_absent()
    }

    /// Begins the next frame. `None`: none may be sent now. `id` gives the number of a ping.
    pub fn draft<M>(&mut self, now_ms: u64, id: impl FnOnce() -> u64) -> Option<Draft<M>> {
        if !self.link.may_send(now_ms) {
            return None;
        }
        let mut draft = Draft::new();
        while let Some(item) = self.replies.pop_front() {
            if let Err(item) = draft.fit(item) {
                self.replies.push_front(item);
                break;
            }
        }
        if self.ping_is_asked || self.link.needs_ping(now_ms) {
            let id = id();
            if draft.fit(Item::Ping { id }).is_ok() {
                (self.pinged, self.ping_is_asked) = (Some((id, now_ms)), false);
            }
        }
        let has_room = draft.items.is_empty() || draft.used < MAX_FRAME;
        draft.reads_outbox = !self.link.is_absent() && now_ms >= self.look_at && has_room;
        Some(draft)
    }

    /// Records that nothing more in the outbox is due.
    pub const fn looked(&mut self, now_ms: u64) {
        self.look_at = now_ms.saturating_add(LOOK_AGAIN_MS);
    }

    /// Records that a frame was sent; `asks`: it needs an answer.
    pub fn sent(&mut self, now_ms: u64, asks: bool) {
        self.link.sent(now_ms, asks);
    }
}

/// A frame that is being filled. `M` names an entry of the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft<M> {
    /// Its items.
    pub items: Vec<Item>,
    /// Handled entries of the outbox, each with the time of its next attempt, if there is one.
    pub marks: Vec<(M, Option<u64>)>,
    /// True if due entries of the outbox are to be added.
    pub reads_outbox: bool,
    used: usize,
}

impl<M> Draft<M> {
    const fn new() -> Self {
        Self {
            items: Vec::new(),
            marks: Vec::new(),
            reads_outbox: false,
            used: Frame::AROUND,
        }
    }

    /// Adds an item, if it fits. A large one has a frame of its own.
    fn fit(&mut self, item: Item) -> Result<(), Item> {
        let used = self.used + item.length();
        let fits = used <= MAX_FRAME && self.items.len() < MAX_ITEMS;
        match fits || self.items.is_empty() {
            true => {
                self.used = used;
                self.items.push(item);
                Ok(())
            }
            false => Err(item),
        }
    }

    /// Adds an entry that is due at `now_ms` (milliseconds since 1970) with its item; `None`: it needs nothing any more.
    /// Returns false if the item does not fit: the entry stays due.
    pub fn add(&mut self, mark: M, entry: &Entry, item: Option<Item>, now_ms: u64) -> bool {
        let next = match entry {
            Entry::Message { queued_ms, .. } if item.is_some() => {
                Some(resend_at(*queued_ms, now_ms))
            }
            Entry::Message { .. } | Entry::State { .. } => None,
        };
        let fits = item.is_none_or(|item| self.fit(item).is_ok());
        if fits {
            self.marks.push((mark, next));
        }
        fits
    }

    /// Returns true if there is something to send.
    #[must_use]
    pub const fn is_frame(&self) -> bool {
        !self.items.is_empty()
    }

    /// Returns true if the frame needs an answer.
    #[must_use]
    pub fn asks(&self) -> bool {
        let asks = |item: &Item| {
            matches!(
                item,
                Item::Message(_) | Item::Ask { .. } | Item::Cancel { .. } | Item::Ping { .. }
            )
        };
        self.items.iter().any(asks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let mut line = Line::default();
        line.sent(0, false);
        line
    }

    fn draft<M>(line: &mut Line, now_ms: u64) -> Option<Draft<M>> {
        line.draft(now_ms, || 5)
    }

    fn pong() -> Item {
        Item::Pong {
            id: 9,
            version: "1.2.3".to_owned(),
        }
    }

    #[test]
    fn a_first_frame_has_a_ping_and_its_answer_gives_the_round_trip_once() {
        let mut line = Line::default();
        let first = draft::<()>(&mut line, 0).unwrap();
        assert!(first.items == [Item::Ping { id: 5 }] && first.asks() && first.reads_outbox);
        assert_eq!(line.ponged(6, 30), None, "another ping");
        assert_eq!(line.ponged(5, 30), Some(30));
        assert_eq!(line.ponged(5, 30), None, "once");
        let mut line = self::line();
        assert!(draft::<()>(&mut line, 50).is_none(), "too early");
        assert!(!draft::<()>(&mut line, 100).unwrap().is_frame());
        line.reply(pong());
        let answer = draft::<()>(&mut line, 100).unwrap();
        assert!(answer.is_frame() && answer.items == [pong()] && !answer.asks());
        assert!(!draft::<()>(&mut line, 100).unwrap().is_frame(), "once");
    }

    #[test]
    fn a_ping_on_demand_reaches_an_absent_node_and_waits_until_it_fits() {
        let mut line = line();
        for now in [2_000, 4_000, 6_000, 8_000] {
            line.sent(now, true);
        }
        assert!(line.is_absent());
        assert!(!draft::<()>(&mut line, 9_000).unwrap().is_frame());
        line.ask_ping(true);
        line.reply(Item::Message(vec![0; MAX_FRAME]));
        let large = draft::<()>(&mut line, 9_000).unwrap();
        assert!(matches!(large.items[..], [Item::Message(_)]));
        let pinged = draft::<()>(&mut line, 9_000).unwrap();
        assert_eq!(pinged.items, [Item::Ping { id: 5 }]);
        assert!(!draft::<()>(&mut line, 9_000).unwrap().is_frame(), "once");
        line.ask_ping(true);
        line.ask_ping(false);
        assert!(!draft::<()>(&mut line, 9_000).unwrap().is_frame());
    }

    #[test]
    fn what_does_not_fit_waits_for_the_next_frame() {
        let mut line = line();
        for byte in 0..3 {
            line.reply(Item::Message(vec![byte; MAX_FRAME / 2]));
            line.reply(Item::Message(vec![byte; MAX_FRAME / 2]));
        }
        assert_eq!(line.waiting(), 3, "the same answer waits once");
        for left in [2, 1, 0] {
            let next = draft::<()>(&mut line, 100).unwrap();
            assert_eq!((next.items.len(), line.waiting()), (1, left));
        }
        let mut draft = draft::<u8>(&mut line, 100).unwrap();
        let entry = "state/7/12:101/0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f/8";
        let entry = entry.parse().unwrap();
        let large = || Some(Item::Message(vec![0; MAX_FRAME]));
        assert!(draft.add(1, &entry, large(), 5), "a large one alone");
        assert!(!draft.add(2, &entry, large(), 5));
        assert!(draft.add(3, &entry, None, 5));
        assert_eq!(draft.marks, [(1, None), (3, None)]);
    }

    #[test]
    fn the_outbox_of_an_absent_node_is_not_read() {
        let mut line = line();
        line.looked(100);
        assert!(!draft::<()>(&mut line, 200).unwrap().reads_outbox);
        assert!(draft::<()>(&mut line, 1_100).unwrap().reads_outbox);
        for now in [2_000, 4_000, 6_000, 8_000] {
            line.sent(now, true);
        }
        line.wake();
        assert!(!draft::<()>(&mut line, 9_000).unwrap().reads_outbox);
        assert!(line.heard() && draft::<()>(&mut line, 9_000).unwrap().reads_outbox);
    }
}
