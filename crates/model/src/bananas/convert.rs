//! Conversion of a job of Bananas to a job of Meshwork, and back. The job's name becomes the type of its script: a
//! handler in Rust of that name, or a script. Its route becomes its group, as in [`Route::via`]. The original record
//! is kept beside the job, so that the way back changes only fields that have changed. Bananas has no such
//! conversion; docs/routing.md defines it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use super::draft::{Draft, Piece};
use super::record::{now, word_of};
use super::{DEFAULT_MAX_RETRIES, Record, Status, micros, read_time, score};
use crate::job::{Invalid, NewJob, When, field, limits};
use crate::keys::bananas::BananasKeys;
use crate::name::{JobId, NameError, RoutingKey, ScriptType};
use crate::route::{Priority, Route};

/// First pause before a retry, in milliseconds, as in Bananas.
const BACKOFF_MS: u64 = 2_000;

/// The handler of jobs with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerKind {
    /// A handler in Rust of the same name.
    Function,
    /// A script, which reads the payload as its input.
    Script {
        /// Type of the script.
        script_type: ScriptType,
        /// Text of the script.
        text: String,
    },
}

/// The reason why a job cannot be converted. Such a job stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotConvertible {
    /// The id is not valid in Meshwork: Bananas' cron gives its jobs an empty one.
    #[error("the id is not valid in Meshwork: {0}")]
    Id(NameError),
    /// The name is not a valid name of a handler.
    #[error("the name is not a valid handler name: {0}")]
    Name(NameError),
    /// A limit is exceeded.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// The key that lists a job in Bananas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bucket {
    /// This list.
    List(String),
    /// The delayed jobs.
    Later,
    /// The dead letters.
    Dead,
}

impl Bucket {
    /// Returns the key.
    #[must_use]
    pub fn key(&self, keys: &BananasKeys) -> String {
        match self {
            Self::List(list) => list.clone(),
            Self::Later => keys.scheduled(),
            Self::Dead => keys.dead(),
        }
    }

    /// Returns the word for the kind of key.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Later => "later",
            Self::Dead => "dead",
        }
    }

    /// Returns the route and priority of a job listed here: those of the list. Where clients push all routes to one
    /// list, they come from the record.
    #[must_use]
    pub fn way(&self, keys: &BananasKeys, record: &Record) -> (RoutingKey, Priority) {
        let said = record.route().unwrap_or_default();
        match self {
            Self::List(list) => match keys.parse_list(list) {
                Some((_, priority)) if keys.is_plain(list) => (said, priority),
                Some(way) => way,
                None => (said, record.priority()),
            },
            _ => (said, record.priority()),
        }
    }
}

/// The origin of a converted job: the field `mw_bananas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Key of the job's record.
    pub record: String,
    /// Key of its result.
    pub result: String,
    /// Channel on which its result is published.
    pub channel: String,
    /// Key that listed the job.
    pub place: String,
    /// Score of a delayed job, unchanged.
    pub time: Option<String>,
}

impl Origin {
    /// Returns the origin of a job that `place` lists.
    #[must_use]
    pub fn of(keys: &BananasKeys, id: &JobId, place: &Bucket, time: &str) -> Self {
        Self {
            record: keys.job(id.as_str()),
            result: keys.result(id.as_str()),
            channel: keys.notify(id.as_str()),
            place: place.key(keys),
            time: (*place == Bucket::Later).then(|| time.to_owned()),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (record, result, channel) = (&self.record, &self.result, &self.channel);
        write!(f, "{record} {result} {channel} {}", self.place)?;
        match &self.time {
            Some(time) => write!(f, " {time}"),
            None => Ok(()),
        }
    }
}

/// A field that is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not have the id of a job of Bananas")]
pub struct UnknownOrigin(String);

impl FromStr for Origin {
    type Err = UnknownOrigin;

    fn from_str(text: &str) -> Result<Self, UnknownOrigin> {
        let mut words = text.split(' ').map(str::to_owned);
        let mut word = || words.next().ok_or_else(|| UnknownOrigin(text.to_owned()));
        Ok(Self {
            record: word()?,
            result: word()?,
            channel: word()?,
            place: word()?,
            time: words.next(),
        })
    }
}

/// A converted job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// The job of Meshwork.
    pub job: NewJob,
    /// Its origin.
    pub origin: Origin,
    /// Its record. The script converts the job only if the record is still the same.
    pub record: String,
    /// Number of runs so far, all of which failed.
    pub attempts: u32,
    /// Spans of the record that the end of the job changes.
    pub places: String,
    /// Error of the last failure.
    pub error: String,
    /// Time of the last write of the record, in milliseconds since 1970, if the record has it.
    pub written_ms: Option<u64>,
}

impl Conversion {
    /// Returns fields of the job's record beside those of [`NewJob`].
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut fields = vec![
            (field::BANANAS, self.origin.to_string().into()),
            (field::RECORD, self.record.clone().into()),
            (field::PLACES, self.places.clone().into()),
            (field::WITH, "1".into()),
        ];
        if self.attempts > 0 {
            fields.push((field::ATTEMPT, self.attempts.to_string().into()));
        }
        fields
    }
}

