//! Sorting of the inbox: job messages that a plain client put there go to those that are taken up.

use std::time::Duration;

use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::{MessageStatus, MessageType, field};
use tokio::time::Instant;

use crate::context::messages::done::Done;
use crate::context::{ContextError, ContextHandle, MOST};

/// Time after which the whole inbox is sorted again: a plain client may write a record after its element.
const AGAIN: Duration = Duration::from_secs(30);

/// Progress of a coordinator in an inbox.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// Number of sorted elements at the tail.
    tail: usize,
    /// Newest element at the last check. While it is still among the newest, no other element was missed.
    newest: Option<Vec<u8>>,
    /// Time of the next check of all elements.
    again: Option<Instant>,
}

impl ContextHandle {
    /// Moves job messages from `msg_in` to `msg_in:{context}`, where a plain client may have put them wrongly. Each
    /// call sorts the newest elements. Calls in a row sort all others, page by page from the tail.
    pub(crate) async fn sort_inbox(&self, sorted: &mut Sorted) -> Result<Done, ContextError> {
        let inbox = self.keys().msg_in();
        let reads = [Read::Head(MOST), Read::Page(sorted.tail, MOST)];
        let found = self.store().lists(self.database(), &inbox, &reads).await?;
        let [head, page] = &found[..] else {
            return Ok(Done::default());
        };
        let unseen = sorted.newest.as_ref().is_none_or(|it| !head.contains(it));
        let due = sorted.again.is_none_or(|again| Instant::now() >= again);
        let whole = sorted.tail > 0 || due || unseen;
        let mut elements = head.clone();
        if whole {
            let others = page.iter().filter(|element| !head.contains(element));
            elements.extend(others.cloned());
        }
        let mut done = Done {
            more: whole && page.len() == MOST,
            ..Done::default()
        };
        for element in self.job_messages(elements).await? {
            let moved = self.move_job(&inbox, &element).await;
            done.note(self.id(), &element, moved)?;
        }
        // Moved elements are not in the list any more.
        sorted.tail = match done.more {
            true => (sorted.tail + MOST).saturating_sub(done.count),
            false => 0,
        };
        if whole && !done.more {
            sorted.again = Some(Instant::now() + AGAIN);
        }
        sorted.newest = head.first().cloned();
        Ok(done)
    }

    /// Returns the elements that name job messages which have not ended.
    async fn job_messages(&self, elements: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, ContextError> {
        let known = elements.into_iter().filter_map(|element| {
            let key = self.keys().parse_message(&element).ok()?;
            Some((element, self.keys().message(key)))
        });
        let (elements, records): (Vec<_>, Vec<_>) = known.unzip();
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let fields = (field::MESSAGE_TYPE, field::STATUS);
        let found = self
            .store()
            .pairs(self.database(), &records, fields)
            .await?;
        let is_job = |(kind, status): &(Vec<u8>, Vec<u8>)| {
            let is_over = [MessageStatus::Processed, MessageStatus::Error]
                .iter()
                .any(|word| word.as_str().as_bytes() == status);
            kind == MessageType::Job.as_str().as_bytes() && !is_over
        };
        let jobs = elements.into_iter().zip(found);
        let jobs = jobs.filter(|(_, found)| is_job(found));
        Ok(jobs.map(|(element, _)| element).collect())
    }

    async fn move_job(&self, inbox: &str, element: &[u8]) -> Result<usize, ContextError> {
        let commit = Commit::default()
            .listed(inbox, element)
            .drop(inbox, element)
            .push(&self.keys().msg_in_jobs(), element);
        Ok(usize::from(self.commit(&commit).await?.is_done()))
    }
}
