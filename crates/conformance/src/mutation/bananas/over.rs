//! Changes of what takes jobs of Bananas over, gives them back, and tells Bananas how they end here.

use super::Change;

pub(super) const PEEK: &[Change] = &[
    (
        "unbounded",
        "  if bytes >= MOST_BYTES then return end\n",
        "  if bytes > 0 then return end\n",
    ),
    ("begins_elsewhere", "-from - most, -from - 1", "-most, -1"),
    (
        "the_last_first",
        "for i = #ids, 1, -1 do",
        "for i = 1, #ids do",
    ),
    (
        "times_begin_elsewhere",
        "from, from + most - 1",
        "0, most - 1",
    ),
    (
        "time_not_told",
        "tell(ids[i], ids[i + 1])",
        "tell(ids[i], '')",
    ),
    (
        "end_not_told",
        "state, record, done_at(id)}",
        "state, record, ''}",
    ),
    (
        "length_not_told",
        "{redis.call('LLEN', KEYS[1]), found}",
        "{0, found}",
    ),
    (
        "number_of_times_not_told",
        "{redis.call('ZCARD', KEYS[1]), found}",
        "{0, found}",
    ),
    (
        "another_kind_ends_all",
        "if kind == 'list' then",
        "if kind ~= 'zset' then",
    ),
];

pub(super) const TAKE_OVER: &[Change] = &[
    (
        "notes_not_looked_at_first",
        "redis.call('ZCARD', TAKEN)",
        "",
    ),
    (
        "another_time_taken",
        "if redis.call('ZSCORE', place, id) ~= time then",
        "if not redis.call('ZSCORE', place, id) then",
    ),
    (
        "what_comes_due_taken",
        "    if not overdue and tonumber(time) * 1000 <= now + NEAR then return 'due' end\n",
        "",
    ),
    (
        "what_is_overdue_left",
        "if not overdue and tonumber(time)",
        "if tonumber(time)",
    ),
    ("due_a_little_later", "<= now + NEAR", "< now + NEAR"),
    ("due_by_its_own_clock", "<= now + NEAR", "<= now"),
    (
        "what_is_gone_taken",
        "    if not redis.call('LPOS', place, id, 'RANK', -1, 'MAXLEN', depth) then return 'gone' end\n",
        "",
    ),
    (
        "whole_list_walked",
        "'RANK', -1, 'MAXLEN', depth)",
        "'RANK', -1)",
    ),
    (
        "looked_for_from_the_other_end",
        "'RANK', -1, 'MAXLEN'",
        "'RANK', 1, 'MAXLEN'",
    ),
    (
        "what_its_scheduler_pushes_taken",
        "    if redis.call('ZSCORE', waiting, id) then return 'due' end\n",
        "",
    ),
    (
        "what_ours_run_taken",
        "redis.call('HEXISTS', held, id) == 1 or ",
        "",
    ),
    (
        "what_theirs_run_taken",
        " or redis.call('LPOS', running, id) then",
        " then",
    ),
    (
        "digest_not_checked",
        "return digest(look_at(record)) ~= seen and 'changed'",
        "return nil",
    ),
    (
        "dead_letter_written_over",
        "  if redis.call('EXISTS', key) == 1 then return 'exists' end\n  put(key, id, script_type, 'error', at, from)",
        "  put(key, id, script_type, 'error', at, from)",
    ),
    (
        "dead_letter_waits",
        "put(key, id, script_type, 'error', at, from)",
        "put(key, id, script_type, 'dispatched', at, from)",
    ),
    (
        "error_not_written",
        "redis.call('HSET', key, 'error', why, 'mw_dead', 'failed')",
        "redis.call('HSET', key, 'mw_dead', 'failed')",
    ),
    (
        "no_dead_letter_any_more",
        "redis.call('HSET', key, 'error', why, 'mw_dead', 'failed')",
        "redis.call('HSET', key, 'error', why)",
    ),
    (
        "not_among_the_dead",
        "  redis.pcall('ZADD', DEAD, whole(math.min(now, tonumber(died) or now)), id)\n",
        "",
    ),
    (
        "dead_since_now",
        "whole(math.min(now, tonumber(died) or now))",
        "whole(now)",
    ),
    (
        "dead_in_the_future",
        "math.min(now, tonumber(died) or now)",
        "tonumber(died) or now",
    ),
    (
        "dead_letter_not_counted",
        "for _, what in ipairs({'created', 'failed', 'dead'}) do count(queue, what) end",
        "",
    ),
    (
        "dead_letter_not_told",
        "  event(id, 'enqueue', who, script_type)\n  return 'stored'\nend\n\nlocal function leave_place",
        "  return 'stored'\nend\n\nlocal function leave_place",
    ),
    (
        "still_among_the_times",
        "if kind == 'later' then redis.call('ZREM', place, id) else",
        "if kind == 'later' then return else",
    ),
    (
        "still_on_the_list",
        "redis.call('LREM', place, -1, id) end",
        "return end",
    ),
    (
        "other_entries_taken_off_too",
        "redis.call('LREM', place, -1, id)",
        "redis.call('LREM', place, 0, id)",
    ),
    (
        "not_numbered",
        "whole((tonumber(newest or '') or 0) + 1)",
        "1",
    ),
    (
        "not_noted",
        "redis.call('ZADD', TAKEN, whole",
        "local _ = (whole",
    ),
    (
        "going_over_not_told",
        "      event(id, 'take_over', who, place)\n",
        "",
    ),
    (
        "any_job_of_its_id_taken_for_it",
        "if is and is.mw_bananas and not final(is.status)",
        "if is and not final(is.status)",
    ),
    (
        "one_that_has_ended_taken_for_it",
        "is.mw_bananas and not final(is.status) then",
        "is.mw_bananas then",
    ),
    (
        "second_entry_stays",
        "      leave_place(id)\n      answer = 'twice'",
        "      answer = 'twice'",
    ),
    (
        "an_odd_queue_ends_all",
        "type(answer) == 'table' and 'odd ' .. answer.err or answer",
        "answer",
    ),
    (
        "not_pushed",
        "push_all()\nreturn done(told)",
        "return done(told)",
    ),
];

