//! The registry of spread queues, and changes of their parts.
//!
//! A change of the number of parts has these steps, each of which may be the last before a crash; the same call continues.
//!
//! 1. Contexts are made for new parts, and added to the entry one by one. They get no jobs yet, and the settings of the
//!    first part.
//! 2. One commit increments the generation, and sets the number of active parts and the one before. Keys move from now on.
//!    A client that has read the earlier layout is refused by the first part that has seen the new one.
//! 3. A moving key stays in its old part while that part has unfinished jobs of the key. The script that stores a job
//!    decides this, so no key is in two parts. A key that has moved never returns.
//! 4. All old parts see the new generation. When none has unfinished jobs of a moving key, one commit removes the number
//!    before.

use meshwork_broker::Broker;
use meshwork_broker::context::{Commit, Database};
use meshwork_macros::boxed;
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::{ContextId, ContextLayout};
use meshwork_model::queue::QueueSettings;
use meshwork_model::spread::{MAX_PARTS, SpreadLayout, SpreadName};

use super::{SpreadError, TRIES, part_of};
use crate::context::{Acting, Node};

/// An entry of the registry, and its text, which a commit compares.
struct Entry {
    text: Vec<u8>,
    layout: SpreadLayout,
}

impl Node {
    /// Returns all spread queues of the node, by name. Entries that cannot be read are left out.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn spreads(&self) -> Result<Vec<(SpreadName, SpreadLayout)>, SpreadError> {
        let fields = self
            .store()
            .hash(Database::Node, &self.keys().spreads())
            .await?;
        let entries = fields.into_iter().filter_map(|(name, text)| {
            let layout = SpreadLayout::parse(&text)?;
            Some((name.parse::<SpreadName>().ok()?, layout))
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    }

    /// Returns the parts of a spread queue; `None` if the queue is not spread.
    ///
    /// # Errors
    /// [`SpreadError::Registry`], or the call to the server fails.
    #[boxed]
    pub async fn spread(&self, name: &SpreadName) -> Result<Option<SpreadLayout>, SpreadError> {
        let entry = self.spread_entry(name).await?;
        Ok((entry.layout.generation > 0).then_some(entry.layout))
    }

    async fn spread_entry(&self, name: &SpreadName) -> Result<Entry, SpreadError> {
        let fields = self
            .store()
            .hash(Database::Node, &self.keys().spreads())
            .await?;
        let field = name.to_string();
        let text = fields.into_iter().find(|(known, _)| *known == field);
        let Some((_, text)) = text else {
            let layout = SpreadLayout {
                generation: 0,
                parts: Vec::new(),
                active: 0,
                previous: None,
            };
            let text = Vec::new();
            return Ok(Entry { text, layout });
        };
        let layout = SpreadLayout::parse(&text);
        let layout = layout.ok_or_else(|| SpreadError::Registry(name.clone()))?;
        Ok(Entry { text, layout })
    }

    /// Replaces an entry, unless it has changed.
    async fn replace_spread(
        &self,
        name: &SpreadName,
        before: &Entry,
        layout: &SpreadLayout,
    ) -> Result<bool, SpreadError> {
        let (key, field) = (self.keys().spreads(), name.to_string());
        let text = layout.to_string();
        let commit = Commit::default()
            .is(&key, &field, &before.text)
            .set(&key, [(field.as_str(), text.as_str())]);
        Ok(self
            .store()
            .commit(Database::Node, &commit)
            .await?
            .is_done())
    }

    /// Spreads a queue over this number of parts, 1 to [`MAX_PARTS`], or changes the number. Makes contexts for missing
    /// parts, with the actor as their admin and executor. With fewer parts than before, the others get no new jobs; workers
    /// run the rest. May be repeated.
    ///
    /// # Errors
    /// [`SpreadError::PartCount`]; [`SpreadError::Moving`] while keys move after an earlier change;
    /// [`SpreadError::Context`] if the actor is not an admin of all parts, or a context cannot be made.
    pub async fn spread_queue(
        &self,
        me: &impl Acting,
        name: &SpreadName,
        parts: usize,
    ) -> Result<SpreadLayout, SpreadError> {
        if !(1..=MAX_PARTS).contains(&parts) {
            return Err(SpreadError::PartCount(parts));
        }
        for _ in 0..TRIES + MAX_PARTS {
            let entry = self.spread_entry(name).await?;
            self.check_admin(me, &entry.layout.parts).await?;
            let mut layout = entry.layout.clone();
            if layout.active == parts {
                return self.announced(name, layout).await;
            }
            if layout.previous.is_some() {
                self.settled(name).await?;
                continue;
            }
            if layout.parts.len() < parts {
                let prefix = Some(ContextLayout::Prefix);
                let part = self.create_context(me, None, prefix).await?;
                layout.parts.push(part.id());
            } else {
                self.copy_settings(name, &layout, parts).await?;
                layout = next(&entry.layout, parts);
            }
            let _ = self.replace_spread(name, &entry, &layout).await?;
        }
        Err(SpreadError::Busy(name.clone()))
    }

    /// Spreads a queue over these contexts, which have the layout `prefix`: they become its active parts, in this order.
    /// The parts before stay parts if they come first.
    ///
    /// # Errors
    /// As for [`Node::spread_queue`]; [`SpreadError::Layout`]; [`SpreadError::Twice`]; [`SpreadError::NoPart`] if an earlier part is missing from
    /// the beginning of the list.
    pub async fn spread_over(
        &self,
        me: &impl Acting,
        name: &SpreadName,
        contexts: &[ContextId],
    ) -> Result<SpreadLayout, SpreadError> {
        if !(1..=MAX_PARTS).contains(&contexts.len()) {
            return Err(SpreadError::PartCount(contexts.len()));
        }
        if let Some(twice) = (1..contexts.len()).find(|at| contexts[..*at].contains(&contexts[*at]))
        {
            return Err(SpreadError::Twice(contexts[twice]));
        }
        self.check_admin(me, contexts).await?;
        for _ in 0..TRIES {
            let entry = self.spread_entry(name).await?;
            let known = &entry.layout.parts;
            let moved = known.iter().zip(contexts).find(|(one, other)| one != other);
            if let Some((part, _)) = moved {
                let (name, text) = (name.clone(), format!("context {part}"));
                return Err(SpreadError::NoPart { name, text });
            }
            if entry.layout.active == contexts.len() {
                return self.announced(name, entry.layout).await;
            }
            if entry.layout.previous.is_some() {
                self.settled(name).await?;
                continue;
            }
            let mut layout = entry.layout.clone();
            let more = contexts.iter().skip(known.len());
            layout.parts.extend(more);
            self.copy_settings(name, &layout, contexts.len()).await?;
            let layout = next(&layout, contexts.len());
            let _ = self.replace_spread(name, &entry, &layout).await?;
        }
        Err(SpreadError::Busy(name.clone()))
    }

    /// Returns the broker of a part, and the key of the queue there.
    pub(super) async fn in_part(
        &self,
        name: &SpreadName,
        part: ContextId,
    ) -> Result<(Broker, String), SpreadError> {
        let keys = part_of(self, part).await?.keys().clone();
        let queue = keys.queue(&name.route());
        Ok((self.broker().of_context(keys).await?, queue))
    }

    /// Gives the parts that become active the limits and other settings of the first part.
    async fn copy_settings(
        &self,
        name: &SpreadName,
        layout: &SpreadLayout,
        active: usize,
    ) -> Result<(), SpreadError> {
        if layout.active == 0 || layout.active >= active {
            return Ok(());
        }
        let (first, queue) = self.in_part(name, layout.parts[0]).await?;
        let settings = first.settings().await?;
        let own = settings.queues.get(&queue).map(QueueSettings::changes);
        let length = settings.limits.of(&queue);
        for part in &layout.parts[layout.active..active] {
            let (broker, queue) = self.in_part(name, *part).await?;
            if let Some(changes) = &own {
                broker.configure(&queue, changes).await?;
            }
            broker.set_max_length(Some(&queue), length).await?;
        }
        Ok(())
    }

    /// Lets the old parts know the layout, so that clients that have an earlier one read it again.
    async fn announced(
        &self,
        name: &SpreadName,
        layout: SpreadLayout,
    ) -> Result<SpreadLayout, SpreadError> {
        if layout.previous.is_none() {
            return Ok(layout);
        }
        self.settle_spread(name).await?;
        Ok(self.spread_entry(name).await?.layout)
    }

    /// Ends the move of keys, or fails because of those that have unfinished jobs in their old parts.
    async fn settled(&self, name: &SpreadName) -> Result<(), SpreadError> {
        match self.settle_spread(name).await? {
            0 => Ok(()),
            keys => Err(SpreadError::Moving {
                name: name.clone(),
                keys,
            }),
        }
    }

    /// Checks that the actor may change these contexts.
    async fn check_admin(
        &self,
        me: &impl Acting,
        contexts: &[ContextId],
    ) -> Result<(), SpreadError> {
        for id in contexts {
            let part = part_of(self, *id).await?;
            part.allow_caller(me, Object::Context, Operation::Update)
                .await?;
        }
        Ok(())
    }

    /// Counts the keys that have unfinished jobs in their old parts. Ends the move if there are none. Workers of the parts
    /// call it while keys move. May be repeated.
    ///
    /// # Errors
    /// [`SpreadError::Registry`], or a call to the server fails.
    #[boxed]
    pub async fn settle_spread(&self, name: &SpreadName) -> Result<usize, SpreadError> {
        let entry = self.spread_entry(name).await?;
        let moving = self.moving(name, &entry.layout).await?;
        if entry.layout.previous.is_some() && moving == 0 {
            let layout = SpreadLayout {
                previous: None,
                ..entry.layout.clone()
            };
            let _ = self.replace_spread(name, &entry, &layout).await?;
        }
        Ok(moving)
    }
}

/// Returns the layout after this one, with another number of active parts.
fn next(layout: &SpreadLayout, active: usize) -> SpreadLayout {
    SpreadLayout {
        generation: layout.generation + 1,
        parts: layout.parts.clone(),
        active,
        previous: (layout.active > 0).then_some(layout.active),
    }
}
