//! Records of a context by kind: found by a scan, or by an index for users who may not scan.

use meshwork_broker::context::{Commit, Read, RecordFields};
use meshwork_macros::boxed;
use meshwork_model::keys::context::Counter;

use super::{ContextError, ContextHandle, PAGE};

impl ContextHandle {
    /// Returns all hashes of a kind, whose keys begin with `prefix`, each with the rest of its key. A key of another type
    /// is no record.
    pub(super) async fn records(
        &self,
        prefix: &str,
        kind: Counter,
    ) -> Result<Vec<(String, RecordFields)>, ContextError> {
        let mut keys = match self.scanned(prefix).await {
            Err(ContextError::Broker(error)) if error.is_denied() => self.indexed(kind).await?,
            keys => keys?,
        };
        keys.retain(|key| key.starts_with(prefix));
        keys.sort_unstable();
        keys.dedup();
        let mut records = Vec::with_capacity(keys.len());
        for page in keys.chunks(PAGE) {
            let found = self.store().hashes(self.database(), page).await;
            let found = match found.map_err(ContextError::from) {
                Err(error) if error.is_permanent() => self.hashes_among(page).await?,
                found => found?,
            };
            let behind = page.iter().filter_map(|key| key.strip_prefix(prefix));
            let both = behind.map(str::to_owned).zip(found);
            // The index keeps records that a plain client has deleted.
            records.extend(both.filter(|(_, fields)| !fields.is_empty()));
        }
        Ok(records)
    }

    /// Reads hashes one by one. A key of another type has no fields.
    async fn hashes_among(&self, keys: &[String]) -> Result<Vec<RecordFields>, ContextError> {
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let fields = self.store().hash(self.database(), key).await;
            found.push(match fields.map_err(ContextError::from) {
                Err(error) if error.is_permanent() => Vec::new(),
                fields => fields?,
            });
        }
        Ok(found)
    }

    async fn scanned(&self, prefix: &str) -> Result<Vec<String>, ContextError> {
        let (mut cursor, mut keys) = (0, Vec::new());
        loop {
            let (next, page) = self
                .store()
                .scan(self.database(), cursor, prefix, PAGE)
                .await?;
            keys.extend(texts(page));
            cursor = next;
            if cursor == 0 {
                return Ok(keys);
            }
        }
    }

    async fn indexed(&self, kind: Counter) -> Result<Vec<String>, ContextError> {
        let (index, mut keys) = (self.keys().index(kind), Vec::new());
        loop {
            let page = Read::Members(PAGE, keys.len());
            let page = self.store().elements(self.database(), &index, page).await?;
            let found = page.len();
            keys.extend(page);
            if found < PAGE {
                return Ok(texts(keys).collect());
            }
        }
    }

    /// Adds the records of all kinds to their indexes, page by page, for a store of an earlier version or of plain
    /// clients. Needs the right to scan.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn index_records(&self) -> Result<(), ContextError> {
        let keys = self.keys();
        let kinds = [
            (keys.messages_prefix(), Counter::Message),
            (keys.runner_prefix(), Counter::Runner),
        ];
        for (prefix, kind) in kinds {
            let found = self.scanned(&prefix).await?;
            let known = self.indexed(kind).await?;
            let known: std::collections::HashSet<_> = known.into_iter().collect();
            let missing: Vec<_> = found.iter().filter(|key| !known.contains(*key)).collect();
            for page in missing.chunks(PAGE) {
                let commit = page.iter().fold(Commit::default(), |commit, key| {
                    commit.mark(&keys.index(kind), 0, key.as_bytes())
                });
                let _ = self.commit(&commit).await?;
            }
        }
        Ok(())
    }
}

fn texts(keys: Vec<Vec<u8>>) -> impl Iterator<Item = String> {
    keys.into_iter()
        .filter_map(|key| String::from_utf8(key).ok())
}