pub(super) const GIVE_BACK: &[Change] = &[
    (
        "any_job_given",
        "  if not has.mw_bananas then return 'gone' end\n",
        "",
    ),
    (
        "what_runs_given",
        "  if has.status == 'started' then return 'runs' end\n",
        "",
    ),
    ("status_not_compared", "if has.status ~= status or ", "if "),
    ("runs_not_compared", "has_begun ~= begun or ", ""),
    (
        "time_not_compared",
        " or tonumber(is_due) ~= tonumber(due) then",
        " then",
    ),
    (
        "awaited_job_given",
        "return redis.call('EXISTS', NEXT .. id) == 1 and 'awaited'",
        "return nil",
    ),
    (
        "record_of_another_kind_written_over",
        "return (is == 'string' or is == 'none')\n    and type",
        "return type",
    ),
    (
        "lost_record_not_written",
        "(is == 'string' or is == 'none')",
        "is == 'string'",
    ),
    (
        "place_of_another_kind_pushed_to",
        "\n    and type(redis.pcall(kind == 'later' and 'ZCARD' or 'LLEN', place)) == 'number'",
        "",
    ),
    (
        "id_not_removed_from_the_queue",
        "    unqueue(queue, id)\n",
        "",
    ),
    (
        "not_forgotten_here",
        "    forget(id)\n    redis.call",
        "    redis.call",
    ),
    (
        "record_not_written",
        "    redis.call('SET', KEYS[k + 2], text)\n",
        "",
    ),
    (
        "dead_record_without_end",
        "    if kind == 'dead' then redis.call('PEXPIRE', KEYS[k + 2], DEAD_FOR) end\n",
        "",
    ),
    (
        "each_record_has_an_end",
        "if kind == 'dead' then redis.call('PEXPIRE'",
        "if true then redis.call('PEXPIRE'",
    ),
    (
        "pushed_as_the_next",
        "redis.call('LPUSH', KEYS[k + 3], id)",
        "redis.call('RPUSH', KEYS[k + 3], id)",
    ),
    (
        "not_pushed",
        "else redis.call('LPUSH', KEYS[k + 3], id) end",
        "end",
    ),
    (
        "due_at_another_time",
        "redis.call('ZADD', KEYS[k + 3], time, id)",
        "redis.call('ZADD', KEYS[k + 3], 1, id)",
    ),
    (
        "going_back_not_told",
        "    event(id, 'give_back', who, KEYS[k + 3])\n",
        "",
    ),
];

