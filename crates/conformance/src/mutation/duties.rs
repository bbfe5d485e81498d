//! Changes of watch, adopt and prune.

use super::Change;

pub(super) const WATCH: &[Change] = &[
    (
        "taken_for_lost_at_first_sight",
        "if now - since(key, has, 'away', now) < after then",
        "if since(key, has, 'away', now) < 0 then",
    ),
    (
        "never_pushed_again",
        "  push_again(id, key, has, now)\nend",
        "end",
    ),
    (
        "pushed_although_it_stands_there",
        "local there, stands = holds(has.mw_queue, id), true",
        "local there, stands = false, true",
    ),
    (
        "not_pushed_to_the_old_list",
        "  if not stands then return end\n  double(id, key, has.mw_queue, has.script_type, worker_of(has), now)\n",
        "",
    ),
    ("pushed_and_not_told", "  again[#again + 1] = id\n", ""),
    (
        "stop_forgotten",
        "if has.mw_stop then return fault(id, key, has, has.mw_stop, now, nil, '', true) end",
        "",
    ),
    (
        "client_answered_elsewhere",
        "    redis.call('HSET', key, 'mw_legacy', '1')\n    has.mw_legacy = '1'\n  end\n  local there",
        "  end\n  local there",
    ),
    (
        "leased_job_watched",
        "if redis.call('ZSCORE', LEASES, id) then return redis.call('ZREM', WATCH, id) end\n  local limit",
        "local limit",
    ),
    (
        "timeout_not_waited_for",
        "local limit = timeout_of(has) + after",
        "local limit = after",
    ),
    (
        "age_not_waited_for",
        "local limit = timeout_of(has) + after",
        "local limit = timeout_of(has)",
    ),
    (
        "loss_not_counted",
        "redis.call('HSET', key, 'mw_lost', lost)",
        "",
    ),
    ("poison_runs_on", "if lost < losses then", "if true then"),
    (
        "poison_one_loss_early",
        "if lost < losses then",
        "if lost + 1 < losses then",
    ),
    (
        "fallback_taken_while_the_worker_is_there",
        "redis.call('EXISTS', presence) == 1 then return false",
        "redis.call('EXISTS', presence) == 2 then return false",
    ),
    (
        "fallback_never_taken",
        "if presence and redis.call('EXISTS', presence) == 1 then return false end",
        "if presence then return false end",
    ),
    (
        "fallback_leaves_the_first_queue",
        "  unqueue(has.mw_queue or '', id)\n",
        "",
    ),
    (
        "fallback_forgets_the_lock",
        "if has.mw_lock then later(id, now + after) else",
        "",
    ),
    (
        "delayed_job_pushed",
        " or redis.call('ZSCORE', DELAYED, id) then",
        " then",
    ),
    (
        "what_was_seen_before_counts",
        "    redis.call('HDEL', key, 'mw_seen')\n",
        "",
    ),
    (
        "dates_do_not_count",
        "local is = how .. ' ' .. (has.updated_at or '')",
        "local is = how .. ' '",
    ),
    (
        "looks_of_the_future_count",
        "if was == is and tonumber(at) <= now then",
        "if was == is then",
    ),
    (
        "ended_job_left_under_watch",
        "  redis.call('ZREM', WATCH, id)\n  if redis.call('ZSCORE', ENDED, id)",
        "  if redis.call('ZSCORE', ENDED, id)",
    ),
    (
        "ended_job_told_again",
        "  if redis.call('ZSCORE', ENDED, id) or redis.call('ZSCORE', DEAD, id) then return end\n",
        "",
    ),
    (
        "ended_job_not_kept_count_of",
        "  redis.call('ZADD', ENDED, whole(now), id)\n",
        "",
    ),
    (
        "dependants_not_told",
        "if redis.call('EXISTS', NEXT .. id) == 1 then owe(id, has.status == 'finished') end",
        "",
    ),
    (
        "other_status_overwritten",
        "elseif (has.status or '') ~= '' and has.status ~= 'dispatched' then later(id, now + after)\n",
        "",
    ),
    (
        "waiting_job_not_looked_at",
        "walked = walked + READ * look(id, key, has, now)",
        "later(id, now)",
    ),
    (
        "waiting_job_never_ends",
        "  if not (now < expires) then return",
        "  if false then return",
    ),
    (
        "waiting_job_ends_early",
        "  if not (now < expires) then return",
        "  if not (now + 1 < expires) then return",
    ),
    (
        "what_no_script_told_stays_untold",
        "      owe(prerequisite, status == 'finished')\n",
        "",
    ),
    (
        "clock_that_was_ahead_hides_jobs",
        "{{'-inf', whole(now)}, {whole(now + FAR), '+inf'}}",
        "{{'-inf', whole(now)}}",
    ),
    (
        "too_many_in_one_call",
        "'LIMIT', 0, most - looked)",
        "'LIMIT', 0, 2 * most)",
    ),
];

