//! Transactions: runs the queued commands of EXEC, and ends a transaction.

use bytes::Bytes;

use super::{Call, Origin};
use crate::{
    Reply,
    command::{Spec, Stop},
};

impl Call<'_> {
    /// Ends the client's MULTI, and its watches of keys.
    pub(crate) fn end_transaction(&mut self) {
        self.me().multi = None;
        self.world.unwatch(self.client);
    }

    /// Runs one queued command and returns its part of EXEC's reply. A command that would block answers as after its
    /// timeout.
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
