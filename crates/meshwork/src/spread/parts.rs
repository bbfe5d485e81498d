//! The parts of spread queues, with their jobs.

use futures_util::{StreamExt, TryStreamExt};
use meshwork_broker::{QueueDepth, SpreadKeys};
use meshwork_macros::boxed;
use meshwork_model::keys::context::ContextId;
use meshwork_model::spread::{SpreadLayout, SpreadName};

use super::SpreadError;
use crate::context::Node;

/// Greatest number of parts that are read at once.
const AT_ONCE: usize = 16;

/// Parts of a spread queue.
///
/// ```
/// # use meshwork::context::Node;
/// # use meshwork::spread::SpreadError;
/// # async fn run(node: &Node) -> Result<(), SpreadError> {
/// let state = node.spread_state(&"python".parse()?).await?;
/// for part in &state.parts {
///     println!("part {}: {} jobs wait", part.context, part.jobs.waiting);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpreadState {
    /// Its parts, in the order of the layout.
    pub parts: Vec<SpreadPart>,
    /// Number of keys that have unfinished jobs in their old parts. The number of parts can change again at 0.
    pub moving: usize,
}

/// A part of a spread queue.
///
/// [`SpreadState`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpreadPart {
    /// The context of the part.
    pub context: ContextId,
    /// False for a part that gets no new jobs.
    pub is_active: bool,
    /// Its unfinished jobs.
    pub jobs: QueueDepth,
}

impl Node {
    /// Reads the parts of a spread queue with their jobs.
    ///
    /// It does not end a move of keys that is over: readers need no permission to change the layout. Workers of the parts
    /// end it, and so does the next change.
    ///
    /// # Errors
    /// [`SpreadError::NotSpread`], [`SpreadError::Registry`], or a call to the server fails.
    #[boxed]
    pub async fn spread_state(&self, name: &SpreadName) -> Result<SpreadState, SpreadError> {
        let layout = self.layout_of(name).await?;
        let parts = 0..layout.parts.len();
        let parts = parts.map(|at| self.spread_part(name, &layout, at));
        let parts = futures_util::stream::iter(parts).buffered(AT_ONCE);
        Ok(SpreadState {
            parts: parts.try_collect().await?,
            moving: self.moving(name, &layout).await?,
        })
    }

    async fn spread_part(
        &self,
        name: &SpreadName,
        layout: &SpreadLayout,
        at: usize,
    ) -> Result<SpreadPart, SpreadError> {
        let context = layout.parts[at];
        let (broker, queue) = self.in_part(name, context).await?;
        Ok(SpreadPart {
            context,
            is_active: at < layout.active,
            jobs: broker.depth(&queue).await?,
        })
    }

    /// Returns the contexts of the parts of a spread queue, or of all spread queues without a name. Each is given once, by
    /// number.
    ///
    /// # Errors
    /// [`SpreadError::NotSpread`], [`SpreadError::Registry`], or the call to the server fails.
    #[boxed]
    pub async fn spread_contexts(
        &self,
        name: Option<&SpreadName>,
    ) -> Result<Vec<ContextId>, SpreadError> {
        let mut contexts = match name {
            Some(name) => self.layout_of(name).await?.parts,
            None => {
                let all = self.spreads().await?.into_iter();
                all.flat_map(|(_, layout)| layout.parts).collect()
            }
        };
        contexts.sort_unstable();
        contexts.dedup();
        Ok(contexts)
    }

    pub(super) async fn layout_of(&self, name: &SpreadName) -> Result<SpreadLayout, SpreadError> {
        let layout = self.spread(name).await?;
        layout.ok_or_else(|| SpreadError::NotSpread(name.clone()))
    }

    /// Counts the keys that have unfinished jobs in their old parts. The old parts adopt the layout.
    pub(super) async fn moving(
        &self,
        name: &SpreadName,
        layout: &SpreadLayout,
    ) -> Result<usize, SpreadError> {
        let old = 0..layout.previous.unwrap_or(0);
        let moving = old.map(|at| self.moving_from(name, layout, at));
        let moving = futures_util::stream::iter(moving).buffered(AT_ONCE);
        moving.try_fold(0, async |all, keys| Ok(all + keys)).await
    }

    /// Counts the keys that have unfinished jobs in this part, and move to another one.
    async fn moving_from(
        &self,
        name: &SpreadName,
        layout: &SpreadLayout,
        at: usize,
    ) -> Result<usize, SpreadError> {
        let (broker, _) = self.in_part(name, layout.parts[at]).await?;
        let (mut moving, mut skip) = (0, Some(0));
        while let Some(from) = skip {
            match broker.spread_keys(name, layout.generation, from).await? {
                SpreadKeys::Page(keys, next) => {
                    moving += keys.iter().filter(|key| layout.moves_from(at, key)).count();
                    skip = next;
                }
                // A later change has begun, so this one has ended.
                SpreadKeys::Stale(_) => return Ok(moving),
            }
        }
        Ok(moving)
    }
}
