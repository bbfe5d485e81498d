//! Transactions: queued commands of EXEC, and the end of a transaction.

use bytes::Bytes;

use super::{Call, Origin};
use crate::{
    Reply,
    command::{Spec, Stop},
};

impl Call<'_> {
    /// Ends MULTI and all watches.
    pub(crate) fn end_transaction(&mut self) {
        self.me().multi = None;
        self.world.unwatch(self.client);
    }

    /// Runs one command of a transaction, for its position in the reply of EXEC.
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
