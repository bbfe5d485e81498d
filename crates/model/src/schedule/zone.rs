//! Time zones by IANA name. The rules are compiled in (the IANA database of the release), so that all workers agree,
//! whatever their hosts have.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Number of names that an error suggests.
const SUGGESTIONS: usize = 3;

/// A time zone. Default: UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// A name that no time zone has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no time zone: give an IANA name, as {}", suggested.join(", "))]
pub struct ZoneError {
    name: String,
    suggested: Vec<String>,
}

impl Zone {
    /// Returns the IANA name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Formats a moment, in milliseconds since 1970, in this zone: `2026-03-29T02:30:00+02:00`, with `Z` for the offset zero.
    #[must_use]
    pub fn show(&self, ms: u64) -> String {
        let moment = i64::try_from(ms)
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let moment = moment.unwrap_or(Timestamp::MAX).to_zoned(self.0.clone());
        let text = moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        text.replace("+00:00", "Z")
    }

    pub(super) fn rules(&self) -> &TimeZone {
        &self.0
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    /// Parses a name; case does not matter.
    fn from_str(text: &str) -> Result<Self, ZoneError> {
        if text.eq_ignore_ascii_case("utc") {
            return Ok(Self::default());
        }
        DATABASE.get(text).map(Self).map_err(|_| ZoneError {
            name: text.to_owned(),
            suggested: suggested(text),
        })
    }
}

/// Returns names with the same last part: users mostly mistake the continent.
fn suggested(text: &str) -> Vec<String> {
    let text = text.to_ascii_lowercase().replace(' ', "_");
    let city = text.rsplit('/').next().unwrap_or_default();
    let like = |name: &str| city.len() > 2 && name.to_ascii_lowercase().contains(city);
    let mut names: Vec<_> = DATABASE
        .available()
        .map(|name| name.to_string())
        .filter(|name| like(name))
        .take(SUGGESTIONS)
        .collect();
    if names.is_empty() {
        names = ["UTC", "Europe/Brussels"].map(str::to_owned).into();
    }
    names
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_go_by_their_names() {
        for name in [
            "UTC",
            "Europe/Brussels",
            "Australia/Lord_Howe",
            "Asia/Kathmandu",
            "Etc/GMT+5",
        ] {
            assert_eq!(name.parse::<Zone>().unwrap().name(), name);
        }
        assert_eq!(
            "europe/brussels".parse::<Zone>().unwrap().name(),
            "Europe/Brussels"
        );
        assert_eq!("utc".parse::<Zone>().unwrap(), Zone::default());
    }

    #[test]
    fn a_time_of_utc_has_one_form_in_all_zones() {
        let january = 1_769_860_800_000;
        for name in ["UTC", "Etc/UTC", "Etc/Zulu", "GMT", "Europe/London"] {
            let shown = name.parse::<Zone>().unwrap().show(january);
            assert_eq!(shown, "2026-01-31T12:00:00Z", "{name}");
        }
    }

    #[test]
    fn a_wrong_name_is_refused_with_a_better_one() {
        let said = |name: &str| name.parse::<Zone>().unwrap_err().to_string();
        assert!(said("Europe/New York").contains("America/New_York"));
        assert!(said("CEST").contains("Europe/Brussels"));
        for name in ["", "+01:00", "../UTC", "Local"] {
            assert!(name.parse::<Zone>().is_err(), "{name}");
        }
    }
}
