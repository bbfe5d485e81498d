//! A connection for the floor: to a server over a socket without any code of Meshwork, or into the embedded engine.

use meshwork_broker::conn::Conn;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisFuture, Value};

/// Either kind of connection.
#[derive(Clone)]
pub(super) enum Link {
    Socket(MultiplexedConnection),
    Inside(Conn),
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Socket(link) => link.req_packed_command(cmd),
            Self::Inside(link) => link.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Socket(link) => link.req_packed_commands(pipeline, offset, count),
            Self::Inside(link) => link.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Socket(link) => link.get_db(),
            Self::Inside(link) => link.get_db(),
        }
    }
}
