//! Sorting of the inbox: job messages that a plain client put there go to those that are taken up.

use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::{MessageStatus, MessageType, field};

use super::{ContextError, ContextHandle, MOST};

impl ContextHandle {
    /// Moves job messages from `msg_in` to `msg_in:{context}`, where a plain client may have put them wrongly.
    pub(super) async fn sort_inbox(&self) -> Result<usize, ContextError> {
        let (inbox, jobs) = (self.keys().msg_in(), self.keys().msg_in_jobs());
        let elements = self
            .store()
            .elements(self.database(), &inbox, Read::Tail(MOST))
            .await?;
        let known = elements.into_iter().filter_map(|element| {
            let key = self.keys().parse_message(&element).ok()?;
            Some((element, self.keys().message(key)))
        });
        let (elements, records): (Vec<_>, Vec<_>) = known.unzip();
        if records.is_empty() {
            return Ok(0);
        }
        let fields = (field::MESSAGE_TYPE, field::STATUS);
        let found = self
            .store()
            .pairs(self.database(), &records, fields)
            .await?;
        let mut moved = 0;
        for (element, (kind, status)) in elements.iter().zip(found) {
            let final_status = [MessageStatus::Processed, MessageStatus::Error]
                .iter()
                .any(|word| word.as_str().as_bytes() == status);
            if kind != MessageType::Job.as_str().as_bytes() || final_status {
                continue;
            }
            let commit = Commit::default()
                .listed(&inbox, element)
                .drop(&inbox, element)
                .push(&jobs, element);
            moved += usize::from(self.commit(&commit).await?.is_done());
        }
        Ok(moved)
    }
}