pub(super) const ADOPT: &[Change] = &[
    (
        "waiting_job_left",
        "status == 'dispatched' or status == 'started' or",
        "status == 'started' or",
    ),
    (
        "started_job_left",
        "status == 'dispatched' or status == 'started' or",
        "status == 'dispatched' or",
    ),
    (
        "job_without_a_status_left",
        " or (status == '' and has.script)",
        "",
    ),
    (
        "any_hash_taken_for_a_job",
        "(status == '' and has.script)",
        "status == ''",
    ),
    ("ours_taken", "lives and not has.mw_reply and", "lives and"),
    ("waiting_for_others_taken", "not has.mw_waiting and ", ""),
    (
        "leased_taken",
        "not redis.call('ZSCORE', LEASES, id)\n    and",
        "true and",
    ),
    (
        "watched_taken_again",
        "not redis.call('ZSCORE', WATCH, id) and",
        "true and",
    ),
    (
        "delayed_taken",
        " and not redis.call('ZSCORE', DELAYED, id)",
        "",
    ),
    (
        "type_written_over",
        "redis.call('HSETNX', key, 'script_type', ARGV[a + 1])",
        "redis.call('HSET', key, 'script_type', ARGV[a + 1])",
    ),
    (
        "queue_written_over",
        "if not known then redis.call(",
        "if true then redis.call(",
    ),
    (
        "old_list_kept_as_its_queue",
        "if not known then redis.call(",
        "if not has.mw_queue then redis.call(",
    ),
    (
        "looked_at_too_early",
        "redis.call('ZADD', WATCH, whole(now + after), id)\n    adopted",
        "redis.call('ZADD', WATCH, whole(now), id)\n    adopted",
    ),
    ("not_counted", "    adopted = adopted + 1\n", ""),
];

pub(super) const PRUNE: &[Change] = &[
    (
        "kept_too_short",
        "clock(ARGV[1]) - tonumber(ARGV[2])",
        "clock(ARGV[1]) - tonumber(ARGV[2]) + 1",
    ),
    (
        "kept_too_long",
        "clock(ARGV[1]) - tonumber(ARGV[2])",
        "clock(ARGV[1]) - tonumber(ARGV[2]) - 1",
    ),
    (
        "one_too_many_kept",
        "redis.call('ZCARD', ENDED) - tonumber(ARGV[3])",
        "redis.call('ZCARD', ENDED) - tonumber(ARGV[3]) - 1",
    ),
    (
        "one_too_few_kept",
        "math.min(most, over) - 1",
        "math.min(most, over)",
    ),
    (
        "the_newest_go",
        "redis.call('ZRANGE', ENDED, 0, math.min(most, over) - 1)",
        "redis.call('ZREVRANGE', ENDED, 0, math.min(most, over) - 1)",
    ),
    (
        "job_set_going_again_forgotten",
        "if not final(read(JOB .. id, 'status').status) or",
        "if",
    ),
    (
        "dead_letter_forgotten",
        " or redis.call('ZSCORE', DEAD, id) then",
        " then",
    ),
    ("not_counted", "    forgotten = forgotten + 1\n", ""),
    (
        "record_kept",
        "redis.call('DEL', JOB .. id, REPLY",
        "redis.call('DEL', REPLY",
    ),
    ("reply_kept", "REPLY .. id, OLD_REPLY .. id,", ""),
    ("log_kept", ", LOG .. id)", ")"),
    (
        "dependants_told_wrongly",
        "owe(id, read(JOB .. id, 'status').status == 'finished')",
        "owe(id, false)",
    ),
];
