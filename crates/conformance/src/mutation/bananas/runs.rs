//! Changes of what takes jobs of Bananas and hands them back.

use super::Change;

pub(super) const ENQUEUE: &[Change] = &[
    (
        "record_not_written",
        "    redis.call('SET', JOB .. id, record)\n    if due",
        "    if due",
    ),
    (
        "there_is_written_over",
        "redis.call('EXISTS', JOB .. id) == 1",
        "false",
    ),
    ("there_is_not_told", "    there[#there + 1] = k\n", ""),
    (
        "pushed_to_the_wrong_end",
        "redis.call('LPUSH', KEYS[k], id)",
        "redis.call('RPUSH', KEYS[k], id)",
    ),
    (
        "never_waits_for_its_time",
        "if due == '' then",
        "if true then",
    ),
    (
        "list_not_looked_at_first",
        "redis.call('LLEN', KEYS[k])",
        "redis.call('EXISTS', KEYS[k])",
    ),
    (
        "only_lists_looked_at_first",
        " else redis.call('ZCARD', SCHEDULED) end",
        " end",
    ),
    ("not_counted", "    count(KEYS[k], 'created')\n", ""),
    (
        "what_is_there_counted",
        "    there[#there + 1] = k\n",
        "    there[#there + 1] = k\n    count(KEYS[k], 'created')\n",
    ),
    (
        "text_after_a_time_lost",
        "    text[#text + 1] = ARGV[i + 1]\n",
        "",
    ),
    ("time_has_too_few_digits", ", 23) .. '000Z'", ", 23) .. 'Z'"),
    (
        "next_job_begins_elsewhere",
        "a + 2 + 2 * times\nend",
        "a + 1 + 2 * times\nend",
    ),
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
];

pub(super) const CLAIM: &[Change] = &[
    (
        "what_runs_is_taken_again",
        "if redis.call('HEXISTS', HELD, hold) == 1 then",
        "if false then",
    ),
    (
        "jobs_without_an_id_are_one",
        "id ~= '' and id or ' ' .. ARGV[4] .. '.' .. #taken",
        "id",
    ),
    (
        "jobs_without_an_id_are_one_in_a_claim",
        " .. '.' .. #taken",
        " .. '.'",
    ),
    ("dropped_not_counted", "    dropped = dropped + 1\n", ""),
    (
        "no_token",
        "  redis.call('HSET', HELD, hold, ARGV[4] .. ' ' .. KEYS[k])\n",
        "",
    ),
    (
        "no_lease",
        "  redis.call('ZADD', LEASES, deadline, hold)\n",
        "",
    ),
    (
        "lease_without_end",
        "now + tonumber(ARGV[3])",
        "now + 1000 * tonumber(ARGV[3])",
    ),
    (
        "not_among_those_that_run",
        "  redis.pcall('LPUSH', PROCESSING, id)\n",
        "",
    ),
    (
        "its_place_is_needed",
        "redis.pcall('LPUSH', PROCESSING, id)",
        "redis.call('LPUSH', PROCESSING, id)",
    ),
    (
        "at_the_wrong_end_of_those_that_run",
        "redis.pcall('LPUSH', PROCESSING, id)",
        "redis.pcall('RPUSH', PROCESSING, id)",
    ),
    ("more_than_wanted", "  want = want - 1\n", ""),
    (
        "newest_first",
        "redis.pcall('RPOP', KEYS[k])",
        "redis.pcall('LPOP', KEYS[k])",
    ),
    (
        "feed_newest_first",
        "redis.call('RPOP', KEYS[k + 1])",
        "redis.call('LPOP', KEYS[k + 1])",
    ),
    (
        "feed_not_looked_at",
        "local may, id = more(k)",
        "local may, id = more(k)\n    if true then break end",
    ),
    (
        "feed_taken_without_want",
        "local may, id = more(k)",
        "local may, id = true",
    ),
    (
        "handed_back_in_the_wrong_order",
        "'LEFT', 'RIGHT'",
        "'RIGHT', 'RIGHT'",
    ),
    (
        "handed_back_as_the_last",
        "'LEFT', 'RIGHT'",
        "'LEFT', 'LEFT'",
    ),
    (
        "feed_of_no_list_ends_all",
        "redis.pcall('LMOVE'",
        "redis.call('LMOVE'",
    ),
    (
        "no_list_ends_all",
        "redis.pcall('RPOP', KEYS[k])",
        "redis.call('RPOP', KEYS[k])",
    ),
    (
        "leases_not_looked_at_first",
        "redis.call('ZCARD', LEASES)\n",
        "",
    ),
    (
        "holders_not_looked_at_first",
        "redis.call('HLEN', HELD)\n",
        "",
    ),
    (
        "place_is_off_by_one",
        "{hold, (k + 1) / 2",
        "{hold, (k - 1) / 2",
    ),
    (
        "losses_not_told",
        "tonumber(redis.call('GET', LOST .. id) or '') or 0",
        "0",
    ),
    (
        "end_not_told",
        "result[1] == 'completed' and result[2] or ''",
        "''",
    ),
    (
        "failure_is_told_as_an_end",
        "result[1] == 'completed' and result[2] or ''",
        "result[2] or ''",
    ),
    (
        "result_of_another_kind_ends_all",
        "redis.pcall('HMGET', RESULT",
        "redis.call('HMGET', RESULT",
    ),
    ("odd_is_missing", "return 'odd', ''", "return 'missing', ''"),
    ("missing_is_odd", "return 'missing', ''", "return 'odd', ''"),
    (
        "record_of_another_kind_ends_all",
        "redis.pcall('GET', key)",
        "redis.call('GET', key)",
    ),
    ("no_bound_in_bytes", " and bytes < MOST_BYTES\n", "\n"),
    (
        "bound_in_bytes_not_told",
        " or bytes >= MOST_BYTES) and 1",
        ") and 1",
    ),
    ("time_not_told", "whole(now), held}", "'0', held}"),
];

