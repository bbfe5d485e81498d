//! actors: who says that it is there. Reads only.

use meshwork_model::name::{Group, ScriptType};
use redis::RedisResult;

use super::inspect::{SCAN_COUNT, failed, glob_literal, texts};
use super::{MAX_ITEMS, text};
use crate::{Broker, Error};

/// The most of our workers looked at for one group: beyond, a target is not chosen by reading all.
const MOST: usize = 10 * MAX_ITEMS;

/// A presence key, without what all begin with (`osis:default:1`), and what stands there.
pub type Actor = (String, String);

/// A part of all actors.
#[derive(Debug, Clone, Default)]
pub struct ActorPage {
    /// Those that are there, in no order.
    pub actors: Vec<Actor>,
    /// Where the next page begins; 0 if this was the last.
    pub next: u64,
}

impl Broker {
    /// A page of all actors, ours and others: begin at 0, go on at `next` until it is 0. A page may bring
    /// one again.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn actors(&self, from: u64) -> Result<ActorPage, Error> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(from)
            .arg("MATCH")
            .arg(format!("{}*", glob_literal(&self.keys.presence_prefix())));
        scan.arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("string");
        let (next, keys): (u64, Vec<Vec<u8>>) = self.ask("actors", &scan).await?;
        let actors = self.values(texts(keys).collect()).await?;
        Ok(ActorPage { actors, next })
    }

    /// Those of our workers that are in one group. Others do not stand where this is read off; it costs the
    /// same however many jobs there are.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn our_actors(
        &self,
        script_type: &ScriptType,
        group: &Group,
    ) -> Result<Vec<Actor>, Error> {
        let now = self.now().await?;
        self.live_actors(now, &format!("{script_type}:{group}:"))
            .await
    }

    /// Whether a worker of ours is there for a type, in whichever group.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn is_run(&self, script_type: &ScriptType) -> Result<bool, Error> {
        let now = self.now().await?;
        let actors = self.live_actors(now, &format!("{script_type}:")).await?;
        Ok(!actors.is_empty())
    }

    /// Our registered workers, those first whose registration ends first: dead ones, which renew it no more,
    /// come to stand there. At most `most`.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn stalest_actors(&self, most: usize) -> Result<Vec<Actor>, Error> {
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range.arg(self.keys.actors()).arg("-inf").arg("+inf");
        range.arg("LIMIT").arg(0).arg(most);
        let keys: Vec<Vec<u8>> = self.ask("actors", &range).await?;
        let prefix = self.keys.presence_prefix();
        let keys = texts(keys).filter(|key| key.starts_with(&prefix));
        self.values(keys.collect()).await
    }

    /// Those of our workers that are there at `now` and whose name begins with `name`, up to [`MOST`].
    pub(super) async fn live_actors(&self, now: u64, name: &str) -> Result<Vec<Actor>, Error> {
        let prefix = format!("{}{name}", self.keys.presence_prefix());
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range
            .arg(self.keys.actors())
            .arg(format!("({now}"))
            .arg("+inf");
        range.arg("LIMIT").arg(0).arg(MOST);
        let keys: Vec<Vec<u8>> = self.ask("actors", &range).await?;
        let keys = texts(keys).filter(|key| key.starts_with(&prefix));
        self.values(keys.collect()).await
    }

    async fn values(&self, keys: Vec<String>) -> Result<Vec<Actor>, Error> {
        let prefix = self.keys.presence_prefix();
        let mut actors = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(MAX_ITEMS) {
            let mut pipe = redis::pipe();
            // A key of another kind is nobody's presence.
            pipe.ignore_errors();
            for key in chunk {
                pipe.cmd("GET").arg(key);
            }
            let conn = &mut self.conn.clone();
            let values: Vec<RedisResult<Option<Vec<u8>>>> =
                pipe.query_async(conn).await.map_err(failed)?;
            let there = chunk.iter().zip(values).filter_map(|(key, value)| {
                let name = key.strip_prefix(&prefix)?;
                Some((name.to_owned(), text(value.ok()??)))
            });
            actors.extend(there);
        }
        Ok(actors)
    }
}
