//! What the suite runs on, and a place of its own for each case at a time.

use std::sync::Mutex;

use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_embedded::Handle;
use meshwork_model::name::Namespace;

use super::Failure;
use crate::servers::{Tool, shared_for};

/// An engine that must pass the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// redis-server.
    Redis,
    /// valkey-server.
    Valkey,
    /// The engine that runs in the process.
    Embedded,
}

/// Places that no case uses at the moment.
static FREE: Mutex<Vec<(Engine, Conn)>> = Mutex::new(Vec::new());

/// An empty database for one case at a time, free for the next when dropped.
#[derive(Debug)]
pub struct Place {
    engine: Engine,
    conn: Conn,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Redis, Self::Valkey, Self::Embedded];

    /// The word that trials' names begin with.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
            Self::Embedded => "embedded",
        }
    }

    /// What has to be installed for it.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
            Self::Embedded => "nothing",
        }
    }

    /// An empty place on it; `None` if this machine lacks the engine, which has been reported then.
    ///
    /// # Errors
    /// When the engine is there and does not let us in.
    ///
    /// # Panics
    /// In CI, when it is not there.
    pub async fn place(self, test: &str) -> Result<Option<Place>, Failure> {
        let Some(conn) = self.free_or_new(test).await? else {
            return Ok(None);
        };
        redis::cmd("FLUSHDB")
            .query_async::<()>(&mut conn.clone())
            .await?;
        Ok(Some(Place { engine: self, conn }))
    }

    async fn free_or_new(self, test: &str) -> Result<Option<Conn>, Failure> {
        let free = {
            let mut free = FREE.lock().expect("nobody panics with the lock held");
            let at = free.iter().position(|(engine, _)| *engine == self);
            at.map(|at| free.swap_remove(at).1)
        };
        if free.is_some() {
            return Ok(free);
        }
        match self {
            Self::Redis => server(test, Tool::Redis).await,
            Self::Valkey => server(test, Tool::Valkey).await,
            Self::Embedded => Ok(Some(Conn::embedded(&Handle::in_memory()))),
        }
    }
}

/// A fresh database of the server that all tests of this binary share.
async fn server(test: &str, tool: Tool) -> Result<Option<Conn>, Failure> {
    let Some(database) = shared_for(test, tool) else {
        return Ok(None);
    };
    let target = Target::parse(&database.url(), TlsFiles::default()).map_err(Failure::new)?;
    let conn = Conn::open(&target, &Namespace::default()).await;
    Ok(Some(conn.map_err(Failure::new)?))
}

impl Place {
    /// The way to it.
    #[must_use]
    pub fn conn(&self) -> &Conn {
        &self.conn
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut free = FREE.lock().expect("nobody panics with the lock held");
        free.push((self.engine, self.conn.clone()));
    }
}