impl Record {
    /// Converts the job. `timeout` is in seconds; records of Bananas do not have it.
    ///
    /// # Errors
    /// [`NotConvertible`] if the job cannot be converted.
    pub fn conversion(
        &self,
        keys: &BananasKeys,
        id: &str,
        (place, time): (&Bucket, &str),
        runs: &HandlerKind,
        timeout: u64,
    ) -> Result<Conversion, NotConvertible> {
        let id: JobId = id.parse().map_err(NotConvertible::Id)?;
        let (route, priority) = place.way(keys, self);
        let payload = self.payload();
        let (script_type, script, input) = match runs {
            HandlerKind::Function => {
                let name = self.name().parse().map_err(NotConvertible::Name)?;
                (name, payload, None)
            }
            HandlerKind::Script { script_type, text } => {
                (script_type.clone(), text.as_str(), Some(payload.into()))
            }
        };
        let route = Route {
            priority,
            ..Route::to(script_type).via(&route)
        };
        let origin = Origin::of(keys, &id, place, time);
        let most = self.max_retries().unwrap_or(DEFAULT_MAX_RETRIES);
        let due = origin.time.as_deref().and_then(due_ms);
        let job = NewJob {
            input,
            caller_id: format!("bananas/{}", self.name()),
            context_id: shortened(&self.word("description")),
            timeout,
            // Bananas counts all runs.
            retries: most.saturating_sub(1),
            backoff_ms: Some(BACKOFF_MS),
            when: due.map(When::At),
            ..NewJob::new(id, route, script)
        };
        job.check()?;
        Ok(Conversion {
            job,
            origin,
            record: self.text().to_owned(),
            attempts: self.attempts(),
            places: self.places(),
            error: self.word("error"),
            written_ms: read_time(&self.word("updated_at")),
        })
    }

    /// Returns the spans of the text that the end of the job changes. Each line has the first byte, the byte after
    /// the last, the field, and the text to insert before its value.
    fn places(&self) -> String {
        let object = self.object();
        let after: [(&str, &[&str]); 4] = [
            ("status", &["payload"]),
            ("updated_at", &["created_at"]),
            ("attempts", &["updated_at"]),
            ("error", &["max_retries", "attempts"]),
        ];
        let mut spots: Vec<_> = after
            .into_iter()
            .map(|(field, after)| {
                let (span, before) = object.spot(field, after);
                (span, field, before)
            })
            .collect();
        let cut = object.cut("scheduled_for");
        spots.extend(cut.map(|span| (span, "scheduled_for", String::new())));
        // The sort is stable: spans with one start keep their order.
        spots.sort_by_key(|(span, ..)| span.start);
        let line = |(span, field, before): (std::ops::Range<usize>, &str, String)| {
            format!("{} {} {field} {before}\n", span.start, span.end)
        };
        spots.into_iter().map(line).collect()
    }
}

/// The state of a job that is to be exported back to Bananas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stands {
    /// Number of runs so far, all of which failed.
    pub attempts: u32,
    /// Error of the last run.
    pub error: Option<String>,
    /// Time at which a delayed job is due, in milliseconds since 1970.
    pub due_ms: Option<u64>,
    /// True for a dead letter.
    pub dead: bool,
}

/// An exported job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    /// Key that will list the job.
    pub place: Bucket,
    /// Score of the job in that key.
    pub time: String,
    /// Record of the job: the same bytes where nothing has changed.
    pub record: Draft,
}

impl Record {
    /// Returns the job as it is exported to the key that `origin` names. A job that was not on a list goes to `list`.
    #[must_use]
    pub fn exported_record(
        &self,
        keys: &BananasKeys,
        stands: &Stands,
        origin: &Origin,
        list: &str,
    ) -> Return {
        let mut changes = Vec::new();
        if stands.attempts != self.attempts() {
            changes.push(("attempts", vec![Piece::Text(stands.attempts.to_string())]));
            let error = stands.error.as_deref();
            changes.extend(error.map(|error| ("error", word_of(error))));
        }
        let failed = self.status() == Some(Status::Failed);
        if failed != stands.dead {
            let status = if stands.dead {
                Status::Failed
            } else {
                Status::Pending
            };
            changes.push(("status", word_of(status.as_str())));
        }
        let as_before = origin.time.clone().filter(|_| changes.is_empty());
        let (place, time) = match (stands.dead, stands.due_ms) {
            (true, _) => (Bucket::Dead, String::new()),
            (false, Some(ms)) => match as_before.filter(|time| due_ms(time) == Some(ms)) {
                Some(time) => (Bucket::Later, time),
                None => {
                    changes.push(("scheduled_for", word_of(&micros(ms))));
                    (Bucket::Later, score(ms))
                }
            },
            (false, None) => {
                let from = keys.parse_list(&origin.place);
                let list = from.map_or(list, |_| &origin.place);
                (Bucket::List(list.to_owned()), String::new())
            }
        };
        let time_is_over = place != Bucket::Later && self.object().get("scheduled_for").is_some();
        let record = self.with(changes, time_is_over);
        Return {
            place,
            time,
            record,
        }
    }

    /// Returns the record with these changes and without its due time. The write time changes only if another field
    /// does.
    fn with(&self, changes: Vec<(&str, Vec<Piece>)>, without_time: bool) -> Draft {
        let mut edit = self.object().edit();
        if !changes.is_empty() {
            edit = edit.set("updated_at", now(0), &["created_at"]);
        }
        for (field, value) in changes {
            edit = edit.set(field, value, &["max_retries", "updated_at", "payload"]);
        }
        if without_time {
            edit = edit.remove("scheduled_for");
        }
        edit.done()
    }
}

/// Parses the score of a delayed job, in milliseconds, rounded up.
fn due_ms(time: &str) -> Option<u64> {
    let ms = (time.parse::<f64>().ok()? * 1000.0).ceil();
    // Servers cannot represent larger times in milliseconds.
    (0.0..=9e15).contains(&ms).then_some(ms as u64)
}

/// Shortens a description to the length of a context id.
fn shortened(text: &str) -> String {
    let text = text.split('\0').next().unwrap_or_default();
    text[..text.floor_char_boundary(limits::MAX_CALLER)].to_owned()
}