/// Of an end in good.
pub(super) const TOLD: &[Change] = &[
    (
        "bananas_not_told",
        "    if has.mw_bananas then answer(id, key, status == 'finished', payload, now) end\n",
        "",
    ),
    (
        "duration_not_told_to_bananas",
        "whole(math.max(0, now - (tonumber(has.mw_started or '') or now)))",
        "'0'",
    ),
    (
        "no_result_is_a_result",
        "payload ~= '' and 'result' or nil",
        "'result'",
    ),
    (
        "told_as_a_failure",
        "pcall(announce, result, channel, now, took, name, payload)",
        "pcall(announce, result, channel, now, took, 'error', payload)",
    ),
    (
        "record_of_bananas_not_written",
        "  redis.pcall('SET', record, spliced",
        "  local _ = (spliced",
    ),
    (
        "record_of_another_kind_written_over",
        " or not (kind == 'string' or kind == 'none') then return end",
        " then return end",
    ),
    (
        "lost_record_of_bananas_stays_lost",
        "(kind == 'string' or kind == 'none')",
        "(kind == 'string')",
    ),
    (
        "time_in_the_record_not_changed",
        "{updated_at = '\"' .. string.sub(iso(now), 1, 23) .. '000Z\"', scheduled_for = ''}",
        "{scheduled_for = ''}",
    ),
    (
        "status_in_the_record_not_changed",
        "  values.status = good and '\"completed\"' or '\"failed\"'\n",
        "",
    ),
    (
        "record_stays_as_long_as_a_dead_letter",
        "good and COMPLETED_FOR or DEAD_FOR)",
        "DEAD_FOR)",
    ),
    (
        "a_byte_stays_before_what_follows",
        "at = tonumber(to) + 1",
        "at = tonumber(to)",
    ),
];

/// Of a failure.
pub(super) const TOLD_FAILED: &[Change] = &[
    (
        "runs_in_the_record_not_changed",
        "values.attempts, values.error = tonumber(has.mw_attempt or '') and has.mw_attempt or '0', in_quotes(payload)",
        "values.error = in_quotes(payload)",
    ),
    (
        "error_in_the_record_not_changed",
        "values.attempts, values.error = tonumber(has.mw_attempt or '') and has.mw_attempt or '0', in_quotes(payload)",
        "values.attempts = has.mw_attempt",
    ),
    ("quotes_not_escaped", "'[%c\"\\\\]'", "'[%c\\\\]'"),
    (
        "control_characters_not_escaped",
        "'[%c\"\\\\]'",
        "'[\"\\\\]'",
    ),
    ("time_stays_in_the_record", ", scheduled_for = ''}", "}"),
    (
        "what_stands_before_a_value_left_out",
        ".. before .. values[field]",
        ".. values[field]",
    ),
];

/// Of a job that is deleted.
pub(super) const TOLD_DELETED: &[Change] = &[
    ("taken_over_for_ever", "DELAYED, TAKEN})", "DELAYED})"),
    (
        "bananas_not_told",
        "if has.mw_bananas and not final(has.status) then",
        "if false then",
    ),
    (
        "bananas_told_twice",
        "if has.mw_bananas and not final(has.status) then",
        "if has.mw_bananas then",
    ),
];
