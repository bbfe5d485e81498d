//! Nonces of received envelopes, remembered until the envelopes have expired.

use std::collections::BTreeSet;
use std::collections::HashMap;

use super::{Body, Nonce, Opened, Refusal, SKEW};
use crate::actor_key::KeyBytes;

/// Greatest number of remembered nonces: about 20 MB.
pub const MAX_SEEN: usize = 100_000;

/// A signer and a nonce.
type Seen = (KeyBytes, Nonce);

/// Remembers received envelopes until they have expired. It never forgets one before: when it is full, it refuses new
/// ones.
#[derive(Debug, Clone)]
pub struct ReplayWindow {
    until: HashMap<Seen, u64>,
    by_end: BTreeSet<(u64, Seen)>,
    most: usize,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self::with_room_for(MAX_SEEN)
    }
}

impl ReplayWindow {
    /// Returns a window for at most `most` envelopes, and no more than [`MAX_SEEN`].
    #[must_use]
    pub fn with_room_for(most: usize) -> Self {
        Self {
            until: HashMap::new(),
            by_end: BTreeSet::new(),
            most: most.min(MAX_SEEN),
        }
    }

    /// Records that an envelope was received at `now` (seconds since 1970).
    ///
    /// # Errors
    /// [`Refusal::Replayed`] if it was received before, [`Refusal::Expired`] if it has expired, and
    /// [`Refusal::TooMany`] if the window is full. Nothing is recorded then.
    pub fn admit(&mut self, opened: &Opened, now: u64) -> Result<(), Refusal> {
        let Body { nonce, src, .. } = &opened.body;
        self.note(src.actor, *nonce, opened.body.expires_at, now)
    }

    /// Records a nonce of a signer that is valid until `expires_at`.
    ///
    /// # Errors
    /// As for [`Self::admit`].
    pub fn note(
        &mut self,
        signer: KeyBytes,
        nonce: Nonce,
        expires_at: u64,
        now: u64,
    ) -> Result<(), Refusal> {
        self.forget(now);
        // The signer's clock may differ by SKEW.
        let until = expires_at.saturating_add(SKEW);
        if until < now {
            return Err(Refusal::Expired { at: expires_at });
        }
        let seen = (signer, nonce);
        if self.until.contains_key(&seen) {
            return Err(Refusal::Replayed);
        }
        if self.until.len() >= self.most {
            return Err(Refusal::TooMany);
        }
        self.until.insert(seen, until);
        self.by_end.insert((until, seen));
        Ok(())
    }

    /// Returns the number of remembered envelopes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.until.len()
    }

    /// Returns true if no envelope is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    /// Forgets envelopes that have expired.
    fn forget(&mut self, now: u64) {
        while let Some(first) = self.by_end.first().filter(|first| first.0 < now).copied() {
            self.by_end.remove(&first);
            self.until.remove(&first.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    fn signer(number: u8) -> KeyBytes {
        KeyBytes([number; 32])
    }

    #[test]
    fn a_nonce_counts_once_for_each_signer() {
        let mut window = ReplayWindow::default();
        let nonce = Nonce([7; 16]);
        assert_eq!(window.note(signer(1), nonce, 100, 10), Ok(()));
        assert_eq!(
            window.note(signer(1), nonce, 100, 11),
            Err(Refusal::Replayed)
        );
        assert_eq!(window.note(signer(2), nonce, 100, 11), Ok(()));
        let other_time = window.note(signer(1), nonce, 900, 11);
        assert_eq!(other_time, Err(Refusal::Replayed));
    }

    #[test]
    fn it_remembers_until_the_envelope_has_expired() {
        let mut window = ReplayWindow::default();
        let nonce = Nonce([7; 16]);
        window.note(signer(1), nonce, 100, 10).unwrap();
        let last = 100 + SKEW;
        assert_eq!(
            window.note(signer(1), nonce, 100, last),
            Err(Refusal::Replayed)
        );
        let after = window.note(signer(1), nonce, 100, last + 1);
        assert_eq!(after, Err(Refusal::Expired { at: 100 }));
        assert!(window.is_empty());
    }

    #[test]
    fn a_full_window_forgets_nothing() {
        let mut window = ReplayWindow::with_room_for(2);
        let note = |window: &mut ReplayWindow, nonce, now| {
            window.note(signer(1), Nonce([nonce; 16]), 100, now)
        };
        assert_eq!(note(&mut window, 1, 10), Ok(()));
        assert_eq!(note(&mut window, 2, 10), Ok(()));
        assert_eq!(note(&mut window, 3, 10), Err(Refusal::TooMany));
        assert_eq!(note(&mut window, 1, 10), Err(Refusal::Replayed));
        assert_eq!(window.len(), 2);
        let later = window.note(signer(1), Nonce([3; 16]), 900, 101 + SKEW);
        assert_eq!((later, window.len()), (Ok(()), 1));
    }

    proptest! {
        #[test]
        fn nothing_valid_is_taken_twice(
            steps in proptest::collection::vec((0..6_u8, 0..2_u8, 0..2000_u64, 0..900_u64), 1..60),
        ) {
            let (mut window, mut taken, mut now) = (ReplayWindow::with_room_for(4), HashSet::new(), 0);
            let signers = [signer(1), signer(2)];
            for (nonce, by, life, passes) in steps {
                now += passes;
                // Each envelope has one expiry, because the expiry is signed.
                let expires_at = life;
                let seen = (by, nonce, expires_at);
                let signer = signers[usize::from(by)];
                let mut bytes = [nonce; 16];
                bytes[..8].copy_from_slice(&life.to_be_bytes());
                if window.note(signer, Nonce(bytes), expires_at, now).is_ok() {
                    prop_assert!(taken.insert(seen), "{seen:?} taken twice");
                }
                prop_assert!(window.len() <= 4);
            }
        }
    }
}
