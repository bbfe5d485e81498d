//! Changes of enqueue, claim and renew.

use super::Change;

pub(super) const ENQUEUE: &[Change] = &[
    (
        "existing_job_overwritten",
        "redis.call('EXISTS', KEYS[k]) == 1",
        "false",
    ),
    ("id_not_pushed", "redis.call('LPUSH', KEYS[k + 1], id)", ""),
    (
        "pushed_to_the_wrong_end",
        "redis.call('LPUSH', KEYS[k + 1], id)",
        "redis.call('RPUSH', KEYS[k + 1], id)",
    ),
    (
        "stored_although_not_queued",
        "redis.call('LPUSH', KEYS[k + 1], id)",
        "redis.pcall('LPUSH', KEYS[k + 1], id)",
    ),
    (
        "pushed_to_the_first_queue",
        "redis.call('LPUSH', KEYS[k + 1], id)",
        "redis.call('LPUSH', KEYS[2], id)",
    ),
    (
        "status_wrong",
        "'status', 'dispatched'",
        "'status', 'started'",
    ),
    ("status_not_written", "'status', 'dispatched', ", ""),
    ("creation_not_dated", "'created_at', at, ", ""),
    ("change_not_dated", "'updated_at', at,\n", "\n"),
    (
        "last_field_lost",
        "unpack(ARGV, a + 2, a + 1 + n)",
        "unpack(ARGV, a + 2, a + n - 1)",
    ),
    (
        "answers_that_it_was_new",
        "stored[#stored + 1] = 0",
        "stored[#stored + 1] = 1",
    ),
    (
        "answers_that_it_was_there",
        "stored[#stored + 1] = 1",
        "stored[#stored + 1] = 0",
    ),
];

pub(super) const CLAIM: &[Change] = &[
    (
        "lease_not_written",
        "redis.call('ZADD', KEYS[1], deadline, id)",
        "",
    ),
    (
        "deadline_now",
        "whole(now + tonumber(ARGV[3]))",
        "whole(now)",
    ),
    (
        "deadline_late",
        "whole(now + tonumber(ARGV[3]))",
        "whole(now + tonumber(ARGV[3]) + 1)",
    ),
    (
        "attempt_not_counted",
        "attempt = (tonumber(attempt) or 0) + 1",
        "attempt = tonumber(attempt) or 0",
    ),
    (
        "attempts_forgotten",
        "attempt = (tonumber(attempt) or 0) + 1",
        "attempt = 1",
    ),
    ("attempt_not_written", ", 'mw_attempt', attempt)", ")"),
    (
        "attempt_not_told",
        "(k - 2) / 2, attempt, record",
        "(k - 2) / 2, 1, record",
    ),
    ("token_not_written", "'mw_token', token,", ""),
    ("worker_not_written", "'mw_worker', worker, ", ""),
    ("queue_not_written", "'mw_queue', KEYS[k], ", ""),
    (
        "feed_taken_for_the_queue",
        "'mw_queue', KEYS[k], ",
        "'mw_queue', KEYS[k + 1], ",
    ),
    ("status_not_written", "'status', 'started', ", ""),
    ("change_not_dated", "'updated_at', at, ", ""),
    (
        "job_runs_beside_itself",
        "not redis.call('ZSCORE', KEYS[1], id)",
        "true",
    ),
    (
        "abandoned_job_never_runs",
        "status == 'started' and not",
        "false and not",
    ),
    (
        "ended_job_runs_again",
        "if not free(status, id) then",
        "if status == 'started' and not free(status, id) then",
    ),
    (
        "job_without_status_never_runs",
        "return status == nil or",
        "return false or",
    ),
    ("job_with_empty_status_never_runs", " or status == ''", ""),
    (
        "job_made_up",
        "if #record == 0 then dropped = dropped + 1 return end",
        "",
    ),
    (
        "missing_job_not_counted",
        "if #record == 0 then dropped = dropped + 1",
        "if #record == 0 then",
    ),
    (
        "busy_job_not_counted",
        "if not free(status, id) then dropped = dropped + 1",
        "if not free(status, id) then",
    ),
    (
        "a_list_like_a_job_ends_the_claim",
        "redis.pcall('HGETALL', key)",
        "redis.call('HGETALL', key)",
    ),
    (
        "a_key_like_a_queue_ends_the_claim",
        "redis.pcall('RPOP', KEYS[k],",
        "redis.call('RPOP', KEYS[k],",
    ),
    ("record_not_told", "attempt, record}", "attempt, {}}"),
    (
        "more_than_wanted",
        "math.min(want, MOST - looked)",
        "MOST - looked",
    ),
    ("slots_not_counted", "want = want - 1", ""),
    ("bound_removed", "local MOST = 1000", "local MOST = 1000000"),
    ("more_never_told", "looked >= MOST and 1 or 0", "0"),
    ("more_always_told", "looked >= MOST and 1 or 0", "1"),
    ("dropped_never_told", "return {dropped,", "return {0,"),
];

