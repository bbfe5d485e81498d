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
        "if has.mw_reply == '0' then return end",
        "",
    ),
    (
        "reply_kept_from_other_clients",
        "if has.mw_reply == '0' then",
        "if has.mw_reply ~= '1' then",
    ),
    (
        "reply_missing",
        "if pushed('LPUSH', list, payload) then redis.call('PEXPIRE', list, REPLY_TTL) end",
        "",
    ),
    (
        "reply_kept_for_ever",
        "redis.call('PEXPIRE', list, REPLY_TTL)",
        "",
    ),
    (
        "reply_kept_far_too_long",
        "redis.call('PEXPIRE', list, REPLY_TTL)",
        "redis.call('EXPIRE', list, REPLY_TTL)",
    ),
    (
        "reply_empty",
        "pushed('LPUSH', list, payload)",
        "pushed('LPUSH', list, '')",
    ),
    (
        "reply_that_cannot_be_given_given_a_time_to_live",
        "if pushed('LPUSH', list, payload) then redis",
        "pushed('LPUSH', list, payload) if true then redis",
    ),
    (
        "reply_that_cannot_be_given_ends_the_call",
        "return type(redis.pcall(how, list, id)) == 'number'",
        "return type(redis.call(how, list, id)) == 'number'",
    ),
    (
        "old_clients_told_where_new_ones_wait",
        "if legacy ~= '0' then lists",
        "if false then lists",
    ),
    (
        "new_clients_told_where_old_ones_wait",
        "not has.mw_reply and has.mw_legacy or '0'",
        "not has.mw_reply and '1' or '0'",
    ),
    (
        "our_clients_told_where_old_ones_wait",
        "not has.mw_reply and has.mw_legacy or '0'",
        "has.mw_legacy or '0'",
    ),
    (
        "clients_that_wait_anywhere_told_where_old_ones_wait",
        "{OLD_REPLY, legacy == 'both' and REPLY or nil}",
        "{OLD_REPLY}",
    ),
    (
        "clients_on_canonical_queues_told_where_old_ones_wait",
        "if legacy ~= '0' then lists",
        "if not has.mw_reply and has.mw_legacy then lists",
    ),
];

/// What happened.
pub(super) const EVENTS: &[Change] = &[
    (
        "events_not_told",
        "local function event(id, what, by, note)\n",
        "local function event(id, what, by, note)\n  if true then return end\n",
    ),
    (
        "a_key_like_events_ends_the_call",
        "redis.pcall('XADD'",
        "redis.call('XADD'",
    ),
    ("nobody_did_it", "'by', line.by,", "'by', '',"),
    (
        "nothing_noted",
        "string.sub(note or '', 1, LONGEST_NOTE)",
        "''",
    ),
    (
        "notes_not_cut",
        "string.sub(note or '', 1, LONGEST_NOTE)",
        "note or ''",
    ),
    (
        "a_retry_not_told",
        "event(id, 'retry', has.mw_worker, ARGV[4])",
        "",
    ),
];
