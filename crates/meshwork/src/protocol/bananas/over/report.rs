//! Report of a move: the moved jobs, and the remaining ones with the reason.

use meshwork_model::bananas::Place;

/// Most remaining jobs listed in a report; of the rest only the number is reported.
pub const MOST_TOLD: usize = 10_000;

/// A job that stayed where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its id, as text.
    pub id: String,
    /// The key of its list.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// Progress of a move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Checked jobs; a job checked twice counts twice.
    pub looked: usize,
    /// Moved jobs that wait for a worker.
    pub waiting: usize,
    /// Moved delayed jobs.
    pub scheduled: usize,
    /// Moved dead letters.
    pub dead: usize,
    /// Removed duplicate entries of jobs that had been moved before.
    pub twice: usize,
    /// Remaining jobs, at most [`MOST_TOLD`].
    pub left: Vec<Left>,
    /// Number of further remaining jobs.
    pub untold: usize,
}

impl Moved {
    /// Number of moved jobs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.waiting + self.scheduled + self.dead
    }

    /// Number of remaining jobs.
    #[must_use]
    pub fn stayed(&self) -> usize {
        self.left.len() + self.untold
    }

    /// Counts a moved job.
    pub(super) fn went(&mut self, place: &Place) {
        match place {
            Place::List(_) => self.waiting += 1,
            Place::Later => self.scheduled += 1,
            Place::Dead => self.dead += 1,
        }
    }

    /// Adds remaining jobs.
    pub(super) fn leave(&mut self, stayed: Stayed) {
        let room = MOST_TOLD - self.left.len();
        let over = stayed.listed.len().saturating_sub(room);
        self.left.extend(stayed.listed.into_iter().take(room));
        self.untold += stayed.untold + over;
    }
}

/// Jobs that one scan of a list did not move.
#[derive(Debug, Default)]
pub(super) struct Stayed {
    listed: Vec<Left>,
    untold: usize,
}

impl Stayed {
    pub(super) fn add(&mut self, id: &[u8], place: &str, reason: impl Into<String>) {
        if self.listed.len() == MOST_TOLD {
            self.untold += 1;
            return;
        }
        self.listed.push(Left {
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
