//! A connection to the embedded engine that checks each command on a full disk. Before a command runs, it runs on a
//! copy of the engine whose log cannot be written. If that copy refuses it, it must refuse the repeated command too.
//! After the disk has space again, the effect of an answered command must be in the log.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use meshwork_broker::conn::Conn;
use meshwork_embedded::{Handle, Probe, Reply, decode_reply};

use crate::around::{Around, Fate, Fates};

/// Scripts that were refused so far in this process.
static REFUSED: Mutex<BTreeSet<Bytes>> = Mutex::new(BTreeSet::new());

/// Returns the number of scripts that were refused so far in this process.
#[must_use]
pub fn refused_scripts() -> usize {
    let refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    refused.len()
}

/// Greatest number of commands that create the data of the copy. A case may have thousands of jobs, and more data
/// checks nothing more.
const MAX_COPIED_COMMANDS: usize = 400;

/// Returns a connection to `engine` that checks each command on a full disk. It panics if a check fails.
#[must_use]
pub fn with_full_disk_probe(engine: &Handle) -> Conn {
    let probing = FullDiskProbe {
        engine: engine.clone(),
        probe: Arc::default(),
    };
    Conn::new(Around::of(Conn::embedded(engine), probing))
}

#[derive(Clone)]
struct FullDiskProbe {
    engine: Handle,
    probe: Arc<Mutex<Probe>>,
}

impl Debug for FullDiskProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FullDiskProbe").finish_non_exhaustive()
    }
}

impl Fates for FullDiskProbe {
    fn dedicated(&self) -> Self {
        self.clone()
    }

    fn next(&self, packed: impl FnOnce() -> Vec<u8>) -> Option<Fate> {
        let packed = packed();
        let mut rest = &packed[..];
        while let Ok(Some((Reply::Array(words), len))) = decode_reply(rest) {
            let word = |word| match word {
                Reply::Bulk(bytes) => bytes,
                other => panic!("no argument: {other:?}"),
            };
            self.probe_command(&words.into_iter().map(word).collect::<Vec<_>>());
            rest = &rest[len..];
        }
        None
    }
}

impl FullDiskProbe {
    /// Runs a command on the copy: with a full disk, repeated, and with a free disk.
    fn probe_command(&self, args: &[Bytes]) {
        let probe = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        if !probe.begin(&self.engine, MAX_COPIED_COMMANDS) {
            return;
        }
        let mut session = probe.session();
        let first = session.call_now(args);
        if probe.is_behind() {
            let what = || args.iter().map(|arg| arg.escape_ascii().to_string());
            let shown = || what().take(4).collect::<Vec<_>>().join(" ");
            let script = args[0].eq_ignore_ascii_case(b"evalsha");
            if script {
                assert!(is_refused(first.as_ref()), "{}: {first:?}", shown());
                let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
                refused.insert(args[1].clone());
            }
            let again = session.call_now(args);
            assert!(is_refused(again.as_ref()), "again {}: {again:?}", shown());
        }
        probe.heal();
        let answered = session.call_now(args);
        if let Some(lost) = probe.lost() {
            panic!("{lost} is lost though {answered:?} was answered");
        }
    }
}

/// Returns true for the error that the engine returns while its log cannot be written.
fn is_refused(reply: Option<&Reply>) -> bool {
    matches!(reply, Some(Reply::Error(text)) if text.contains("MISCONF"))
}
