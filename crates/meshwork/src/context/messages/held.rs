//! Messages of other nodes that are stored here and not processed, and those that were cancelled before they arrived: a list
//! of their origins for each node. The records
//! decide, so an entry that was not removed, or was added twice, does no harm.

use std::collections::{BTreeMap, HashSet};

use meshwork_broker::context::{Commit, Database, Read};
use meshwork_model::context::{MessageStatus, NodeId, field};
use meshwork_model::keys::context::ContextId;
use meshwork_model::mesh::{Held, HeldEntry, MAX_HELD_MESSAGES};

use crate::context::messages::foreign::CANCELLED_BEFORE;
use crate::context::{ContextError, Node, Origin, PAGE};

/// Greatest number of entries that are read: those of the limit, and those of one more page.
const MOST: usize = MAX_HELD_MESSAGES + PAGE;

impl Node {
    /// Adds a stored message to the list of its node.
    pub(crate) async fn hold(&self, from: NodeId, entry: HeldEntry) -> Result<(), ContextError> {
        let list = self.keys().peer_held(from);
        let commit = Commit::default().mark(&list, 0, entry.to_string().as_bytes());
        let _ = self.store().commit(Database::Node, &commit).await?;
        Ok(())
    }

    /// Removes the messages of a node that are processed or gone from its list. Returns what is left.
    pub(crate) async fn held_for(&self, from: NodeId) -> Result<Held, ContextError> {
        let list = self.keys().peer_held(from);
        let (mut by_context, mut done) = (BTreeMap::<ContextId, Vec<HeldEntry>>::new(), Vec::new());
        for start in (0..MOST).step_by(PAGE) {
            let page = Read::Members(PAGE, start);
            let page = self.store().elements(Database::Node, &list, page).await?;
            let count = page.len();
            for member in page {
                let entry = std::str::from_utf8(&member).ok();
                match entry.and_then(|text| text.parse::<HeldEntry>().ok()) {
                    Some(entry) => by_context.entry(entry.at).or_default().push(entry),
                    None => done.push(member),
                }
            }
            if count < PAGE {
                break;
            }
        }
        let mut held = Held::default();
        for (context, entries) in by_context {
            let mut parts: Vec<_> = entries.chunks(PAGE).collect();
            while let Some(entries) = parts.pop() {
                let open = match self.open_among(from, context, entries).await {
                    // A damaged key is among those of this part.
                    Err(error) if error.is_permanent() && entries.len() > 1 => {
                        let (front, back) = entries.split_at(entries.len() / 2);
                        parts.extend([front, back]);
                        continue;
                    }
                    Err(error) if error.is_permanent() => HashSet::new(),
                    open => open?,
                };
                for entry in entries {
                    match open.contains(entry) {
                        true => held.add(entry.bytes),
                        false => done.push(entry.to_string().into_bytes()),
                    }
                }
            }
        }
        for page in done.chunks(PAGE) {
            let commit = page.iter().fold(Commit::default(), |commit, member| {
                commit.unmark(&list, member)
            });
            let _ = self.store().commit(Database::Node, &commit).await?;
        }
        Ok(held)
    }

    /// Returns the messages that have not ended.
    async fn open_among(
        &self,
        from: NodeId,
        context: ContextId,
        entries: &[HeldEntry],
    ) -> Result<HashSet<HeldEntry>, ContextError> {
        let context = match self.context(context).await {
            Err(error) if error.is_permanent() => return Ok(HashSet::new()),
            context => context?,
        };
        let (keys, database) = (context.keys(), context.database());
        let origins = entries
            .iter()
            .map(|entry| Origin::sent_from(from, &entry.of).to_string());
        let origins: Vec<_> = origins.collect();
        let names: Vec<_> = origins.iter().map(|origin| keys.origin(origin)).collect();
        let found = self.store().texts(database, &names).await?;
        let before = entries.iter().zip(&found).filter(|(_, text)| {
            let text = text.as_deref();
            text == Some(CANCELLED_BEFORE.as_bytes())
        });
        let before: Vec<_> = before.map(|(entry, _)| *entry).collect();
        let known = entries.iter().zip(&origins).zip(found);
        let known = known.filter_map(|((entry, origin), element)| {
            let key = keys.parse_message(&element?).ok()?;
            Some((entry, origin, keys.message(key)))
        });
        let known: Vec<_> = known.collect();
        let records: Vec<_> = known.iter().map(|(.., record)| record.clone()).collect();
        let fields = (field::STATUS, field::ORIGIN);
        let states = self.store().pairs(database, &records, fields).await?;
        let is_open = |status: &[u8]| {
            let status = std::str::from_utf8(status).ok();
            let status = status.and_then(|text| text.parse::<MessageStatus>().ok());
            status.is_some_and(|status| !status.is_final())
        };
        let open = known.into_iter().zip(states);
        let open = open.filter(|((_, origin, _), (status, stored))| {
            is_open(status) && stored == origin.as_bytes()
        });
        Ok(open.map(|((entry, ..), _)| *entry).chain(before).collect())
    }
}