pub(super) const CLAIM_ORDER: &[Change] = &[
    (
        "id_not_removed_from_the_queue",
        "looked = looked + #ids",
        "looked = looked + #ids for _, id in ipairs(ids) do redis.call('RPUSH', KEYS[k], id) end",
    ),
    (
        "taken_from_the_wrong_end",
        "redis.pcall('RPOP', KEYS[k],",
        "redis.pcall('LPOP', KEYS[k],",
    ),
    (
        "only_the_first_queue",
        "for k = 2, #KEYS, 2 do\n  while want > 0",
        "for k = 2, 2, 2 do\n  while want > 0",
    ),
    (
        "queues_in_the_wrong_order",
        "for k = 2, #KEYS, 2 do\n  while want > 0",
        "for k = #KEYS - 1, 2, -2 do\n  while want > 0",
    ),
    ("queue_told_wrong", "(k - 2) / 2, attempt", "0, attempt"),
    (
        "feeds_not_looked_at",
        "for k = 2, #KEYS, 2 do\n  while looked < MOST do",
        "for k = 2, 0, 2 do\n  while looked < MOST do",
    ),
    (
        "feeds_after_the_queues",
        "if want > 0 then id = redis.call('RPOP', KEYS[k + 1])",
        "if false then id = nil",
    ),
    (
        "id_not_removed_from_the_feed",
        "id = redis.call('RPOP', KEYS[k + 1])",
        "id = redis.call('LINDEX', KEYS[k + 1], -1)",
    ),
    (
        "fed_from_the_wrong_end",
        "id = redis.call('RPOP', KEYS[k + 1])",
        "id = redis.call('LPOP', KEYS[k + 1])",
    ),
    (
        "surplus_not_returned",
        "else id = redis.call('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end",
        "end",
    ),
    (
        "surplus_thrown_away",
        "else id = redis.call('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end",
        "else id = redis.call('LPOP', KEYS[k + 1]) end",
    ),
    (
        "surplus_turned_round",
        "KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT'",
        "KEYS[k + 1], KEYS[k], 'RIGHT', 'RIGHT'",
    ),
    (
        "surplus_to_the_wrong_end",
        "KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT'",
        "KEYS[k + 1], KEYS[k], 'RIGHT', 'LEFT'",
    ),
];

pub(super) const RENEW: &[Change] = &[
    ("fence_not_checked", "has[1] == token and ", ""),
    ("status_not_checked", "has[2] == 'started' and ", ""),
    (
        "lease_made_up",
        " and redis.call('ZSCORE', KEYS[1], id)",
        "",
    ),
    (
        "lease_not_extended",
        "redis.call('ZADD', KEYS[1], deadline, id)",
        "",
    ),
    (
        "deadline_now",
        "whole(now + tonumber(ARGV[2]))",
        "whole(now)",
    ),
    (
        "deadline_that_of_the_listener",
        "whole(now + tonumber(ARGV[2]))",
        "whole(now + tonumber(ARGV[3]))",
    ),
    (
        "listener_not_registered",
        "redis.call('ZADD', KEYS[2], alive, ARGV[i])",
        "",
    ),
    (
        "listener_as_short_as_a_lease",
        "whole(now + tonumber(ARGV[3]))",
        "whole(now + tonumber(ARGV[2]))",
    ),
    (
        "only_the_first_queue_listened_to",
        "for i = 5, 4 + entries do",
        "for i = 5, 5 do",
    ),
    ("lost_job_not_told", "gone[#gone + 1] = id", ""),
    ("only_the_first_job_renewed", "a = a + 2", "a = a + 0"),
];
