//! What is told of a move: what went, and what stayed where it was, with the reason.

use meshwork_model::bananas::Place;

/// So many jobs that stayed are told one by one; of the rest only the number.
pub const MOST_TOLD: usize = 10_000;

/// A job that stayed where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its id, as text.
    pub id: String,
    /// The key in which it stands.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// How far a move is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Jobs looked at, each as often as that was needed.
    pub looked: usize,
    /// Those that went to lists, and wait for a worker.
    pub waiting: usize,
    /// Those that wait for their time.
    pub scheduled: usize,
    /// Dead letters.
    pub dead: usize,
    /// Entries that were one too many, of jobs that had gone already: they are gone.
    pub twice: usize,
    /// Those that stayed, [`MOST_TOLD`] at most.
    pub left: Vec<Left>,
    /// How many more stayed.
    pub untold: usize,
}

impl Moved {
    /// Jobs that went.
    #[must_use]
    pub fn count(&self) -> usize {
        self.waiting + self.scheduled + self.dead
    }

    /// Jobs that stayed.
    #[must_use]
    pub fn stayed(&self) -> usize {
        self.left.len() + self.untold
    }

    /// One more went to such a place.
    pub(super) fn went(&mut self, place: &Place) {
        match place {
            Place::List(_) => self.waiting += 1,
            Place::Later => self.scheduled += 1,
            Place::Dead => self.dead += 1,
        }
    }

    /// These stayed.
    pub(super) fn leave(&mut self, stayed: Stayed) {
        let room = MOST_TOLD - self.left.len();
        let over = stayed.told.len().saturating_sub(room);
        self.left.extend(stayed.told.into_iter().take(room));
        self.untold += stayed.untold + over;
    }
}

/// Those that one look at a place left there.
#[derive(Debug, Default)]
pub(super) struct Stayed {
    told: Vec<Left>,
    untold: usize,
}

impl Stayed {
    pub(super) fn add(&mut self, id: &[u8], place: &str, reason: impl Into<String>) {
        if self.told.len() == MOST_TOLD {
            self.untold += 1;
            return;
        }
        self.told.push(Left {
            id: String::from_utf8_lossy(id).into_owned(),
            place: place.to_owned(),
            reason: reason.into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stayed_is_told_up_to_a_bound() {
        let mut moved = Moved::default();
        for many in [MOST_TOLD + 2, 3] {
            let mut stayed = Stayed::default();
            for _ in 0..many {
                stayed.add(b"j", "list", "why");
            }
            moved.leave(stayed);
        }
        assert_eq!((moved.left.len(), moved.untold), (MOST_TOLD, 5));
        assert_eq!(moved.stayed(), MOST_TOLD + 5);
    }
}
