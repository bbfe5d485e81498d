//! Changes of what ends actions of Nooble4, and of what begins them anew.

use super::Change;

pub(super) const FINISH: &[Change] = &[
    (
        "whether_it_is_over_not_asked",
        "if not let_go(KEYS[1], ARGV[1], ARGV[2]) then return 'stale' end",
        "let_go(KEYS[1], ARGV[1], ARGV[2])",
    ),
    (
        "not_let_go",
        "if not let_go(KEYS[1], ARGV[1], ARGV[2]) then return 'stale' end",
        "",
    ),
    (
        "what_is_no_stream_is_an_error",
        "redis.pcall('XACK', hand",
        "redis.call('XACK', hand",
    ),
    (
        "all_that_are_alike_go",
        "redis.call('LREM', hand, 1, which)",
        "redis.call('LREM', hand, 0, which)",
    ),
    (
        "stays_in_the_hand",
        "return redis.call('LREM', hand, 1, which) == 1",
        "return true",
    ),
    (
        "not_acknowledged",
        "redis.pcall('XACK', hand, group, which) == 1",
        "true",
    ),
    (
        "stays_in_the_stream",
        "  if was then redis.call('XDEL', hand, which) end\n",
        "",
    ),
    (
        "nothing_is_a_answer_too",
        "if text == '' then return true end",
        "",
    ),
    (
        "not_answered",
        "local told = answer(KEYS[2], ARGV[3], ARGV[4])",
        "local told = true",
    ),
    (
        "the_latest_answer_is_the_next",
        "redis.pcall('LPUSH', list, text)",
        "redis.pcall('RPUSH', list, text)",
    ),
    (
        "what_is_no_list_ends_the_call",
        "type(redis.pcall('LPUSH'",
        "type(redis.call('LPUSH'",
    ),
    (
        "what_is_no_list_gets_an_end",
        "~= 'number' then return false end",
        "~= 'number' then redis.call('PEXPIRE', list, ms) return false end",
    ),
    (
        "answers_stay_for_ever",
        "  if ms ~= '0' then redis.call('PEXPIRE', list, ms) end\n",
        "",
    ),
    (
        "what_has_no_end_is_gone_at_once",
        "if ms ~= '0' then",
        "if true then",
    ),
    (
        "unanswered_not_told",
        "return told and 'finished' or 'unanswered'",
        "return 'finished'",
    ),
    (
        "asked_not_forgotten",
        "if KEYS[3] then redis.call('DEL', KEYS[3]) end\n",
        "",
    ),
];

