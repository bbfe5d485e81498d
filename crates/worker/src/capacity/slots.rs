//! Slots: the concurrent jobs of one process, which several engines may share. Engines that wait for a slot get one in
//! turn, so that a backlog of one delays no other. One slot is left for engines that run nothing, so that long jobs of one
//! delay no first job of another.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The slots of one process; cheap to clone.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Mutex<Table>>);

#[derive(Debug)]
struct Table {
    total: usize,
    /// Slots in use by all seats. Exceeds `total` if jobs arrive without a claim.
    used: usize,
    seats: HashMap<u64, Taken>,
    added: u64,
    /// Seats that wait for a slot, the longest waiting first.
    waiting: VecDeque<u64>,
}

#[derive(Debug)]
struct Taken {
    held: usize,
    turn: Arc<Notify>,
}

/// The share of one engine. Its slots are free when it is dropped.
#[derive(Debug)]
pub struct Seat {
    slots: Slots,
    number: u64,
    turn: Arc<Notify>,
}

impl Slots {
    /// Creates so many free slots.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self(Arc::new(Mutex::new(Table {
            total,
            used: 0,
            seats: HashMap::new(),
            added: 0,
            waiting: VecDeque::new(),
        })))
    }

    /// Adds an engine.
    pub fn seat(&self) -> Seat {
        let mut table = self.table();
        table.added += 1;
        let (number, turn) = (table.added, Arc::new(Notify::new()));
        let taken = Taken {
            held: 0,
            turn: Arc::clone(&turn),
        };
        table.seats.insert(number, taken);
        Seat {
            slots: self.clone(),
            number,
            turn,
        }
    }

    /// The number of slots.
    pub fn total(&self) -> usize {
        self.table().total
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A seat whose next call frees some of its slots. No seat has the number 0.
#[derive(Debug, Clone, Copy, Default)]
struct Caller {
    seat: u64,
    spare: usize,
}

impl Table {
    /// Returns the most slots that a seat may have beside those that it keeps, if the call of `caller` frees some.
    fn most(&self, seat: u64, caller: Caller) -> usize {
        let held = self.seats.get(&seat).map_or(0, |taken| taken.held);
        let free = caller.spare + self.total.saturating_sub(self.used);
        let own_spare = if seat == caller.seat { caller.spare } else { 0 };
        let is_first = held <= own_spare;
        let kept_free = usize::from(self.seats.len() > 1 && self.total > 1);
        free.saturating_sub(kept_free)
            .max(usize::from(is_first && free > 0))
    }

    /// Returns the next seat in turn that may have a slot, if the call of `caller` frees some.
    fn next(&self, caller: Caller) -> Option<u64> {
        let mut waiting = self.waiting.iter().copied();
        waiting.find(|seat| self.most(*seat, caller) > 0)
    }

    /// Wakes the next seat in turn.
    fn wake(&self) {
        let next = self.next(Caller::default());
        if let Some(taken) = next.and_then(|seat| self.seats.get(&seat)) {
            taken.turn.notify_one();
        }
    }
}

impl Seat {
    /// Takes up to `want` slots, of which `spare` are this seat's own and free with its next call. If it is another seat's
    /// turn, or none is free, it takes none and waits for its turn.
    pub(crate) fn take(&self, want: usize, spare: usize) -> usize {
        let mut table = self.slots.table();
        let others = table.waiting.iter().filter(|seat| **seat != self.number);
        let others = others.count();
        let caller = Caller {
            seat: self.number,
            spare,
        };
        let next = table.next(caller);
        let is_turn = match next {
            Some(next) => next == self.number,
            // No waiting seat may have a slot.
            None => true,
        };
        let mut taken = 0;
        if is_turn {
            let most = table.most(self.number, caller);
            taken = want.min(most.div_ceil(others + 1));
        }
        let is_waiting = table.waiting.contains(&self.number);
        if taken == 0 {
            if !is_waiting {
                table.waiting.push_back(self.number);
            }
            return 0;
        }
        if is_waiting {
            table.waiting.retain(|seat| *seat != self.number);
        }
        let added = taken.saturating_sub(spare);
        table.used += added;
        if let Some(seat) = table.seats.get_mut(&self.number) {
            seat.held += added;
        }
        table.wake();
        taken
    }

    /// Sets the number of slots in use by this seat, and whether it still waits for one.
    pub(crate) fn settle(&self, held: usize, waits: bool) {
        let mut table = self.slots.table();
        let before = table.seats.get(&self.number).map_or(0, |seat| seat.held);
        let is_waiting = !waits && table.waiting.contains(&self.number);
        if held == before && !is_waiting {
            return;
        }
        table.used = (table.used + held).saturating_sub(before);
        if let Some(seat) = table.seats.get_mut(&self.number) {
            seat.held = held;
        }
        if is_waiting {
            table.waiting.retain(|seat| *seat != self.number);
        }
        table.wake();
    }

    /// Returns when it may be this seat's turn.
    pub(crate) async fn turn(&self) {
        self.turn.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.settle(0, false);
        let mut table = self.slots.table();
        table.seats.remove(&self.number);
        table.wake();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn seats<const N: usize>(total: usize) -> [Seat; N] {
        let slots = Slots::new(total);
        std::array::from_fn(|_| slots.seat())
    }

    fn is_woken(seat: &Seat) -> bool {
        seat.turn().now_or_never().is_some()
    }

    #[test]
    fn one_engine_has_all_slots() {
        let [seat] = seats(4);
        assert_eq!(seat.take(9, 0), 4);
        assert_eq!(seat.take(2, 2), 2, "those of its results");
        seat.settle(1, false);
        assert_eq!(seat.take(9, 0), 3);
    }

    #[test]
    fn a_slot_is_left_for_an_engine_that_runs_nothing() {
        let [busy, idle, third] = seats(4);
        assert_eq!(busy.take(9, 0), 3);
        assert_eq!(idle.take(9, 0), 1, "its first job");
        assert_eq!(third.take(9, 0), 0);
        busy.settle(2, false);
        assert!(is_woken(&third));
        assert_eq!(third.take(9, 0), 1);
        assert_eq!(idle.take(9, 0), 0);
        assert_eq!(busy.take(1, 1), 0, "one is left for others");
    }

    #[test]
    fn engines_that_wait_get_slots_in_turn() {
        let [first, second, third] = seats(1);
        assert_eq!(first.take(5, 0), 1);
        assert_eq!((second.take(5, 0), third.take(5, 0)), (0, 0));
        let mut turns = Vec::new();
        for round in 0..6 {
            let (runs, waits) = [(&first, &second), (&second, &third), (&third, &first)][round % 3];
            assert_eq!(
                runs.take(5, 1),
                0,
                "with its report, it is the turn of others"
            );
            runs.settle(0, true);
            assert!(is_woken(waits));
            turns.push(waits.take(5, 0));
        }
        assert_eq!(turns, [1; 6]);
    }

    #[test]
    fn who_waits_no_more_passes_its_turn_on() {
        let [first, second, third] = seats(1);
        assert_eq!(first.take(1, 0), 1);
        assert_eq!((second.take(1, 0), third.take(1, 0)), (0, 0));
        first.settle(0, false);
        assert!(is_woken(&second));
        second.settle(0, false);
        assert!(is_woken(&third));
        drop(second);
        assert_eq!(third.take(1, 0), 1);
    }

    #[test]
    fn slots_of_an_engine_that_ends_are_free() {
        let [first, second] = seats(2);
        assert_eq!(first.take(2, 0), 1);
        assert_eq!(second.take(2, 0), 1);
        assert_eq!(second.take(1, 0), 0);
        drop(first);
        assert!(is_woken(&second));
        assert_eq!(second.take(1, 0), 1, "it is alone now");
    }

    #[test]
    fn free_slots_are_shared_among_those_that_wait() {
        let [first, second, third] = seats(9);
        assert_eq!(first.take(9, 0), 8);
        assert_eq!(second.take(4, 0), 1);
        assert_eq!((second.take(9, 0), third.take(9, 0)), (0, 0));
        first.settle(0, false);
        assert!(is_woken(&second));
        assert_eq!(second.take(9, 0), 4);
        assert!(is_woken(&third));
        assert_eq!(third.take(9, 0), 3);
    }
}
