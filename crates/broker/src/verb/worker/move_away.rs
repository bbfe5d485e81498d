//! move_away: moves keys of another type away if what they held is found again, so that they block nothing.

use meshwork_macros::boxed;
use meshwork_model::keys::table::{KeyTable, Kinds};
use redis::RedisResult;

use crate::broker::Broker;
use crate::conn::Conn;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;
use crate::verb::inspect::jobs::glob_literal;

/// Greatest number of keys that are searched for such keys: some ten milliseconds of the server's time.
pub(crate) const MAX_SEARCHED: usize = 20_000;

/// A key with a value of another type.
pub(crate) struct WrongType {
    pub(crate) key: String,
    /// Type of its value.
    pub(crate) found: String,
    /// Types that it may have.
    pub(crate) kinds: Kinds,
}

/// Returns those of the keys that have another type; none if this user may not read them.
pub(crate) async fn wrong_types(conn: &Conn, table: &KeyTable, keys: &[String]) -> Vec<WrongType> {
    let known: Vec<_> = keys.iter().filter(|key| table.row(key).is_some()).collect();
    let mut wrong = Vec::new();
    for page in known.chunks(MAX_ITEMS) {
        let mut types = redis::pipe();
        for key in page {
            types.cmd("TYPE").arg(key);
        }
        let types: RedisResult<Vec<String>> = types.query_async(&mut conn.clone()).await;
        let both = page.iter().zip(types.unwrap_or_default());
        wrong.extend(both.filter_map(|(key, found)| {
            Some(WrongType {
                kinds: table.expected(key, &found)?,
                key: (*key).clone(),
                found,
            })
        }));
    }
    wrong
}

/// Returns the keys of one page with this prefix, and the cursor of the next page; 0 after the last one.
pub(crate) async fn page(conn: &Conn, prefix: &str, from: u64) -> RedisResult<(u64, Vec<String>)> {
    let mut scan = redis::cmd("SCAN");
    scan.arg(from).arg("MATCH");
    scan.arg(format!("{}*", glob_literal(prefix)));
    scan.arg("COUNT").arg(MAX_ITEMS);
    let (next, keys): (u64, Vec<Vec<u8>>) = scan.query_async(&mut conn.clone()).await?;
    // A name that is no text is no key of Meshwork, but may have a prefix of one.
    let keys = keys
        .into_iter()
        .filter_map(|key| String::from_utf8(key).ok());
    Ok((next, keys.collect()))
}

impl Broker {
    /// Moves keys of another type away whose content is found again, and returns them. Looks at the keys that are one of a
    /// kind; with `all`, also at up to 20,000 others. The new name is that of the key after `damaged:`.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn move_away(&self, all: bool) -> Result<Vec<String>, Error> {
        let table = self.keys.table();
        let mut keys: Vec<_> = table.fixed().map(str::to_owned).collect();
        let (mut from, mut searched) = (0, 0);
        while all && searched < MAX_SEARCHED {
            let found = page(&self.conn, &self.keys.prefix(), from).await;
            let (next, found) = found.map_err(|source| Error::of_keys("move_away", &[], source))?;
            let wrong = wrong_types(&self.conn, &table, &found).await;
            keys.extend(wrong.into_iter().map(|wrong| wrong.key));
            (from, searched) = (next, searched + MAX_ITEMS);
            if from == 0 {
                break;
            }
        }
        keys.retain(|key| table.is_found_again(key));
        keys.truncate(MAX_ITEMS / 2);
        let mut call = self.scripts.call(Verb::MoveAway);
        for key in &keys {
            call.push_key(key);
            call.push_key(self.keys.damaged(key));
            let kinds = table
                .row(key)
                .map_or(String::new(), |row| row.kinds.join(" "));
            call.push_arg(format!(" {kinds} "));
        }
        call.run(&self.conn).await
    }
}
