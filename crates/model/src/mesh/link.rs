//! The link to a node, as its sender sees it: the pace of frames, and the absence of the other side.

/// Shortest time between two frames to a node, in milliseconds: at most 10 frames a second.
pub const FRAME_GAP_MS: u64 = 100;
/// Number of frames without an answer after which a node counts as absent.
pub const ABSENT_AFTER: u32 = 3;
/// Time for which an answer is awaited, in milliseconds: that until the first repetition of a message.
const ANSWER_MS: u64 = super::FIRST_RESEND_MS;
/// Time between two pings to an absent node, in milliseconds.
pub const PING_MS: u64 = 60_000;

/// The link to a node. Times are in milliseconds, of a clock that never goes back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Time of the last frame.
    sent_ms: Option<u64>,
    /// Time of the oldest frame that waits for an answer.
    waits_ms: Option<u64>,
    /// Number of periods without an answer.
    unanswered: u32,
}

impl Link {
    /// Returns true if the node does not answer. Nothing but pings is sent to it.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        self.unanswered >= ABSENT_AFTER
    }

    /// Returns true if a frame may be sent now.
    #[must_use]
    pub fn may_send(&self, now_ms: u64) -> bool {
        self.sent_ms
            .is_none_or(|sent| now_ms.saturating_sub(sent) >= FRAME_GAP_MS)
    }

    /// Returns true if the node is to be pinged now: at the beginning, so that it knows that this node is back, and while it
    /// is absent.
    #[must_use]
    pub fn needs_ping(&self, now_ms: u64) -> bool {
        match self.sent_ms {
            None => true,
            Some(sent) => self.is_absent() && now_ms.saturating_sub(sent) >= PING_MS,
        }
    }

    /// Records that a frame was sent; `asks`: it needs an answer.
    pub fn sent(&mut self, now_ms: u64, asks: bool) {
        self.sent_ms = Some(now_ms);
        if !asks {
            return;
        }
        match self.waits_ms {
            None => self.waits_ms = Some(now_ms),
            Some(since) if now_ms.saturating_sub(since) >= ANSWER_MS => {
                self.waits_ms = Some(now_ms);
                self.unanswered = self.unanswered.saturating_add(1);
            }
            Some(_) => {}
        }
    }

    /// Records a frame of the node. Returns true if the node was absent.
    pub fn heard(&mut self) -> bool {
        let was_absent = self.is_absent();
        (self.waits_ms, self.unanswered) = (None, 0);
        was_absent
    }
}

/// Greatest number of frames that a node may send in a second: ten times as many as a sender of this version sends.
pub const MAX_FRAMES_A_SECOND: u32 = 100;
/// Period of the count of frames, in milliseconds.
const PERIOD_MS: u64 = 1_000;

/// Count of the verified frames of a node, in the current second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    began_ms: u64,
    count: u32,
}

impl Rate {
    /// Returns true if no more frames are accepted in this second.
    #[must_use]
    pub const fn is_over(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.began_ms) < PERIOD_MS && self.count >= MAX_FRAMES_A_SECOND
    }

    /// Counts a frame.
    pub const fn count(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.began_ms) >= PERIOD_MS {
            (self.began_ms, self.count) = (now_ms, 0);
        }
        self.count = self.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_after_100_frames_until_the_next_second() {
        let mut rate = Rate::default();
        for at in 0..u64::from(MAX_FRAMES_A_SECOND) {
            assert!(!rate.is_over(at), "{at}");
            rate.count(at);
        }
        assert!(rate.is_over(999) && !rate.is_over(1_000));
        rate.count(1_000);
        assert!(!rate.is_over(1_001));
    }

    #[test]
    fn a_node_is_absent_after_three_frames_without_an_answer() {
        let mut link = Link::default();
        assert!(link.may_send(0) && link.needs_ping(0));
        for now in [0, 2_000, 4_000] {
            link.sent(now, true);
            assert!(!link.is_absent() && !link.needs_ping(now), "{now}");
        }
        assert!(!link.may_send(4_099) && link.may_send(4_100));
        link.sent(6_000, true);
        assert!(link.is_absent() && !link.needs_ping(6_001));
        assert!(link.needs_ping(66_000));
        assert!(link.heard() && !link.is_absent());
        assert!(!link.heard());
    }

    #[test]
    fn frames_in_a_row_and_answers_are_no_absence() {
        let mut link = Link::default();
        for at in 0..20 {
            link.sent(at * FRAME_GAP_MS, true);
        }
        assert!(!link.is_absent());
        for at in 20..200 {
            link.sent(at * FRAME_GAP_MS, false);
        }
        assert!(!link.is_absent(), "answers need no answer");
    }
}
