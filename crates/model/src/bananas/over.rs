//! A job of Bananas as a job of ours, and the way back. Its name is its script type, which is the name of its handler in
//! Rust, or stands for a script; its route is its group, as [`Route::via`] has it. What was its record stays beside it,
//! so that the way back changes only what has changed. Bananas knows no such thing; the mapping is docs/routing.md's.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use super::draft::{Draft, Piece};
use super::record::{now, word_of};
use super::{DEFAULT_MAX_RETRIES, Record, Status, micros, read_time, score};
use crate::job::{Invalid, NewJob, When, field, limits};
use crate::keys::bananas::Bananas;
use crate::name::{JobId, NameError, RoutingKey, ScriptType};
use crate::route::{Priority, Route};

/// The first pause before a retry, in milliseconds, as Bananas has it.
const BACKOFF_MS: u64 = 2_000;

/// What runs jobs of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// A handler in Rust of the same name.
    Function,
    /// A script, which finds the payload where scripts find their input.
    Script {
        /// What runs it.
        script_type: ScriptType,
        /// Its text.
        text: String,
    },
}

/// Why a job cannot be one of ours. It stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Its id can be none of ours: Bananas' cron gives an empty one to all its jobs.
    #[error("its id can be none here: {0}")]
    Id(NameError),
    /// Its name can be no handler's here.
    #[error("its name can be no handler's here: {0}")]
    Name(NameError),
    /// A limit.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// Where a job stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On this list.
    List(String),
    /// Among those that wait for their time.
    Later,
    /// Among the dead letters.
    Dead,
}

impl Place {
    /// Its key.
    #[must_use]
    pub fn key(&self, keys: &Bananas) -> String {
        match self {
            Self::List(list) => list.clone(),
            Self::Later => keys.scheduled(),
            Self::Dead => keys.dead(),
        }
    }

    /// The word for its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Later => "later",
            Self::Dead => "dead",
        }
    }

    /// Which route and priority a job has that stands there: those of the list, except where clients push all routes
    /// to one list; else what the record says.
    #[must_use]
    pub fn way(&self, keys: &Bananas, record: &Record) -> (RoutingKey, Priority) {
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

/// What a job of ours knows of what it was: the field `mw_bananas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The key of its record.
    pub record: String,
    /// The key of its result.
    pub result: String,
    /// The channel on which its result is announced.
    pub channel: String,
    /// The key that it was taken from.
    pub place: String,
    /// Its time as it stood there, if it waited for one.
    pub time: Option<String>,
}

impl Origin {
    /// Of a job that stands in a place of Bananas.
    #[must_use]
    pub fn of(keys: &Bananas, id: &JobId, place: &Place, time: &str) -> Self {
        Self {
            record: keys.job(id.as_str()),
            result: keys.result(id.as_str()),
            channel: keys.notify(id.as_str()),
            place: place.key(keys),
            time: (*place == Place::Later).then(|| time.to_owned()),
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

/// A field that says of no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not say which job of Bananas it was")]
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

/// A job that goes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// As a job of ours.
    pub job: NewJob,
    /// What it was.
    pub origin: Origin,
    /// Its record, by which it is taken only as it was read.
    pub record: String,
    /// Runs so far, all of which failed.
    pub attempts: u32,
    /// Where in the record stands what its end changes.
    pub places: String,
    /// Why it failed last.
    pub error: String,
    /// When its record was written last, in milliseconds since 1970, if that can be told.
    pub written_ms: Option<u64>,
}

impl Passage {
    /// What stands in its record beside what [`NewJob::fields`] says.
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
    /// The job as one of ours. `timeout` is in seconds, since records do not say it.
    ///
    /// # Errors
    /// Why it cannot be one.
    pub fn passage(
        &self,
        keys: &Bananas,
        id: &str,
        (place, time): (&Place, &str),
        runs: &Runs,
        timeout: u64,
    ) -> Result<Passage, Unfit> {
        let id: JobId = id.parse().map_err(Unfit::Id)?;
        let (route, priority) = place.way(keys, self);
        let payload = self.payload();
        let (script_type, script, input) = match runs {
            Runs::Function => {
                let name = self.name().parse().map_err(Unfit::Name)?;
                (name, payload, None)
            }
            Runs::Script { script_type, text } => {
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
        Ok(Passage {
            job,
            origin,
            record: self.text().to_owned(),
            attempts: self.attempts(),
            places: self.places(),
            error: self.word("error"),
            written_ms: read_time(&self.word("updated_at")),
        })
    }

    /// Where in the text stands what the end of the job changes: per line the first byte, the one after the last, the
    /// field, and what has to stand before its value.
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
        // Those that begin at one place stay in this order.
        spots.sort_by_key(|(span, ..)| span.start);
        let line = |(span, field, before): (std::ops::Range<usize>, &str, String)| {
            format!("{} {} {field} {before}\n", span.start, span.end)
        };
        spots.into_iter().map(line).collect()
    }
}

/// How a job stands here that is to be given back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stands {
    /// Runs so far, all of which failed.
    pub attempts: u32,
    /// Why the last one did.
    pub error: Option<String>,
    /// When it is due, in milliseconds since 1970, if it waits for that.
    pub due_ms: Option<u64>,
    /// Whether it is a dead letter.
    pub dead: bool,
}

/// A job as it is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    /// Where it waits from then on.
    pub place: Place,
    /// Its time there.
    pub time: String,
    /// Its record: the same bytes where nothing has changed.
    pub record: Draft,
}

impl Record {
    /// The job as it is given back to where `origin` says; where it did not wait on a list, `list` is the one for it.
    #[must_use]
    pub fn given_back(
        &self,
        keys: &Bananas,
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
            (true, _) => (Place::Dead, String::new()),
            (false, Some(ms)) => match as_before.filter(|time| due_ms(time) == Some(ms)) {
                Some(time) => (Place::Later, time),
                None => {
                    changes.push(("scheduled_for", word_of(&micros(ms))));
                    (Place::Later, score(ms))
                }
            },
            (false, None) => {
                let from = keys.parse_list(&origin.place);
                let list = from.map_or(list, |_| &origin.place);
                (Place::List(list.to_owned()), String::new())
            }
        };
        let time_is_over = place != Place::Later && self.object().get("scheduled_for").is_some();
        let record = self.with(changes, time_is_over);
        Return {
            place,
            time,
            record,
        }
    }

    /// The record with these changes, and without its time; written now, if anything changes but that.
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

/// A time as it stands among those that wait for theirs, in milliseconds and never before it.
fn due_ms(time: &str) -> Option<u64> {
    let ms = (time.parse::<f64>().ok()? * 1000.0).ceil();
    // Beyond it no server can say milliseconds.
    (0.0..=9e15).contains(&ms).then_some(ms as u64)
}

/// A description as a context's id can say it.
fn shortened(text: &str) -> String {
    let text = text.split('\0').next().unwrap_or_default();
    text[..text.floor_char_boundary(limits::MAX_CALLER)].to_owned()
}
