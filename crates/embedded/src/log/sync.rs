//! The thread of [`super::Fsync::EverySecond`]. A second after the first unsynced write, it syncs everything written
//! by then. It sleeps while nothing is written.

use std::{sync::Arc, time::Duration};

use super::Shared;

/// Greatest time until a write is synced, and so the loss in a crash of the machine.
const EVERY: Duration = Duration::from_secs(1);

pub(super) fn run(shared: &Shared) {
    loop {
        let state = shared.lock();
        let idle = |state: &mut super::State| !state.closed && state.synced == state.written;
        let state = shared
            .to_sync
            .wait_while(state, idle)
            .expect("no panic under this lock");
        let waited = shared
            .to_sync
            .wait_timeout_while(state, EVERY, |state| !state.closed);
        let (mut state, _) = waited.expect("no panic under this lock");
        if state.closed {
            // The close does the last sync.
            return;
        }
        if shared.check_claim(&mut state).is_err() {
            return;
        }
        state.appender.sums().cut(1);
        let (file, written) = (Arc::clone(state.appender.file()), state.written);
        drop(state);
        let outcome = file.sync_data();
        let mut state = shared.lock();
        match outcome {
            Ok(()) => {
                state.synced = state.synced.max(written);
                state.appender.sums().write();
            }
            // Errors of a file are irrelevant after a rewrite has replaced it by a synced one.
            Err(_) if !Arc::ptr_eq(&file, state.appender.file()) => {}
            Err(error) => {
                state.appender.sync_failed(&error);
                return;
            }
        }
    }
}