pub(super) const RENEW: &[Change] = &[
    (
        "token_not_checked",
        "if holder(ARGV[i]) == ARGV[i + 1] then",
        "if true then",
    ),
    (
        "not_extended",
        "redis.call('ZADD', LEASES, deadline, ARGV[i])",
        "redis.call('EXISTS', LEASES)",
    ),
    (
        "extended_without_end",
        "now + tonumber(ARGV[2])",
        "now + 1000 * tonumber(ARGV[2])",
    ),
    ("gone_not_told", "else gone[#gone + 1] = ARGV[i] end", "end"),
    (
        "alive_without_end",
        "now + tonumber(ARGV[3])",
        "now + 1000 * tonumber(ARGV[3])",
    ),
    (
        "listener_not_listed",
        "ipairs({FEEDS, ROUTES})",
        "ipairs({SEEN, ROUTES})",
    ),
    (
        "routes_not_listed",
        "ipairs({FEEDS, ROUTES})",
        "ipairs({FEEDS, SEEN})",
    ),
    (
        "jobs_begin_elsewhere",
        "for i = a - 1, #ARGV, 2 do",
        "for i = a + 1, #ARGV, 2 do",
    ),
];

pub(super) const RELEASE: &[Change] = &[
    (
        "token_not_checked",
        "if token ~= ARGV[3] then return 0 end",
        "",
    ),
    (
        "not_pushed",
        "redis.call(ARGV[4] == 'next' and 'RPUSH' or 'LPUSH', list, id)",
        "",
    ),
    (
        "always_the_last",
        "ARGV[4] == 'next' and 'RPUSH' or 'LPUSH'",
        "'LPUSH'",
    ),
    (
        "always_the_next",
        "ARGV[4] == 'next' and 'RPUSH' or 'LPUSH'",
        "'RPUSH'",
    ),
    (
        "always_somewhere",
        "if ARGV[4] ~= 'nowhere' then",
        "if true then",
    ),
    ("still_held", "let_go(hold, list, id)\ncount", "count"),
    (
        "slot_not_freed",
        "let_go(hold, list, id)\ncount",
        "let_go(hold, nil, id)\ncount",
    ),
    ("not_counted", "count(list, 'released')\n", ""),
    (
        "done_not_written",
        "redis.call('SET', JOB .. id, done, 'PX', COMPLETED_FOR)",
        "",
    ),
    ("done_for_ever", ", done, 'PX', COMPLETED_FOR)", ", done)"),
    (
        "changed_is_written_over",
        "digest(look(id)) == ARGV[5]",
        "true",
    ),
    (
        "no_list_loses_it",
        "redis.call(ARGV[4]",
        "redis.pcall(ARGV[4]",
    ),
];

