//! The thread of [`super::Fsync::EverySecond`]: a second after the first write that is not on the
//! disk, everything written by then goes there. While nothing is written it sleeps.

use std::{sync::Arc, time::Duration};

use super::Shared;

/// How long a write may wait for the disk: what a crash of the machine can lose.
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
        let (state, _) = waited.expect("no panic under this lock");
        if state.closed {
            // The last sync is that of the close.
            return;
        }
        let (file, written) = (Arc::clone(state.appender.file()), state.written);
        drop(state);
        let outcome = file.sync_data();
        let mut state = shared.lock();
        match outcome {
            Ok(()) => state.synced = state.synced.max(written),
            // A file that a rewrite has replaced meanwhile, whole and synced, is of no interest.
            Err(_) if !Arc::ptr_eq(&file, state.appender.file()) => {}
            Err(error) => {
                state.appender.sync_failed(&error);
                return;
            }
        }
    }
}
