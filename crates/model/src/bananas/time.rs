//! Times in the format that all implementations of Bananas read: six decimals of a second and `Z`. Go writes nine,
//! which older Pythons refuse. Python writes no zone, which Go refuses.

/// Formats milliseconds since 1970 as `2026-01-31T12:00:00.000000Z`, like the scripts.
#[must_use]
pub fn micros(ms: u64) -> String {
    let mut text = crate::time::iso(ms);
    text.truncate(text.len() - 1);
    text + "000Z"
}

/// Formats milliseconds since 1970 in whole seconds, as in results and in the state of cron schedules.
#[must_use]
pub fn seconds(ms: u64) -> String {
    let mut text = crate::time::iso(ms);
    text.truncate(text.len() - ".000Z".len());
    text + "Z"
}

/// Parses a time of any of Bananas' programs to milliseconds since 1970. Returns `None` for a time without a zone and
/// for times before 1970, which Go writes for no time.
#[must_use]
pub fn read(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// Formats milliseconds since 1970 as seconds, the score of a delayed job.
#[must_use]
pub fn score(ms: u64) -> String {
    let (seconds, rest) = (ms / 1000, ms % 1000);
    if rest == 0 {
        return seconds.to_string();
    }
    format!("{seconds}.{rest:03}")
        .trim_end_matches('0')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits() {
        assert_eq!(micros(951_782_399_999), "2000-02-28T23:59:59.999000Z");
    }

    #[test]
    fn all_makes_are_read() {
        assert_eq!(seconds(951_782_399_999), "2000-02-28T23:59:59Z");
        for (text, ms) in [
            ("2000-02-28T23:59:59.999Z", Some(951_782_399_999)),
            ("2000-02-28T23:59:59.999123456Z", Some(951_782_399_999)),
            ("2000-02-29T01:59:59+02:00", Some(951_782_399_000)),
            ("2000-02-28T23:59:59", None),
            ("0001-01-01T00:00:00Z", None),
            ("soon", None),
        ] {
            assert_eq!(read(text), ms, "{text}");
        }
    }

    #[test]
    fn scores_are_seconds() {
        let all = [1_000, 1_500, 1_050, 1_795_178_027_304].map(score);
        assert_eq!(all, ["1", "1.5", "1.05", "1795178027.304"]);
    }
}
