//! Keys of the API, one field of a hash for each.

use meshwork_macros::boxed;
use meshwork_model::api_key::{ApiKey, UnreadableApiKey};
use meshwork_model::name::ApiKeyName;

use crate::broker::Broker;
use crate::error::Error;

/// Greatest number of keys: all of them are read to list them.
pub const MAX_API_KEYS: usize = 1000;
const VERB: &str = "api_key";

impl Broker {
    /// Stores a new key; returns false if there is one of its name, or [`MAX_API_KEYS`].
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn create_api_key(&self, key: &ApiKey) -> Result<bool, Error> {
        let mut count = redis::cmd("HLEN");
        count.arg(self.keys.api_keys());
        let known: usize = self.ask(VERB, &count).await?;
        if known >= MAX_API_KEYS {
            return Ok(false);
        }
        let mut create = redis::cmd("HSETNX");
        create.arg(self.keys.api_keys()).arg(key.name.as_str());
        self.ask(VERB, create.arg(key.write())).await
    }

    /// Stores a key in place of the one with its name.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn replace_api_key(&self, key: &ApiKey) -> Result<(), Error> {
        let mut set = redis::cmd("HSET");
        set.arg(self.keys.api_keys()).arg(key.name.as_str());
        self.ask(VERB, set.arg(key.write())).await
    }

    /// Reads a key; `None` if there is none, or one that cannot be read.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn api_key(&self, name: &ApiKeyName) -> Result<Option<ApiKey>, Error> {
        let mut get = redis::cmd("HGET");
        get.arg(self.keys.api_keys()).arg(name.as_str());
        let record: Option<Vec<u8>> = self.ask(VERB, &get).await?;
        Ok(record.and_then(|record| ApiKey::read(name.as_str(), &record).ok()))
    }

    /// Reads all keys, by name.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn api_keys(&self) -> Result<Vec<Result<ApiKey, UnreadableApiKey>>, Error> {
        let mut get = redis::cmd("HGETALL");
        get.arg(self.keys.api_keys());
        let mut records: Vec<(String, Vec<u8>)> = self.ask(VERB, &get).await?;
        records.sort();
        let read = |(name, record): (String, Vec<u8>)| ApiKey::read(&name, &record);
        Ok(records.into_iter().map(read).collect())
    }

    /// Deletes a key; returns false if there is none.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn revoke_api_key(&self, name: &ApiKeyName) -> Result<bool, Error> {
        let mut del = redis::cmd("HDEL");
        del.arg(self.keys.api_keys()).arg(name.as_str());
        self.ask(VERB, &del).await
    }
}
