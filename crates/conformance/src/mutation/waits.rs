//! Changes of how jobs wait for others, and stand on two lists.

use super::Change;

pub(super) const FOREIGN: &[Change] = &[
    (
        "stale_while_it_waits",
        "  unwatch(id)\n  redis.call('HSET', key, 'mw_attempt', 0)\n",
        "  redis.call('HSET', key, 'mw_attempt', 0)\n",
    ),
    (
        "prerequisites_ignored",
        "if is.mw_reply or is.mw_attempt then return false, 0 end",
        "if true then return false, 0 end",
    ),
    (
        "our_jobs_asked",
        "if is.mw_reply or is.mw_attempt then",
        "if is.mw_attempt then",
    ),
    (
        "asked_again_after_a_run",
        "if is.mw_reply or is.mw_attempt then",
        "if is.mw_reply then",
    ),
    (
        "prerequisites_not_read",
        "ipairs({'prerequisites', 'dependencies'})",
        "ipairs({'dependencies'})",
    ),
    (
        "dependencies_not_read",
        "ipairs({'prerequisites', 'dependencies'})",
        "ipairs({'prerequisites'})",
    ),
    (
        "what_cannot_be_read_is_ignored",
        "if not read_ids(seen, ids, is[field]) then",
        "if not read_ids(seen, ids, is[field]) and false then",
    ),
    (
        "blanks_around_a_list_not_taken_off",
        "string.sub(text, first, -last)",
        "text",
    ),
    ("null_is_an_id", "or text == 'null' or", "or"),
    (
        "an_empty_object_is_unreadable",
        " or string.find(text, '^{%s*}$') then",
        " then",
    ),
    (
        "an_empty_list_is_unreadable",
        "    if not string.find(inner, '%S') then return true end\n",
        "",
    ),
    (
        "a_list_may_be_open",
        "and string.sub(text, -1) == ']' then",
        "then",
    ),
    ("numbers_not_read", "'^%s*(%d+)%s*'", "'^%s*(%d%d+)%s*'"),
    (
        "words_in_a_list_read",
        "'^%s*(%d+)%s*'",
        "'^%s*([^%s,%[%]\"]+)%s*'",
    ),
    ("plain_ids_with_blanks", "'^%s*([^%s%c\"", "'^%s*([^%c\""),
    ("plain_ids_with_signs", "\\'{}%[%],]+)%s*'", ",]+)%s*'"),
    ("escapes_taken_as_they_are", "([^\"\\\\%c]+)", "([^\"%c]+)"),
    ("empty_ids", "([^\"\\\\%c]+)", "([^\"\\\\%c]*)"),
    (
        "the_same_id_twice",
        "if not seen[id] then seen[id] = true ids",
        "do seen[id] = true ids",
    ),
    (
        "what_follows_an_id_is_ignored",
        "return comma == '' or comma == ','",
        "return true",
    ),
    (
        "as_many_ids_as_one_likes",
        "while comma == ',' and #ids <= MOST_PREREQUISITES do",
        "while comma == ',' do",
    ),
    (
        "waits_for_itself",
        "if seen[id] then why",
        "if false then why",
    ),
    (
        "prerequisites_not_limited",
        "elseif #ids > MOST_PREREQUISITES then why",
        "elseif false then why",
    ),
    (
        "one_that_is_not_there_yet_ends_it",
        "unmet(ids, is.mw_on_failure, true)",
        "unmet(ids, is.mw_on_failure)",
    ),
    (
        "a_record_made_up_for_one_that_is_not_there",
        "if not there(record) then -- it may never come",
        "if false then",
    ),
    (
        "note_kept_for_ever",
        "      redis.pcall('PEXPIRE', note, whole((wait or 0) + OUTLASTS), unpack(noted == 1 and {} or {'GT'}))\n",
        "",
    ),
    (
        "note_gone_too_soon",
        "(wait or 0) + OUTLASTS",
        "(wait or 0)",
    ),
    (
        "note_gone_with_the_last_who_waits",
        "noted == 1 and {} or {'GT'}",
        "{}",
    ),
    (
        "note_kept_since_it_is_new",
        "noted == 1 and {} or {'GT'}",
        "{'GT'}",
    ),
    (
        "prerequisites_limited_too_soon",
        "local MOST_PREREQUISITES = 1000",
        "local MOST_PREREQUISITES = 300",
    ),
    (
        "prerequisites_not_counted",
        "looked = looked + prerequisites",
        "",
    ),
    (
        "rest_not_returned",
        "if walked or looked > MOST then",
        "if walked then",
    ),
    (
        "held_not_counted",
        "if waiting or postpone(is, id, key, list(k), queue, legacy) then\n    dropped = dropped + 1",
        "if waiting or postpone(is, id, key, list(k), queue, legacy) then",
    ),
    (
        "held_job_runs",
        "if waiting or postpone(is, id, key, list(k), queue, legacy) then\n    dropped = dropped + 1\n    return\n  end\n",
        "if waiting or postpone(is, id, key, list(k), queue, legacy) then end\n",
    ),
    (
        "failed_prerequisite_ignored",
        "if not open then fault(id, key, is, why, now, nil, '', false, 'prerequisite')",
        "if not open then",
    ),
    (
        "failed_prerequisite_tells_nobody",
        "if not open then fault(id, key, is, why",
        "if not open then fault(id, key, {mw_reply = '0'}, why",
    ),
    (
        "on_failure_not_asked",
        "unmet(ids, is.mw_on_failure, true)",
        "unmet(ids, nil, true)",
    ),
    (
        "timeout_of_its_own_ignored",
        "s and s > 0 and s <= MAX_TIMEOUT and s or DEFAULT_TIMEOUT",
        "DEFAULT_TIMEOUT",
    ),
    (
        "timeout_in_milliseconds",
        "return 1000 * (s and",
        "return (s and",
    ),
    (
        "held_in_no_queue",
        "else hold(id, key, queue, open,",
        "else hold(id, key, '', open,",
    ),
    (
        "status_left_as_it_was",
        "'HSET', key, 'status', 'dispatched', 'mw_waiting',",
        "'HSET', key, 'mw_waiting',",
    ),
];

