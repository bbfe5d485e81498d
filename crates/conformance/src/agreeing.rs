//! A fake: a connection without a server that answers every command with a number. It acts like a server that
//! replaced another one and accepts every command, but lacks the earlier server's state.

use futures_util::future::BoxFuture;
use meshwork_broker::conn::{Conn, Subscriber, Transport};
use redis::{Cmd, ErrorKind, Pipeline, RedisFuture, RedisResult, Value};

/// The fake connection.
#[derive(Debug, Clone, Copy)]
pub struct FakeAgreeing;

impl Transport for FakeAgreeing {
    fn call<'a>(&'a self, _: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async { Ok(Value::Int(0)) })
    }

    fn call_many<'a>(
        &'a self,
        _: &'a Pipeline,
        _: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move { Ok(vec![Value::Int(0); count]) })
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async { Ok(Conn::new(Self)) })
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        Box::pin(async { Err((ErrorKind::Io, "nothing is published here").into()) })
    }
}
