//! One stream with its subscribers: one reader for all of them, which runs while there are some. A subscriber first reads
//! stored items page by page, and then takes what the reader publishes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meshwork_broker::{Backoff, BlockingConn, Broker, Error, MAX_ITEMS};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::Pages;
use super::position::Position;
use super::source::{Item, Source, Topic};
use crate::http::guard::{Holder, Share};

/// Items that a subscriber may be behind; beyond them it is closed. They are shared with other subscribers, so that one
/// takes up 16 KB at most.
pub(crate) const MOST_BEHIND: usize = 1000;

/// A followed stream.
pub(crate) struct Feed {
    source: Box<dyn Source>,
    /// Reports failures of the store.
    broker: Broker,
    table: Mutex<Table>,
    /// The last subscriber has left.
    left: Notify,
    _place: Option<Share>,
}

#[derive(Debug, Default)]
struct Table {
    seats: HashMap<Topic, Vec<Seat>>,
    next: u64,
    /// True while a reader runs.
    is_read: bool,
    /// True after the last item.
    has_ended: bool,
}

/// Place of a subscriber.
#[derive(Debug)]
struct Seat {
    number: u64,
    queue: mpsc::Sender<Message>,
    behind: CancellationToken,
}

/// The subscriber's side of a seat.
#[derive(Debug)]
struct Taken {
    number: u64,
    queue: mpsc::Receiver<Message>,
    behind: CancellationToken,
}

#[derive(Debug, Clone)]
enum Message {
    Item(Arc<Item>),
    /// Items are missing here. True if ids begin anew: the store has lost data.
    Gap(bool),
    End,
}

/// Notice to a subscriber.
#[derive(Debug, Clone)]
pub(crate) enum Notice {
    /// The next item.
    Item(Arc<Item>),
    /// Items before the next one are no longer stored.
    Gap,
    /// There are no more items.
    End,
    /// The subscriber was too slow.
    Behind,
}

