//! A stream as the commands that make it.

use bytes::Bytes;

use super::{Group, Pending, Stream, StreamId};

/// Ids in one XCLAIM: no command is long.
const IDS: usize = 64;

fn word(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// The commands that make a stream in an empty server. What is pending of entries that are gone
/// is not among them, as in the files that Redis rewrites.
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

/// A stream without entries comes from one that is cut off at once.
fn empty(key: &Bytes, stream: &Stream) -> Option<Vec<Bytes>> {
    let args = ["MAXLEN", "0", "0-1", "x", "y"].map(word);
    (stream.len() == 0).then(|| {
        [word("XADD"), key.clone()]
            .into_iter()
            .chain(args)
            .collect()
    })
}

/// What a stream remembers. The last id may be below the highest deleted one, which one command
/// cannot say.
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

/// The command that makes entries pending, whatever they were.
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
