//! Watches the data directory of an owner: ends the service of a lost directory, and replaces a deleted socket.

use std::{path::PathBuf, time::Duration};

use super::socket;
use crate::{listener::Control, log::Log};

/// Interval of the checks, and so the longest time for which a deleted socket keeps new clients away.
const EVERY: Duration = Duration::from_secs(1);

/// Watches `dir` until it is lost, and then disconnects the clients.
pub(super) async fn watch(dir: PathBuf, log: Log, control: Control) {
    let mut lost = log.lost();
    let mut bound = socket::present(&dir);
    let mut failed = false;
    loop {
        tokio::select! {
            _ = lost.wait_for(Option::is_some) => break,
            () = tokio::time::sleep(EVERY) => {}
        }
        if log.check_claim().is_err() {
            break;
        }
        if bound.is_some() && socket::present(&dir) == bound {
            continue;
        }
        match socket::listen(&dir) {
            Ok(fresh) => {
                tracing::warn!(dir = %dir.display(), "the socket was deleted or replaced; made it again");
                control.listen(fresh);
                bound = socket::present(&dir);
                failed = false;
            }
            // Logged once, because it is tried again every second.
            Err(error) if !std::mem::replace(&mut failed, true) => {
                tracing::warn!(dir = %dir.display(), %error, "the socket was deleted and cannot be made again yet");
            }
            Err(_) => {}
        }
    }
    control.stop();
}
