//! One schedule: a few nodes, their messages, and what happens to them.

use std::collections::BTreeMap;
use std::fmt;

use meshwork_model::context::MessageStatus;
use meshwork_model::envelope::SKEW;
use meshwork_model::mesh::Item;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Report;
use super::node::{At, Id, Node, Outgoing, message_of};

/// Start of the true clock, in milliseconds.
const START: u64 = 1_700_000_000_000;
/// Greatest difference of a clock, in milliseconds: twice the greatest that frames may have.
const MAX_OFFSET_MS: i64 = 600_000;
/// Time of a step, in milliseconds.
const STEP_MS: u64 = 100;
/// Step while nothing is to be done soon, in milliseconds.
const LONG_STEP_MS: u64 = 2_000;
/// Longest timeout of a message, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 240_000;
/// Time within which a message ends after its last timeout, in milliseconds: one pause of a resend, and 5 minutes.
const GRACE_MS: u64 = 60_000 + 300_000;
/// Greatest number of answers in the memory of a node: one for each message, and a few.
const MAX_WAITING: usize = 64;

/// A rule that a schedule has broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Seed of the schedule.
    pub seed: u64,
    /// The broken rule, and where.
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, rule) = (self.seed, &self.rule);
        write!(f, "{rule}: repeat with --seed {seed} --schedules 1")
    }
}

impl std::error::Error for Violation {}

/// A frame on its way.
struct Flying {
    arrives: u64,
    from: At,
    to: At,
    sent_ms: u64,
    items: Vec<Item>,
}

/// Probabilities of a schedule.
struct Weather {
    loss: f64,
    repeat: f64,
    crash: f64,
    /// Longest time of a frame on its way, in milliseconds.
    delay: u64,
}

/// A schedule.
pub(super) struct Schedule {
    seed: u64,
    random: StdRng,
    now: u64,
    nodes: Vec<Node>,
    flying: Vec<Flying>,
    weather: Weather,
    /// Cut links, each with its end.
    cuts: BTreeMap<(At, At), u64>,
    /// Nodes that are down, each with its end.
    down: BTreeMap<At, u64>,
    frames: u64,
    /// Outcomes that a sender has seen.
    seen: BTreeMap<Id, &'static str>,
}

