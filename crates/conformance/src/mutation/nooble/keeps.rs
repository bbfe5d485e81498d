//! Changes of what keeps messages of Nooble4.

use super::Change;

pub(super) const RECEIVE: &[Change] = &[
    (
        "only_one_is_taken",
        "for _ = 1, tonumber(ARGV[1]) do",
        "for _ = 1, 1 do",
    ),
    (
        "more_are_taken",
        "for _ = 1, tonumber(ARGV[1]) do",
        "for _ = 1, 1000 do",
    ),
    (
        "the_youngest_comes_first",
        "'RIGHT', 'LEFT')",
        "'LEFT', 'LEFT')",
    ),
    (
        "the_youngest_is_the_next_to_be_taken_over",
        "'RIGHT', 'LEFT')",
        "'RIGHT', 'RIGHT')",
    ),
    (
        "looks_on_where_nothing_is",
        "  if not message then break end\n",
        "",
    ),
    ("not_handed_over", "  taken[#taken + 1] = message\n", ""),
    (
        "a_hand_stays",
        "if taken[1] then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end\n",
        "",
    ),
];

pub(super) const RENEW: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "no_worker_is_there",
        "redis.call('ZADD', KEYS[2], whole(clock(ARGV[1]) + tonumber(ARGV[4])), ARGV[3])\n",
        "",
    ),
    ("a_worker_is_there_for_no_time", " + tonumber(ARGV[4])", ""),
    (
        "the_list_of_workers_stays",
        "redis.call('PEXPIRE', KEYS[2], ARGV[5])\n",
        "",
    ),
    (
        "a_hand_stays",
        "if ARGV[2] == '' then redis.call('PEXPIRE', KEYS[3], ARGV[5]) end",
        "",
    ),
    (
        "a_stream_gets_an_end",
        "if ARGV[2] == '' then redis.call('PEXPIRE', KEYS[3], ARGV[5]) end",
        "redis.call('PEXPIRE', KEYS[3], ARGV[5])",
    ),
    (
        "a_message_is_not_renewed",
        "    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, id, 'JUSTID')\n",
        "",
    ),
    ("a_renewal_counts_as_a_run", ", id, 'JUSTID')", ", id)"),
    (
        "anothers_is_taken",
        "if not given.err and given[1] and whole(given[1][4]) == ARGV[i + 1] then",
        "if true then",
    ),
    (
        "another_run_of_it_counts",
        " and whole(given[1][4]) == ARGV[i + 1]",
        "",
    ),
    (
        "a_stream_that_is_gone_is_an_error",
        "redis.pcall('XPENDING', KEYS[1]",
        "redis.call('XPENDING', KEYS[1]",
    ),
    ("what_is_gone_not_told", "    gone[#gone + 1] = id\n", ""),
];

pub(super) const RECLAIM: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "who_is_not_there_takes",
        "if not is_there(own) then return {taken, ARGV[7]} end\n",
        "",
    ),
    (
        "who_is_gone_is_there",
        "worker) or '') or 0) > now end",
        "worker) or '') or 0) > 0 end",
    ),
    ("losses_not_counted", "'lost', 1)", "'lost', 0)"),
    (
        "a_hand_stays",
        "  if taken[1] then redis.call('PEXPIRE', KEYS[2], ARGV[11]) end\n",
        "",
    ),
    (
        "losses_remembered_for_ever",
        "  redis.call('PEXPIRE', key, TRIES_FOR)\n",
        "",
    ),
    (
        "who_is_there_is_robbed",
        "'-inf', whole(now), 'WITHSCORES'",
        "'-inf', '+inf', 'WITHSCORES'",
    ),
    (
        "more_than_wanted_of_a_list",
        "while #taken < most do",
        "while true do",
    ),
    (
        "the_youngest_first",
        "KEYS[2], 'RIGHT', 'LEFT')",
        "KEYS[2], 'LEFT', 'LEFT')",
    ),
    (
        "more_than_wanted_of_who_is_gone",
        "for i = 1, math.min(#found, left) do",
        "for i = 1, #found do",
    ),
    (
        "anothers_of_a_stream_is_taken",
        "'-', '+', left + 1, worker)",
        "'-', '+', left + 1)",
    ),
    (
        "of_who_is_gone_nothing_is_taken",
        "  for i = 1, math.min(#found, left) do claim(found[i]) end\n",
        "",
    ),
    (
        "forgotten_too_early",
        "tonumber(gone[i + 1]) + tonumber(ARGV[8]) <= now",
        "true",
    ),
    (
        "forgotten_with_something_in_hand_of_a_list",
        "return redis.call('EXISTS', hand) == 0",
        "return true",
    ),
    (
        "forgotten_with_something_in_hand_of_a_stream",
        "return #found <= left",
        "return true",
    ),
    (
        "never_forgotten",
        "    if is_all and over then redis.call('ZREM', KEYS[3], gone[i]) end\n",
        "",
    ),
    (
        "its_own_is_never_found",
        "  for _, one in ipairs(found) do claim(one) end\n",
        "",
    ),
    (
        "its_own_runs_are_taken",
        "'IDLE', idle, '-', '+', most - #taken, own",
        "'-', '+', most - #taken, own",
    ),
    (
        "more_than_wanted_of_its_own",
        "'-', '+', most - #taken, own",
        "'-', '+', most + 1, own",
    ),
    (
        "what_is_renewed_is_taken",
        "'IDLE', idle, ARGV[7]",
        "ARGV[7]",
    ),
    (
        "always_from_the_beginning",
        "'IDLE', idle, ARGV[7], '+'",
        "'IDLE', idle, '-', '+'",
    ),
    (
        "more_than_wanted_of_a_stream",
        "    if #taken == most then return one[1] end\n",
        "",
    ),
    (
        "who_is_there_is_robbed_of_a_stream",
        "may = not is_there(one[2])",
        "may = true",
    ),
    (
        "who_was_never_there_is_passed_over",
        "may = not is_there(one[2])",
        "may = false",
    ),
    (
        "others_are_robbed",
        "if string.sub(one[2], 1, #OURS) == OURS then",
        "if true then",
    ),
    (
        "others_are_robbed_too_early",
        "others >= 0 and one[3] >= others",
        "others >= 0",
    ),
    (
        "others_are_never_adopted",
        "others >= 0 and one[3] >= others",
        "false",
    ),
    ("anothers_run_is_proof", "one[4] + 1", "one[4]"),
    (
        "what_was_deleted_is_given",
        "  if not entry then return end\n",
        "  entry = entry or {one[1], {}}\n",
    ),
    (
        "does_not_say_where_it_stopped",
        "'(' .. found[#found][1]",
        "'-'",
    ),
];

