//! A fake: a connection to no server that answers everything with a number, as one does that was put in the place of
//! another: it takes every word, and knows of nothing that was asked of the other one.

use futures_util::future::BoxFuture;
use meshwork_broker::conn::{Conn, Ear, Transport};
use redis::{Cmd, ErrorKind, Pipeline, RedisFuture, RedisResult, Value};

/// The connection.
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

    fn ear(&self) -> BoxFuture<'_, RedisResult<Ear>> {
        Box::pin(async { Err((ErrorKind::Io, "nothing is published here").into()) })
    }
}