impl Feed {
    /// Returns a feed that nobody reads yet, with its place among those of its kind.
    pub(super) fn new(source: Box<dyn Source>, broker: Broker, place: Option<Share>) -> Arc<Self> {
        Arc::new(Self {
            source,
            broker,
            table: Mutex::default(),
            left: Notify::new(),
            _place: place,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true after the last item.
    pub(super) fn has_ended(&self) -> bool {
        self.table().has_ended
    }

    /// Subscribes: to the items after `from`, or to new ones.
    pub(super) async fn subscribe(
        self: Arc<Self>,
        topic: Topic,
        from: Option<Position>,
        (place, pages, holder): (Share, Pages, &Holder),
    ) -> Result<Subscription, Error> {
        let bounds = self.source.bounds().await?;
        let newest = bounds.map_or(Position::START, |(_, newest)| newest);
        let (gap, read) = match (from, bounds) {
            (None, _) => (false, newest),
            (Some(Position::START), _) => (false, Position::START),
            (Some(from), Some((oldest, newest))) if !newest.is_of_earlier_entry(from) => {
                (from.is_of_earlier_entry(oldest), from)
            }
            // The id is of another store, or the stream was deleted.
            (Some(_), _) => (true, Position::START),
        };
        let taken = self.take(&topic, newest);
        Ok(Subscription {
            feed: self,
            topic,
            taken,
            newest,
            read,
            given: read,
            pages: true,
            pending: VecDeque::new(),
            gap,
            room: pages.bytes.nothing(holder),
            limits: (pages, holder.clone()),
            _place: place,
        })
    }

    /// Takes a seat. Starts the reader after `newest` if none runs.
    fn take(self: &Arc<Self>, topic: &Topic, newest: Position) -> Taken {
        let (sender, queue) = mpsc::channel(MOST_BEHIND);
        let behind = CancellationToken::new();
        let mut table = self.table();
        let number = table.next;
        table.next += 1;
        if table.has_ended {
            // The queue is empty, so there is room.
            let _ = sender.try_send(Message::End);
        }
        let seat = Seat {
            number,
            queue: sender,
            behind: behind.clone(),
        };
        table.seats.entry(topic.clone()).or_default().push(seat);
        if !table.is_read && !table.has_ended {
            table.is_read = true;
            tokio::spawn(Arc::clone(self).read(newest));
        }
        Taken {
            number,
            queue,
            behind,
        }
    }

    fn leave(&self, topic: &Topic, number: u64) {
        let mut table = self.table();
        if let Some(seats) = table.seats.get_mut(topic) {
            seats.retain(|seat| seat.number != number);
            if seats.is_empty() {
                table.seats.remove(topic);
            }
        }
        if table.seats.is_empty() {
            self.left.notify_one();
        }
    }

    /// Returns true if nobody listens: the reader has to end.
    fn is_deserted(&self) -> bool {
        let mut table = self.table();
        let deserted = table.seats.is_empty();
        table.is_read = !deserted;
        deserted
    }

    /// Reads items for all subscribers, until there is none. An absent store is waited for.
    async fn read(self: Arc<Self>, mut at: Position) {
        let mut reader = Reader {
            conn: None,
            failed: false,
        };
        let mut backoff = Backoff::new();
        while !self.is_deserted() {
            let step = tokio::select! {
                step = reader.step(&self, &mut at) => step,
                () = self.left.notified() => continue,
            };
            match step {
                Ok(true) => backoff = Backoff::new(),
                Ok(false) => return,
                Err(error) => {
                    self.broker.outages().failed("follow", &error);
                    (reader.conn, reader.failed) = (None, true);
                    tokio::select! {
                        () = backoff.wait() => {}
                        () = self.left.notified() => {}
                    }
                }
            }
        }
    }

    /// Publishes items. A subscriber without room is closed.
    fn publish(&self, items: Vec<Item>) {
        let mut table = self.table();
        for item in items {
            let item = Arc::new(item);
            for topic in &item.topics {
                table.send(Some(topic), &Message::Item(Arc::clone(&item)));
            }
        }
    }

    fn needs_records(&self) -> bool {
        self.table().seats.keys().any(Topic::needs_records)
    }
}

impl Table {
    /// Sends to the subscribers of a topic, or to all.
    fn send(&mut self, topic: Option<&Topic>, message: &Message) {
        let keep = |seat: &Seat| match seat.queue.try_send(message.clone()) {
            Ok(()) | Err(TrySendError::Closed(_)) => true,
            Err(TrySendError::Full(_)) => {
                seat.behind.cancel();
                false
            }
        };
        let Some(topic) = topic else {
            self.seats.values_mut().for_each(|seats| seats.retain(keep));
            self.seats.retain(|_, seats| !seats.is_empty());
            return;
        };
        if let Some(seats) = self.seats.get_mut(topic) {
            seats.retain(keep);
            if seats.is_empty() {
                self.seats.remove(topic);
            }
        }
    }
}

/// The reader's side of the store.
struct Reader {
    conn: Option<BlockingConn>,
    /// True if the last call failed: the store may have other data now.
    failed: bool,
}

impl Reader {
    /// Waits for items once, and publishes them. Returns false after the last item.
    async fn step(&mut self, feed: &Feed, at: &mut Position) -> Result<bool, Error> {
        let conn = match &self.conn {
            Some(conn) => conn,
            None => self.conn.insert(feed.source.connect().await?),
        };
        if self.failed {
            check(feed, at).await?;
        }
        let records = feed.needs_records();
        let items = feed.source.wait(conn, *at, records).await?;
        feed.broker.outages().succeeded("follow");
        self.failed = false;
        let Some(last) = items.last() else {
            return rest(feed, at, records).await;
        };
        *at = last.at;
        feed.publish(items);
        Ok(true)
    }
}

/// Looks for a gap after an outage: the store may have deleted items, or have begun anew.
async fn check(feed: &Feed, at: &mut Position) -> Result<(), Error> {
    let bounds = feed.source.bounds().await?;
    let newest = bounds.map_or(Position::START, |(_, newest)| newest);
    let anew = newest.is_of_earlier_entry(*at);
    let cut = bounds.is_some_and(|(oldest, _)| at.is_of_earlier_entry(oldest));
    if anew {
        *at = Position::START;
    }
    if anew || (cut && *at != Position::START) {
        feed.table().send(None, &Message::Gap(anew));
    }
    Ok(())
}

/// Reads what is left of a stream that has ended.
async fn rest(feed: &Feed, at: &mut Position, records: bool) -> Result<bool, Error> {
    if !feed.source.has_ended().await? {
        return Ok(true);
    }
    let items = feed.source.page(*at, records).await?;
    if let Some(last) = items.last() {
        *at = last.at;
        feed.publish(items);
        return Ok(true);
    }
    let mut table = feed.table();
    table.has_ended = true;
    table.is_read = false;
    table.send(None, &Message::End);
    Ok(false)
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Feed")
    }
}

/// A subscription; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Subscription {
    feed: Arc<Feed>,
    topic: Topic,
    taken: Taken,
    /// The newest item when it began.
    newest: Position,
    /// All items up to here were read, and those of the topic are pending or given.
    read: Position,
    /// Position of the last item that was given.
    given: Position,
    /// True until stored items were read.
    pages: bool,
    pending: VecDeque<Arc<Item>>,
    gap: bool,
    /// Memory of the pending items.
    room: Share,
    limits: (Pages, Holder),
    _place: Share,
}

impl Subscription {
    /// Kind of the items.
    pub(crate) fn kind(&self) -> &'static str {
        self.feed.source.kind()
    }