pub(super) const MOVE: &[Change] = &[
    (
        "token_not_checked",
        "if token ~= ARGV[3] then return 'stale' end",
        "",
    ),
    (
        "moved_to_nobody",
        "if alive <= clock(ARGV[1]) then return 'nobody' end",
        "",
    ),
    (
        "moved_to_the_gone",
        "if alive <= clock(ARGV[1])",
        "if alive <= 0",
    ),
    (
        "as_the_next",
        "redis.call('LPUSH', KEYS[1], id)",
        "redis.call('RPUSH', KEYS[1], id)",
    ),
    ("not_pushed", "redis.call('LPUSH', KEYS[1], id)\n", ""),
    ("still_held", "let_go(hold, list, id)\ncount", "count"),
    (
        "slot_not_freed",
        "let_go(hold, list, id)\ncount",
        "let_go(hold, nil, id)\ncount",
    ),
    ("not_counted", "count(list, 'released')\n", ""),
];

pub(super) const FORWARD: &[Change] = &[
    (
        "moved_to_the_gone",
        "if alive > now and",
        "if alive > 0 and",
    ),
    (
        "what_is_gone_is_pushed",
        " and redis.call('LPOS', KEYS[1], id, 'RANK', -1, 'MAXLEN', depth)\n",
        "\n",
    ),
    ("looks_as_deep_as_it_is", "'MAXLEN', depth)", "'MAXLEN', 0)"),
    ("looks_from_the_last_on", "'RANK', -1,", "'RANK', 1,"),
    (
        "as_the_next",
        "redis.pcall('LPUSH', KEYS[k], id)",
        "redis.pcall('RPUSH', KEYS[k], id)",
    ),
    (
        "no_list_ends_all",
        "redis.pcall('LPUSH', KEYS[k], id)",
        "redis.call('LPUSH', KEYS[k], id)",
    ),
    (
        "still_there",
        "    redis.call('LREM', KEYS[1], -1, id)\n",
        "",
    ),
    (
        "the_last_of_two_taken_away",
        "redis.call('LREM', KEYS[1], -1, id)",
        "redis.call('LREM', KEYS[1], 1, id)",
    ),
    ("not_told", "    moved = moved + 1\n", ""),
];

pub(super) const RECLAIM: &[Change] = &[
    (
        "takes_what_is_leased",
        "LEASES, '-inf', whole(now)",
        "LEASES, '-inf', '+inf'",
    ),
    ("unbounded", "'LIMIT', 0, ARGV[2]", "'LIMIT', 0, -1"),
    (
        "as_the_last",
        "redis.pcall('RPUSH', list, id)",
        "redis.pcall('LPUSH', list, id)",
    ),
    (
        "no_list_ends_all",
        "redis.pcall('RPUSH', list, id)",
        "redis.call('RPUSH', list, id)",
    ),
    (
        "no_list_loses_it",
        "if type(back) == 'number' or not list then",
        "if true then",
    ),
    (
        "lease_of_nobody_stays",
        "if type(back) == 'number' or not list then",
        "if type(back) == 'number' then",
    ),
    ("no_id_is_an_id", "nameless and '' or hold", "hold"),
    ("still_held", "    let_go(hold, list, id)\n", ""),
    (
        "slot_not_freed",
        "    let_go(hold, list, id)",
        "    let_go(hold, nil, id)",
    ),
    ("not_counted", "      count(list, 'lost')\n", ""),
    (
        "loss_not_counted",
        "      redis.call('INCR', LOST .. id)\n",
        "",
    ),
    (
        "loss_without_end",
        "      redis.call('PEXPIRE', LOST .. id, ARGV[5])\n",
        "",
    ),
    ("not_told", "      requeued[#requeued + 1] = id\n", ""),
    (
        "routes_stay",
        "redis.call('ZREMRANGEBYSCORE', ROUTES, '-inf', whole(now))\n",
        "",
    ),
    (
        "routes_of_the_living_end",
        "redis.call('ZREMRANGEBYSCORE', ROUTES, '-inf', whole(now))",
        "redis.call('DEL', ROUTES)",
    ),
    (
        "feeds_not_handed_back",
        "unfeed(now, ARGV[3], tonumber(ARGV[4]))",
        "0",
    ),
    (
        "feeds_of_the_living_handed_back",
        "FEEDS, '-inf', whole(now)",
        "FEEDS, '-inf', '+inf'",
    ),
    (
        "feeds_handed_back_as_the_last",
        "feed, queue, 'LEFT', 'RIGHT'",
        "feed, queue, 'LEFT', 'LEFT'",
    ),
    (
        "a_listener_forgotten_at_once",
        "local over = tonumber(gone[i + 1]) + outlast <= now",
        "local over = true",
    ),
];

pub(super) const LEAVE: &[Change] = &[
    (
        "not_handed_back",
        "redis.pcall('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT')",
        "nil",
    ),
    (
        "still_listens",
        "if redis.call('EXISTS', KEYS[k + 1]) == 0 then",
        "if false then",
    ),
];