pub(super) const FAIL: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "whose_it_is_not_asked",
        "if not holds() then return {'stale', 0} end",
        "",
    ),
    (
        "a_list_is_not_asked",
        "return redis.call('LPOS', KEYS[2], ARGV[6]) and true",
        "return true",
    ),
    (
        "any_run_of_it_counts",
        " and whole(given[1][4]) == ARGV[5]",
        "",
    ),
    (
        "any_worker_counts",
        "ARGV[4], ARGV[4], 1, ARGV[3])",
        "ARGV[4], ARGV[4], 1)",
    ),
    (
        "a_stream_that_is_gone_is_an_error",
        "redis.pcall('XPENDING', KEYS[1]",
        "redis.call('XPENDING', KEYS[1]",
    ),
    ("runs_not_counted", "'runs', 1)\n", "'runs', 0)\n"),
    (
        "runs_remembered_for_ever",
        "redis.call('PEXPIRE', KEYS[4], TRIES_FOR)\n",
        "",
    ),
    (
        "one_run_too_many",
        "if runs < tonumber(ARGV[9])",
        "if runs <= tonumber(ARGV[9])",
    ),
    ("pauses_do_not_grow", " * 2 ^ (runs - 1)", ""),
    ("pauses_begin_doubled", "2 ^ (runs - 1)", "2 ^ runs"),
    (
        "pauses_have_no_end",
        "math.min(tonumber(ARGV[10]) * 2 ^ (runs - 1), tonumber(ARGV[11]))",
        "tonumber(ARGV[10]) * 2 ^ (runs - 1)",
    ),
    ("no_pause", "whole(now + pause)", "whole(now)"),
    (
        "two_that_are_alike_are_one",
        "ARGV[13] .. ' ' .. ARGV[6]",
        "'t ' .. ARGV[6]",
    ),
    (
        "stays_in_its_hand_while_it_waits",
        "  let_go(KEYS[2], ARGV[2], known_by())\n  return {'again', runs}",
        "  return {'again', runs}",
    ),
    (
        "answered_although_it_runs_again",
        "  let_go(KEYS[2], ARGV[2], known_by())\n  return {'again', runs}",
        "  answer(KEYS[3], ARGV[7], ARGV[8])\n  let_go(KEYS[2], ARGV[2], known_by())\n  return {'again', runs}",
    ),
    (
        "who_is_told_has_a_dead_letter",
        "if ARGV[12] ~= '' then",
        "if true then",
    ),
    ("no_dead_letter", "if ARGV[12] ~= '' then", "if false then"),
    (
        "dead_letter_without_message",
        "'data', ARGV[6], 'error'",
        "'data', '', 'error'",
    ),
    (
        "dead_letter_without_error",
        "'error', ARGV[12]",
        "'error', ''",
    ),
    (
        "dead_letter_without_runs",
        "'runs', runs,\n",
        "'runs', 0,\n",
    ),
    (
        "dead_letter_at_another_time",
        "'at', whole(now)",
        "'at', whole(now + 1)",
    ),
    (
        "failure_not_answered",
        "local told = answer(KEYS[3], ARGV[7], ARGV[8])",
        "local told = true",
    ),
    (
        "unanswered_not_told",
        "told and 'failed' or 'unanswered'",
        "'failed'",
    ),
    ("dead_letter_without_queue", ", 'queue', KEYS[1])", ")"),
    ("tries_not_forgotten", "redis.call('DEL', KEYS[4])\n", ""),
    (
        "asked_not_forgotten",
        "if KEYS[7] then redis.call('DEL', KEYS[7]) end\n",
        "",
    ),
    (
        "known_by_the_message_alone",
        "ARGV[2] == '' and ARGV[6] or ARGV[4]",
        "ARGV[6]",
    ),
    (
        "not_let_go",
        "KEYS[7]) end\nlet_go(KEYS[2], ARGV[2], known_by())\n",
        "KEYS[7]) end\n",
    ),
];

pub(super) const RELEASE: &[Change] = &[
    (
        "whose_it_is_not_asked",
        "if not holds() then return 0 end",
        "",
    ),
    ("not_put_back", "put(KEYS[1], ARGV[6])\n", ""),
    (
        "not_let_go",
        "ARGV[6])\nlet_go(KEYS[2], ARGV[2], known_by())\n",
        "ARGV[6])\n",
    ),
    (
        "the_last_of_a_list",
        "redis.call('RPUSH', queue, message)",
        "redis.call('LPUSH', queue, message)",
    ),
    (
        "a_stream_does_not_get_it",
        "  else redis.call('XADD', queue, '*', 'data', message) end",
        "  end",
    ),
];

pub(super) const REPLAY: &[Change] = &[
    (
        "what_is_not_there_is_an_error",
        "if not entry then return '' end",
        "",
    ),
    (
        "goes_to_another_queue",
        "if from ~= KEYS[1] then return from end",
        "",
    ),
    (
        "an_older_one_goes_nowhere",
        "local from = KEYS[1]",
        "local from = ''",
    ),
    ("not_put_back", "put(KEYS[1], entry[2][2])\n", ""),
    (
        "stays_a_dead_letter",
        "redis.call('XDEL', KEYS[2], ARGV[3])\n",
        "",
    ),
];