pub(super) const HOLD: &[Change] = &[
    ("nobody_told_of_it", "redis.pcall('RPUSH', note, id)", "nil"),
    (
        "told_in_the_wrong_order",
        "redis.pcall('RPUSH', note, id)",
        "redis.pcall('LPUSH', note, id)",
    ),
    (
        "a_key_like_its_list_ends_the_call",
        "redis.pcall('RPUSH', note, id)",
        "redis.call('RPUSH', note, id)",
    ),
    (
        "dependents_not_written",
        "redis.call('HSET', record, 'dependents', before .. comma .. name .. ']')",
        "",
    ),
    (
        "dependents_of_others_lost",
        "string.match(known, '^%s*(%[.*)%]%s*$') or '['",
        "'['",
    ),
    (
        "dependents_that_are_no_list_kept",
        "string.match(known, '^%s*(%[.*)%]%s*$') or '['",
        "string.match(known, '^%s*(.*)%]%s*$') or known",
    ),
    (
        "dependents_twice",
        "if not string.find(before, name, 1, true) then",
        "if true then",
    ),
    (
        "dependents_without_a_comma",
        "string.find(before, '\"', 1, true) and ',' or ''",
        "''",
    ),
    (
        "dependents_without_end",
        "local LONGEST_DEPENDENTS = 40000",
        "local LONGEST_DEPENDENTS = 4000000",
    ),
    (
        "waits_for_the_first_only",
        "table.concat(open, '\" \"')",
        "open[1]",
    ),
    (
        "queue_not_written",
        "    'mw_queue', queue, unpack(wait",
        "    unpack(wait",
    ),
    (
        "never_expires",
        "wait and {'mw_expires', whole(expires)} or {}",
        "{}",
    ),
    (
        "always_expires",
        "wait and {'mw_expires', whole(expires)} or {}",
        "{'mw_expires', whole(expires)}",
    ),
    (
        "expires_at_once",
        "now + (wait or INFINITE)",
        "now + (wait and 0 or INFINITE)",
    ),
    (
        "nobody_looks_at_one_that_waits",
        "  redis.pcall('ZADD', WATCH, whole(math.min(expires, now + LOOK_EVERY)), id)\n",
        "",
    ),
    (
        "looked_at_late",
        "redis.pcall('ZADD', WATCH, whole(math.min(expires, now + LOOK_EVERY))",
        "redis.pcall('ZADD', WATCH, whole(expires)",
    ),
    (
        "looked_at_after_its_time",
        "redis.pcall('ZADD', WATCH, whole(math.min(expires, now + LOOK_EVERY))",
        "redis.pcall('ZADD', WATCH, whole(now + LOOK_EVERY)",
    ),
    (
        "a_key_like_the_watch_ends_the_call",
        "redis.pcall('ZADD', WATCH, whole(math.min",
        "redis.call('ZADD', WATCH, whole(math.min",
    ),
    (
        "waiting_job_queued",
        "    hold(id, key, queue, open,",
        "    redis.call('LPUSH', queue, id)\n    hold(id, key, queue, open,",
    ),
    (
        "unknown_prerequisite_ignored",
        "if not status and not patient then return nil, 'prerequisite ' .. id .. ' does not exist', id end",
        "if not status and not patient then status = 'finished' end",
    ),
    (
        "list_taken_for_a_prerequisite",
        "redis.pcall('HEXISTS', key, 'status') == 1",
        "redis.call('EXISTS', key) == 1",
    ),
    (
        "failed_prerequisite_waited_for",
        "if status == 'error' and on_failure ~= 'continue' then",
        "if false then",
    ),
    (
        "failed_prerequisite_always_matters",
        "if status == 'error' and on_failure ~= 'continue' then",
        "if status == 'error' then",
    ),
    (
        "finished_prerequisite_waited_for",
        "if not final(status) then open",
        "if status ~= 'error' then open",
    ),
    (
        "failed_prerequisite_does_not_end_it",
        "put(key, id, script_type, open and 'dispatched' or 'error', at, from)",
        "put(key, id, script_type, 'dispatched', at, from)",
    ),
    (
        "no_reason_given",
        "redis.call('HSET', key, 'error', why)",
        "",
    ),
    (
        "its_end_not_told",
        "close(id, key, has, 'error', why, now, nil, '')",
        "",
    ),
    (
        "its_reply_missing",
        "    local has = record(key)\n",
        "    local has = record(key)\n    has.mw_reply = '0'\n",
    ),
    (
        "unknown_not_told",
        "if unknown then return 'unknown ' .. unknown end",
        "if unknown then return 'exists' end",
    ),
];

