//! Changes of submit.

use super::Change;

pub(super) const SUBMIT: &[Change] = &[
    (
        "lost_run_submits",
        "if has.status ~= 'started' or has.mw_token ~= ARGV[3] then",
        "if has.status ~= 'started' then",
    ),
    (
        "ended_job_submits",
        "if has.status ~= 'started' or has.mw_token ~= ARGV[3] then",
        "if has.mw_token ~= ARGV[3] then",
    ),
    (
        "stopping_job_submits",
        "if has.mw_stop then return 'stopping' end",
        "",
    ),
    (
        "submitted_anew",
        "if has[field] then return has[field] == ARGV[5] and 'exists' or 'differs ' .. has[field] end",
        "",
    ),
    (
        "differing_child_taken_for_the_same",
        "has[field] == ARGV[5] and 'exists'",
        "'exists'",
    ),
    (
        "same_child_taken_for_a_differing_one",
        "has[field] == ARGV[5] and 'exists'",
        "false",
    ),
    (
        "number_of_another_call",
        "local field = 'mw_child_' .. ARGV[4]",
        "local field = 'mw_child_1'",
    ),
    (
        "other_job_taken_for_a_child",
        "if answer == 'exists' then return 'taken' end",
        "",
    ),
    (
        "refused_child_noted",
        "if answer == 'stored' then\n  local children",
        "if answer then\n  local children",
    ),
    (
        "child_not_noted",
        "KEYS[1], field, ARGV[5], 'mw_children'",
        "KEYS[1], 'mw_children'",
    ),
    (
        "children_not_counted",
        "or '') or 0) + 1\n  local highest",
        "or '') or 0)\n  local highest",
    ),
    (
        "highest_number_forgotten",
        "math.max(tonumber(has.mw_calls or '') or 0, tonumber(ARGV[4]))",
        "tonumber(ARGV[4])",
    ),
    (
        "not_pushed",
        "push_all()\nreturn done(answer)",
        "return done(answer)",
    ),
    (
        "time_not_the_servers",
        "local now = clock(ARGV[1])\nlocal id",
        "local now = clock(ARGV[1]) + 1\nlocal id",
    ),
    ("who_asked_not_told", "iso(now), ARGV[2])", "iso(now), '')"),
];