impl Schedule {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let count = random.random_range(2..=4);
        let weather = Weather {
            loss: random.random_range(0.0..0.5),
            repeat: random.random_range(0.0..0.3),
            crash: random.random_range(0.0..0.01),
            delay: random.random_range(1..3_000),
        };
        let is_skewed = random.random_bool(0.3);
        let nodes = (0..count).map(|at| {
            let offset = match is_skewed {
                true => random.random_range(-MAX_OFFSET_MS..=MAX_OFFSET_MS),
                false => random.random_range(-2_000..=2_000),
            };
            let refuses = random.random_bool(0.1);
            Node::new((0..count).filter(move |peer| *peer != at), offset, refuses)
        });
        let nodes = nodes.collect();
        let mut schedule = Self {
            seed,
            random,
            now: START,
            nodes,
            flying: Vec::new(),
            weather,
            cuts: BTreeMap::new(),
            down: BTreeMap::new(),
            frames: 0,
            seen: BTreeMap::new(),
        };
        schedule.send_messages();
        schedule
    }

    fn send_messages(&mut self) {
        let count = self.nodes.len();
        for id in 0..self.random.random_range(1..=8) {
            let from = self.random.random_range(0..count);
            let to = (from + self.random.random_range(1..count)) % count;
            let queued_ms = self.nodes[from].clock(self.now);
            let mut ends =
                [0; 3].map(|_| queued_ms + self.random.random_range(2_000..MAX_TIMEOUT_MS));
            ends.sort_unstable();
            let cancels = self.random.random_bool(0.2);
            let cancel_at =
                cancels.then(|| queued_ms + self.random.random_range(0..MAX_TIMEOUT_MS / 2));
            let message = Outgoing {
                cancel_at,
                is_cancelled: false,
                to,
                queued_ms,
                ends,
                status: MessageStatus::Dispatched,
                stored: false,
                outcome: None,
                results: 0,
            };
            self.nodes[from].send(id, message);
        }
    }

    fn broken(&self, rule: impl Into<String>) -> Violation {
        Violation {
            seed: self.seed,
            rule: rule.into(),
        }
    }

    /// Runs until all messages have ended, and their outboxes are empty.
    pub(super) fn run(&mut self) -> Result<(), Violation> {
        let end = START + MAX_TIMEOUT_MS + GRACE_MS + 2 * MAX_OFFSET_MS.unsigned_abs();
        while self.now < end {
            self.happen();
            for at in 0..self.nodes.len() {
                if self.nodes[at].is_up {
                    self.nodes[at].tend(self.now);
                    self.transmit(at);
                }
            }
            self.arrive();
            self.check()?;
            if self.is_over() {
                return Ok(());
            }
            let is_soon = !self.flying.is_empty() || self.now < START + 30_000;
            self.now += if is_soon { STEP_MS } else { LONG_STEP_MS };
        }
        Err(self.broken("a message or an entry of an outbox never ended"))
    }

    fn is_over(&self) -> bool {
        let has_ended = |node: &Node| node.sent.values().all(|it| it.status.is_final());
        let rests = |node: &Node| node.is_up && !node.has_queued() && has_ended(node);
        self.nodes.iter().all(rests)
    }

    /// Partitions, crashes and restarts.
    fn happen(&mut self) {
        let now = self.now;
        self.cuts.retain(|_, until| *until > now);
        let nodes = self.nodes.len();
        if self.random.random_bool(0.002) {
            let (one, other) = (
                self.random.random_range(0..nodes),
                self.random.random_range(0..nodes),
            );
            let until = now + self.random.random_range(1_000..120_000);
            self.cuts.insert((one, other), until);
            self.cuts.insert((other, one), until);
        }
        for at in 0..nodes {
            if self.down.get(&at).is_some_and(|until| *until <= now) {
                self.down.remove(&at);
                self.nodes[at].is_up = true;
            }
            if self.nodes[at].is_up && self.random.random_bool(self.weather.crash / 10.0) {
                let until = now + self.random.random_range(100..60_000);
                self.stop(at, until);
            }
        }
    }

    fn stop(&mut self, at: At, until: u64) {
        self.nodes[at].crash();
        self.nodes[at].is_up = false;
        self.down.insert(at, until);
    }

    /// Sends the frames of a node. It may crash before a frame is sent, and before it is recorded.
    fn transmit(&mut self, at: At) {
        for to in self.nodes[at].peers() {
            let Some(draft) = self.nodes[at].draft(to, self.now) else {
                continue;
            };
            if self.random.random_bool(self.weather.crash) {
                return self.stop(at, self.now + 1_000);
            }
            let sent_ms = self.nodes[at].clock(self.now);
            self.frames += 1;
            let times = match () {
                () if self.random.random_bool(self.weather.loss) => 0,
                () if self.random.random_bool(self.weather.repeat) => 2,
                () => 1,
            };
            for _ in 0..times {
                let arrives = self.now + self.random.random_range(0..self.weather.delay);
                let items = draft.items.clone();
                self.flying.push(Flying {
                    arrives,
                    from: at,
                    to,
                    sent_ms,
                    items,
                });
            }
            if self.random.random_bool(self.weather.crash) {
                return self.stop(at, self.now + 1_000);
            }
            self.nodes[at].note_sent(to, &draft, self.now);
        }
    }

    fn arrive(&mut self) {
        let now = self.now;
        let (come, flying) = std::mem::take(&mut self.flying)
            .into_iter()
            .partition::<Vec<_>, _>(|frame| frame.arrives <= now);
        self.flying = flying;
        for frame in come {
            let is_cut = self.cuts.contains_key(&(frame.from, frame.to));
            let node = &self.nodes[frame.to];
            let is_refused = frame.sent_ms.abs_diff(node.clock(now)) > SKEW * 1000;
            if is_cut || !node.is_up || is_refused {
                continue;
            }
            self.nodes[frame.to].heard(frame.from);
            for item in frame.items {
                // A crash between two items: those before are done, and their answers are lost.
                if self.random.random_bool(self.weather.crash) {
                    self.stop(frame.to, now + 1_000);
                    break;
                }
                let job_ends = now + self.random.random_range(0..60_000);
                let expired = self.has_expired(frame.from, frame.to, &item);
                let job = (job_ends, expired);
                let clock = self.nodes[frame.to].clock(now);
                self.nodes[frame.to].take(frame.from, &item, clock, job);
            }
        }
    }

    /// Returns true if the first timeout of a message is over on the receiver's clock.
    fn has_expired(&self, from: At, to: At, item: &Item) -> bool {
        let Item::Message(envelope) = item else {
            return false;
        };
        let sent = self.nodes[from].sent.get(&message_of(envelope));
        sent.is_some_and(|message| self.nodes[to].clock(self.now) > message.ends[0])
    }

    /// Checks the rules that hold at each moment.
    fn check(&mut self) -> Result<(), Violation> {
        for (at, node) in self.nodes.iter().enumerate() {
            if node.waiting() > MAX_WAITING {
                return Err(self.broken(format!("node {at} holds {} answers", node.waiting())));
            }
            if node.queued() > node.sent.len() + node.received.len() {
                return Err(self.broken(format!("node {at} has {} entries", node.queued())));
            }
            for (id, message) in &node.received {
                if message.runs > 1 {
                    return Err(self.broken(format!("the jobs of message {id} were stored twice")));
                }
            }
            for (id, message) in &node.sent {
                let there = self.nodes[message.to].received.get(id);
                let is_known = message.stored || message.status == MessageStatus::Processed;
                if is_known && there.is_none() {
                    return Err(
                        self.broken(format!("message {id} counts as stored, and is not there"))
                    );
                }
                let is_cancelled =
                    there.is_some_and(|there| there.is_cancelled && !there.has_result);
                let never_ran = there.is_none();
                if message.outcome == Some("cancelled") && !is_cancelled && !never_ran {
                    return Err(self.broken(format!("message {id} counts as cancelled, and ran")));
                }
                let has_result = there.is_some_and(|there| there.has_result);
                if message.outcome == Some("processed") && !has_result {
                    return Err(self.broken(format!("message {id} has a result that nobody made")));
                }
                if message.results > 1 {
                    return Err(self.broken(format!("message {id} has two results")));
                }
                if message.outcome.is_none() && self.is_late(at, message) {
                    return Err(
                        self.broken(format!("message {id} has not ended within its timeout"))
                    );
                }
                let seen = self.seen.get(id);
                if seen.is_some() && seen != message.outcome.as_ref() {
                    return Err(self.broken(format!("the outcome of message {id} changed")));
                }
            }
        }
        for node in &self.nodes {
            let seen = node
                .sent
                .iter()
                .filter_map(|(id, it)| Some((*id, it.outcome?)));
            self.seen.extend(seen);
        }
        Ok(())
    }

    fn is_late(&self, at: At, message: &Outgoing) -> bool {
        let node = &self.nodes[at];
        node.is_up && node.clock(self.now) > message.ends[2] + GRACE_MS
    }

    pub(super) fn count(&self, report: &mut Report) {
        report.schedules += 1;
        report.frames += self.frames;
        for message in self.nodes.iter().flat_map(|node| node.sent.values()) {
            report.messages += 1;
            let outcome = message.outcome.unwrap_or("none");
            *report.outcomes.entry(outcome).or_default() += 1;
        }
    }
}
