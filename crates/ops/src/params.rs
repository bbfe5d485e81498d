//! Types of parameters that several methods have.

use meshwork_model::time;

pub use meshwork_model::param::Span;

use crate::error::OpError;

/// Greatest number of items of a page.
pub const MAX_LIMIT: usize = 1000;
/// Number of items of a page where the caller gives none.
pub const LIMIT: usize = 100;

/// Items of a page, and the cursor of the next one.
pub type Page<T> = (Vec<T>, Option<String>);

/// Parses a parameter that is written as a text.
pub fn parse<T: std::str::FromStr<Err: ToString>>(name: &str, text: &str) -> Result<T, OpError> {
    text.parse()
        .map_err(|error: T::Err| OpError::invalid(format!("{name}: {}", error.to_string())))
}

/// Parses a parameter that may be missing.
pub fn parse_some<T: std::str::FromStr<Err: ToString>>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, OpError> {
    text.map(|text| parse(name, text)).transpose()
}

/// Parses a time: RFC 3339.
pub fn moment(name: &str, text: &str) -> Result<u64, OpError> {
    time::parse_iso(text).ok_or_else(|| {
        OpError::invalid(format!(
            "{name}: {text:?} is no time: write RFC 3339, as 2026-01-31T12:00:00Z"
        ))
    })
}

/// Error of a cursor that no page gave.
pub fn wrong_cursor() -> OpError {
    OpError::invalid("cursor: give `next` of the page before")
}

/// Reads a cursor that is a number of items.
pub fn offset(cursor: Option<&str>) -> Result<usize, OpError> {
    let offset = cursor.map_or(Ok(0), str::parse::<u32>);
    offset.map(|it| it as usize).map_err(|_| wrong_cursor())
}

/// Returns a page of a list that is read whole.
pub fn page<T>(
    all: impl IntoIterator<Item = T>,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Page<T>, OpError> {
    let from = offset(cursor)?;
    let mut rest = all.into_iter().skip(from).peekable();
    let items = rest.by_ref().take(limit).collect();
    let next = rest.peek().map(|_| (from + limit).to_string());
    Ok((items, next))
}

/// Reads a page of the items that a scan finds, in at most `most` steps of it. A step may give more items than there is room
/// for: a cursor is the step, and the number of its items that were given already.
pub async fn scanned<T, F>(
    cursor: Option<&str>,
    limit: usize,
    most: usize,
    step: impl Fn(u64) -> F,
) -> Result<Page<T>, OpError>
where
    F: Future<Output = Result<(Vec<T>, u64), OpError>>,
{
    let (mut from, mut skip) = position(cursor)?;
    let (mut items, mut next) = (Vec::new(), None);
    for _ in 0..most {
        let (found, following) = step(from).await?;
        let rest = found.len().saturating_sub(skip);
        let given = rest.min(limit - items.len());
        items.extend(found.into_iter().skip(skip).take(given));
        let is_cut = rest > given;
        (from, skip) = match is_cut {
            true => (from, skip + given),
            false => (following, 0),
        };
        next = (is_cut || from != 0).then(|| format!("{from}.{skip}"));
        if next.is_none() || items.len() == limit {
            break;
        }
    }
    Ok((items, next))
}

/// Reads the position in a scan.
fn position(cursor: Option<&str>) -> Result<(u64, usize), OpError> {
    let Some(cursor) = cursor else {
        return Ok((0, 0));
    };
    let read = || {
        let (step, skip) = cursor.split_once('.')?;
        Some((step.parse().ok()?, skip.parse::<u32>().ok()? as usize))
    };
    read().ok_or_else(wrong_cursor)
}

/// Checks the size of a page.
pub fn limit(given: Option<usize>) -> Result<usize, OpError> {
    match given.unwrap_or(LIMIT) {
        limit if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        limit => Err(OpError::invalid(format!(
            "limit: {limit} is not possible: give 1 to {MAX_LIMIT}"
        ))),
    }
}
