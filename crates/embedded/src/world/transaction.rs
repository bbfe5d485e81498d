//! Transactions: what EXEC runs, and their end.

use bytes::Bytes;

use super::{Call, Origin};
use crate::{
    Reply,
    command::{Spec, Stop},
};

impl Call<'_> {
    /// Leaves MULTI, and stops watching.
    pub(crate) fn end_transaction(&mut self) {
        self.me().multi = None;
        self.world.unwatch(self.client);
    }

    /// Runs one command of a transaction, for its place in the reply of EXEC.
    pub(crate) fn run_queued(&mut self, spec: &'static Spec, args: &[Bytes]) -> Reply {
        let origin = std::mem::replace(&mut self.origin, Origin::Transaction);
        let reply = match self.run(spec, args) {
            Ok(reply)
            | Err(Stop::Wait {
                otherwise: reply, ..
            }) => reply,
            Err(Stop::Error(text)) => Reply::Error(text),
        };
        self.origin = origin;
        reply
    }
}
