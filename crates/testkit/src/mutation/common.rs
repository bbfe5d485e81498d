//! Changes of what every script begins with, each tried in a verb that uses it.

use super::Change;

/// Time in words.
pub(super) const TIMES: &[Change] = &[
    ("the_days_begin_elsewhere", "+ 719468", "+ 719467"),
    ("no_year_100_is_no_leap_year", " - div(yoe / 100))", ")"),
    ("the_years_of_a_century_drift", " + div(doe / 36524)", ""),
    (
        "the_last_day_of_an_era_is_missed",
        " - div(doe / 146096)",
        "",
    ),
    (
        "january_is_in_the_year_before",
        "(month <= 2 and 1 or 0)",
        "0",
    ),
    (
        "months_are_off_by_one",
        "mp < 10 and mp + 3",
        "mp < 10 and mp + 2",
    ),
    (
        "days_are_off_by_one",
        "/ 5) + 1, div(s / 3600)",
        "/ 5), div(s / 3600)",
    ),
    ("hours_do_not_end", "div(s / 3600) % 24", "div(s / 3600)"),
    ("minutes_do_not_end", "div(s / 60) % 60", "div(s / 60)"),
    ("milliseconds_are_lost", "s % 60, ms % 1000)", "s % 60, 0)"),
    ("milliseconds_are_not_padded", "%02d.%03dZ", "%02d.%dZ"),
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "always_at_the_beginning",
        "if given ~= '0' then",
        "if true then",
    ),
];

/// Whose time it is.
pub(super) const CLOCK: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "large_numbers_have_an_exponent",
        "string.format('%.0f', n)",
        "tostring(n)",
    ),
];

/// Who is told.
pub(super) const REPLY: &[Change] = &[
    (
        "reply_sent_although_not_wanted",
        "if wanted == '0' then return end",
        "",
    ),
    (
        "reply_kept_from_other_clients",
        "if wanted == '0' then",
        "if wanted ~= '1' then",
    ),
    ("reply_missing", "redis.call('LPUSH', list, payload)", ""),
    (
        "reply_kept_for_ever",
        "redis.call('PEXPIRE', list, ttl)",
        "",
    ),
    (
        "reply_kept_far_too_long",
        "redis.call('PEXPIRE', list, ttl)",
        "redis.call('EXPIRE', list, ttl)",
    ),
    (
        "reply_empty",
        "redis.call('LPUSH', list, payload)",
        "redis.call('LPUSH', list, '')",
    ),
];