pub(super) const DOUBLE: &[Change] = &[
    (
        "pinned_jobs_for_all_old_workers",
        "if pinned and not named and (own == ':' or string.sub(list or '', -#own) ~= own) then return end",
        "",
    ),
    (
        "pinned_jobs_for_no_old_worker",
        "if pinned and not named and (own == ':' or string.sub(list or '', -#own) ~= own) then return end",
        "if pinned then return end",
    ),
    (
        "lists_of_workers_not_known",
        "return list, after, phase, from",
        "return list, after, phase",
    ),
    (
        "not_pushed_to_the_old_list",
        "  double(id, key, queue, script_type, o.worker, now)\n",
        "",
    ),
    (
        "double_to_the_wrong_end",
        "pushed('LPUSH', list, id)",
        "pushed('RPUSH', list, id)",
    ),
    (
        "no_lock",
        "redis.call('HSET', key, 'mw_lock', list, 'mw_queue', queue)",
        "",
    ),
    (
        "queue_of_a_double_not_written",
        "'mw_lock', list, 'mw_queue', queue)",
        "'mw_lock', list)",
    ),
    (
        "nobody_looks_at_a_double",
        "  redis.pcall('ZADD', WATCH, 'LT', whole(now + after), id)\n",
        "",
    ),
    ("looked_at_at_once", "whole(now + after)", "whole(now)"),
    (
        "a_key_like_the_watch_ends_the_double_push",
        "redis.pcall('ZADD', WATCH, 'LT',",
        "redis.call('ZADD', WATCH, 'LT',",
    ),
    (
        "another_types_migration",
        "'migration:' .. (script_type or '')",
        "'migration:osis'",
    ),
    (
        "a_setting_that_cannot_be_read_ends_the_call",
        "  if not phase then return nil, WATCH_AFTER end\n",
        "",
    ),
    (
        "worker_not_filled_in",
        "if from then list",
        "if false then list",
    ),
    (
        "job_for_nobody_on_a_list_of_nobody",
        "if from and (worker_id or '') == '' then",
        "if false then",
    ),
    (
        "rest_of_the_name_lost",
        " .. string.sub(list, to + 1) end\n",
        " end\n",
    ),
    (
        "a_key_like_an_old_list_locks",
        "or not pushed('LPUSH', list, id) then return end",
        "then return end\n  pushed('LPUSH', list, id)",
    ),
];
