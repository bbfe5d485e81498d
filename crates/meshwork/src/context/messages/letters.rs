//! Chat and mail that was read by a user of one context, who may not change the sender's copy.

use meshwork_broker::context::{Commit, Read};
use meshwork_model::context::MessageStatus;

use crate::context::messages::done::Done;
use crate::context::{ContextError, ContextHandle, MOST, Notice, Transport};

impl ContextHandle {
    /// Notifies the senders of letters that were read.
    pub(crate) async fn notify_of_letters(
        &self,
        transport: &dyn Transport,
    ) -> Result<Done, ContextError> {
        let letters = self.keys().letters();
        let elements = self
            .store()
            .elements(self.database(), &letters, Read::Due(MOST))
            .await?;
        let mut done = Done {
            more: elements.len() == MOST,
            ..Done::default()
        };
        for element in &elements {
            let reported = self.notify_of_letter(transport, &letters, element).await;
            done.note(self.id(), element, reported)?;
        }
        Ok(done)
    }

    async fn notify_of_letter(
        &self,
        transport: &dyn Transport,
        letters: &str,
        element: &[u8],
    ) -> Result<usize, ContextError> {
        let view = match self.keys().parse_message(element) {
            Ok(key) => match self.message_of(key).await {
                Err(error) if error.is_permanent() => None,
                view => view?,
            },
            Err(_) => None,
        };
        let read = view.filter(|view| view.message.status == MessageStatus::Processed);
        if let Some(origin) = read.and_then(|view| view.origin) {
            let from = self.site(self.node().identity().await?);
            transport.notify(from, &origin, &Notice::Read).await?;
        }
        let reported = Commit::default().unmark(letters, element);
        let _ = self.commit(&reported).await?;
        Ok(1)
    }
}
