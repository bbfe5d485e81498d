//! A stream as the commands that create it.

use bytes::Bytes;

use super::{Group, Pending, Stream, StreamId};

/// Greatest number of ids in one XCLAIM, which keeps commands short.
const IDS: usize = 64;

fn word(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// Returns the commands that create a stream in an empty server. Pending entries that are gone are omitted, as in
/// files that Redis rewrites.
pub(in crate::store) fn commands<'a>(
    key: &'a Bytes,
    stream: &'a Stream,
) -> impl Iterator<Item = Vec<Bytes>> + 'a {
    let entries = stream.entries().all().map(|entry| {
        let head = [word("XADD"), key.clone(), entry.id().text()];
        head.into_iter().chain(entry.fields()).collect()
    });
    let groups = stream.groups();
    entries
        .chain(empty(key, stream))
        .chain(marks(key, stream))
        .chain(groups.flat_map(|(name, group)| of_group(key, stream, name, group)))
}

/// Returns a command for a stream without entries: one entry that is trimmed at once.
fn empty(key: &Bytes, stream: &Stream) -> Option<Vec<Bytes>> {
    let args = ["MAXLEN", "0", "0-1", "x", "y"].map(word);
    (stream.len() == 0).then(|| {
        [word("XADD"), key.clone()]
            .into_iter()
            .chain(args)
            .collect()
    })
}

/// Returns commands for the counters. The last id may be below the greatest deleted one, which needs two commands.
fn marks(key: &Bytes, stream: &Stream) -> impl Iterator<Item = Vec<Bytes>> {
    let marks = stream.marks();
    let set = |id: StreamId| vec![word("XSETID"), key.clone(), id.text()];
    let mut all = set(marks.last.max(marks.max_deleted));
    all.extend([
        word("ENTRIESADDED"),
        i64::try_from(marks.added)
            .unwrap_or(i64::MAX)
            .to_string()
            .into(),
        word("MAXDELETEDID"),
        marks.max_deleted.text(),
    ]);
    let lower = (marks.last < marks.max_deleted).then(|| set(marks.last));
    std::iter::once(all).chain(lower)
}

fn of_group<'a>(
    key: &'a Bytes,
    stream: &'a Stream,
    name: &'a Bytes,
    group: &'a Group,
) -> impl Iterator<Item = Vec<Bytes>> + 'a {
    let create = vec![
        word("XGROUP"),
        word("CREATE"),
        key.clone(),
        name.clone(),
        group.last.text(),
        word("ENTRIESREAD"),
        group.read_text(),
    ];
    let consumers = group.consumers().keys().map(move |consumer| {
        let head = [word("XGROUP"), word("CREATECONSUMER"), key.clone()];
        let names = [name.clone(), consumer.clone()];
        head.into_iter().chain(names).collect()
    });
    let there = |(id, _): &(&StreamId, &Pending)| stream.entries().contains(**id);
    let mut pending = group.pending().iter().filter(there).peekable();
    let claims = std::iter::from_fn(move || {
        let (first, claim) = pending.next()?;
        let mut ids = vec![*first];
        while ids.len() < IDS
            && let Some((id, _)) = pending.next_if(|(_, other)| *other == claim)
        {
            ids.push(*id);
        }
        Some(claim_command(key, name, &ids, claim).collect())
    });
    std::iter::once(create).chain(consumers).chain(claims)
}

/// Returns the command that makes entries pending, whatever their state.
pub(crate) fn claim_command<'a>(
    key: &'a Bytes,
    group: &'a Bytes,
    ids: &'a [StreamId],
    pending: &'a Pending,
) -> impl Iterator<Item = Bytes> + 'a {
    let consumer = pending.consumer.clone();
    let head = [
        word("XCLAIM"),
        key.clone(),
        group.clone(),
        consumer,
        word("0"),
    ];
    let tail = [
        word("TIME"),
        pending.delivered.to_string().into(),
        word("RETRYCOUNT"),
        pending.count.to_string().into(),
        word("FORCE"),
        word("JUSTID"),
    ];
    let ids = ids.iter().map(|id| id.text());
    head.into_iter().chain(ids).chain(tail)
}