    /// Position of the last item that was given.
    pub(crate) fn last(&self) -> Position {
        self.given
    }

    /// Completes when the subscriber is too slow.
    pub(crate) fn behind(&self) -> CancellationToken {
        self.taken.behind.clone()
    }

    /// Waits for the next notice. A call that is dropped loses none.
    pub(crate) async fn next(&mut self) -> Notice {
        loop {
            if self.taken.behind.is_cancelled() {
                return Notice::Behind;
            }
            if std::mem::take(&mut self.gap) {
                return Notice::Gap;
            }
            if let Some(item) = self.pending.pop_front() {
                self.given = item.at;
                if self.pending.is_empty() {
                    self.pending = VecDeque::new();
                    self.give_room_back();
                }
                return Notice::Item(item);
            }
            if self.pages {
                self.page().await;
                continue;
            }
            match self.taken.queue.recv().await {
                // A page had it.
                Some(Message::Item(item)) if item.at <= self.read => {}
                Some(Message::Item(item)) => {
                    (self.read, self.given) = (item.at, item.at);
                    return Notice::Item(item);
                }
                Some(Message::Gap(anew)) => {
                    if anew {
                        self.read = Position::START;
                    }
                    return Notice::Gap;
                }
                Some(Message::End) => return Notice::End,
                None => return Notice::Behind,
            }
        }
    }

    fn give_room_back(&mut self) {
        self.room = self.limits.0.bytes.nothing(&self.limits.1);
    }

    /// Reads a page of stored items. Items that come meanwhile wait in a new seat, so that none is missed.
    async fn page(&mut self) {
        let taken = self.feed.take(&self.topic, self.newest);
        let mut old = std::mem::replace(&mut self.taken, taken);
        self.feed.leave(&self.topic, old.number);
        // Items of the old seat are stored ones; a gap is not.
        while let Ok(message) = old.queue.try_recv() {
            if let Message::Gap(anew) = message {
                self.gap = true;
                self.read = if anew { Position::START } else { self.read };
            }
        }
        let (pages, holder) = &self.limits;
        let mut room = pages.bytes.nothing(holder);
        let items = loop {
            let items = self.read_page().await;
            let bytes = items.iter().map(|item| item.json.get().len()).sum();
            if room.covers(bytes) || room.grow(bytes) {
                break items;
            }
            // The items are read again when there is room for them.
            drop((items, room));
            room = pages.bytes.wait(holder, bytes).await;
        };
        self.room = room;
        self.pages = items.len() >= MAX_ITEMS;
        if let Some(last) = items.last() {
            self.read = last.at;
        }
        let of_topic = items
            .into_iter()
            .filter(|item| item.topics.contains(&self.topic));
        self.pending.extend(of_topic.map(Arc::new));
        if self.pending.is_empty() {
            self.give_room_back();
        }
    }

    /// Reads a page, one of few at once. An absent store is waited for.
    async fn read_page(&self) -> Vec<Item> {
        let (pages, holder) = &self.limits;
        let _read = pages.reads.wait(holder, 1).await;
        let mut backoff = Backoff::new();
        let items = loop {
            let page = self.feed.source.page(self.read, self.topic.needs_records());
            match page.await {
                Ok(items) => break items,
                Err(error) => {
                    self.feed.broker.outages().failed("follow_page", &error);
                    backoff.wait().await;
                }
            }
        };
        self.feed.broker.outages().succeeded("follow_page");
        items
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.leave(&self.topic, self.taken.number);
    }
}
