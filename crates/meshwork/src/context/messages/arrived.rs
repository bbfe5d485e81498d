//! Messages that have arrived, for those who wait for one.

use meshwork_broker::context::Read;
use meshwork_model::context::{MessageType, field};
use meshwork_model::keys::context::{ActorId, Counter, MessageKey};

use crate::context::{ContextError, ContextHandle, MessageView, PAGE};

impl ContextHandle {
    /// Returns the first message of this type from this actor that has arrived since a time (milliseconds since 1970), among
    /// the latest 1,000 messages.
    pub(crate) async fn arrived(
        &self,
        from: ActorId,
        message_type: MessageType,
        since: u64,
    ) -> Result<Option<MessageView>, ContextError> {
        let index = self.keys().index(Counter::Message);
        let (store, database) = (self.store(), self.database());
        let count = store.elements(database, &index, Read::Count).await?;
        let count = count.first().and_then(|it| std::str::from_utf8(it).ok());
        let count: usize = count.and_then(|it| it.parse().ok()).unwrap_or(0);
        let latest = Read::Members(PAGE, count.saturating_sub(PAGE));
        let latest = store.elements(database, &index, latest).await?;
        let keys = latest
            .iter()
            .filter_map(|it| self.keys().parse_message(it).ok());
        let keys: Vec<MessageKey> = keys.filter(|key| key.caller == from).collect();
        let names: Vec<_> = keys.iter().map(|key| self.keys().message(*key)).collect();
        let fields = (field::MESSAGE_TYPE, field::RECEIVED_MS);
        let heads = store.pairs(database, &names, fields).await?;
        let wanted = message_type.as_str().as_bytes();
        let time = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
        let found = keys.into_iter().zip(heads);
        let found = found.filter_map(|(key, (kind, received))| {
            let at = time(&received).filter(|at| *at >= since && kind == wanted)?;
            Some((at, key))
        });
        match found.min() {
            Some((_, key)) => self.message_of(key).await,
            None => Ok(None),
        }
    }
}