pub(super) const PROMOTE: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "what_is_not_due_goes_too",
        "'-inf', whole(now), 'LIMIT'",
        "'-inf', '+inf', 'LIMIT'",
    ),
    (
        "what_begins_with_a_word_loses_it",
        "string.find(member, ' ', 1, true) + 1)",
        "string.find(member, ' [^ ]*$') + 1)",
    ),
    ("waits_on", "  redis.call('ZREM', KEYS[2], member)\n", ""),
    (
        "not_put_back",
        "  put(KEYS[1], string.sub(member, string.find(member, ' ', 1, true) + 1))\n",
        "",
    ),
    (
        "the_next_one_not_told",
        "next[2] and math.max(0, tonumber(next[2]) - now) or -1",
        "-1",
    ),
    (
        "the_next_one_too_late",
        "tonumber(next[2]) - now",
        "tonumber(next[2])",
    ),
    (
        "what_is_next_of_a_list_is_last",
        "redis.call('RPUSH', queue, message)",
        "redis.call('LPUSH', queue, message)",
    ),
];

pub(super) const TRIM: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    ("what_is_young_goes_too", " - tonumber(ARGV[2])", ""),
    (
        "no_group_is_an_error",
        "redis.pcall('XINFO', 'GROUPS'",
        "redis.call('XINFO', 'GROUPS'",
    ),
    (
        "our_group_that_is_gone_is_an_error",
        "redis.pcall('XINFO', 'CONSUMERS'",
        "redis.call('XINFO', 'CONSUMERS'",
    ),
    (
        "without_a_group_all_goes",
        "if groups.err or #groups == 0 then return 0 end",
        "if groups.err then return 0 end",
    ),
    (
        "what_is_in_hand_goes",
        "  if has.pending > 0 then reached = redis.call('XPENDING', KEYS[1], has.name)[2] end\n",
        "",
    ),
    (
        "another_group_is_not_asked",
        "if before(reached, from) then from = reached end",
        "if has.pending > 0 then from = reached end",
    ),
    (
        "ids_are_texts",
        "tonumber(ms) < tonumber(than_ms)",
        "ms < than_ms",
    ),
    (
        "who_is_gone_is_known",
        "      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[3], has.name)\n",
        "",
    ),
    (
        "who_has_something_in_hand_is_forgotten",
        " and has.pending == 0",
        "",
    ),
    (
        "who_was_heard_of_is_forgotten",
        " and has.idle >= tonumber(ARGV[4])",
        "",
    ),
    (
        "others_are_forgotten",
        "string.sub(has.name, 1, #OURS) == OURS and ",
        "",
    ),
    (
        "an_end_of_an_earlier_version_stays",
        "take_end_off()\nforget_gone()",
        "forget_gone()",
    ),
    (
        "every_end_is_taken_off",
        " and left <= tonumber(ARGV[5])",
        "",
    ),
    (
        "an_end_of_a_stream_without_groups_is_taken_off",
        "local groups = redis.pcall(",
        "take_end_off()\nlocal groups = redis.pcall(",
    ),
    (
        "nothing_goes",
        "redis.call('XTRIM', KEYS[1], 'MINID', '~', from, 'LIMIT', MOST_TRIMMED)",
        "0",
    ),
];

pub(super) const LEAVE: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "forgotten_with_something_of_a_list",
        "return redis.call('EXISTS', KEYS[2]) == 1",
        "return false",
    ),
    (
        "forgotten_with_something_of_a_stream",
        "return not given.err and given[1]",
        "return false",
    ),
    (
        "a_stream_that_is_gone_is_an_error",
        "redis.pcall('XPENDING'",
        "redis.call('XPENDING'",
    ),
    (
        "a_stream_that_is_gone_is_something",
        "return not given.err and given[1]",
        "return given.err or given[1]",
    ),
    (
        "taken_over_by_nobody",
        "  redis.call('ZADD', KEYS[3], whole(clock(ARGV[1])), ARGV[3])\n",
        "",
    ),
    (
        "the_list_of_workers_stays",
        "  redis.call('PEXPIRE', KEYS[3], ARGV[4])\n",
        "",
    ),
    (
        "never_forgotten",
        "redis.call('ZREM', KEYS[3], ARGV[3])\n",
        "",
    ),
    (
        "never_forgotten_by_a_group",
        "redis.pcall('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[2], ARGV[3])",
        "redis.log(0, '')",
    ),
    (
        "a_group_that_is_gone_is_an_error",
        "redis.pcall('XGROUP'",
        "redis.call('XGROUP'",
    ),
];
