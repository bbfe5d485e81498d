//! Changes of how records of other clients are judged.

use super::Change;

/// Which records can be read.
pub(super) const UNREADABLE: &[Change] = &[
    (
        "no_job_not_noted",
        "event(id, 'drop', ask.worker, 'no job: its hash has no status')",
        "",
    ),
    (
        "nothing_noted_as_no_job",
        "if next(is) then event",
        "if true then event",
    ),
    (
        "another_status_runs",
        "and status ~= 'waiting_for_prerequisites' then return",
        "and false then return",
    ),
    (
        "another_status_is_left",
        "  if not known then is.status = 'dispatched' end\n",
        "",
    ),
    (
        "a_status_of_theirs_is_unreadable",
        "if not known and status ~= 'waiting_for_prerequisites' then",
        "if not known then",
    ),
    (
        "an_empty_status_is_unreadable",
        "local known = status == '' or status",
        "local known = status",
    ),
    (
        "a_job_that_has_begun_is_unreadable",
        "or status == 'started' or final(status)",
        "or final(status)",
    ),
    (
        "an_ended_job_is_unreadable",
        "or status == 'started' or final(status)",
        "or status == 'started'",
    ),
    (
        "no_script_runs",
        "  if not string.find(is.script or '', '%S') then return 'it has no script' end\n",
        "",
    ),
    (
        "a_blank_script_runs",
        "not string.find(is.script or '', '%S')",
        "not is.script",
    ),
    (
        "an_id_that_is_no_text_runs",
        "  if not is_text(id) then return 'its id is no valid utf-8' end\n",
        "",
    ),
    (
        "only_ascii_is_text",
        "    text = string.gsub(text, character, ' ')\n",
        "",
    ),
    (
        "what_is_left_over_becomes_text",
        "string.gsub(text, character, ' ')",
        "string.gsub(text, character, '')",
    ),
    (
        "text_of_two_bytes_too_long",
        "'[\\194-\\223]",
        "'[\\192-\\223]",
    ),
    (
        "text_of_three_bytes_too_long",
        "'\\224[\\160-\\191]",
        "'\\224[\\128-\\191]",
    ),
    (
        "text_of_half_a_pair",
        "'\\237[\\128-\\159]",
        "'\\237[\\128-\\191]",
    ),
    (
        "text_of_four_bytes_too_long",
        "'\\240[\\144-\\191]",
        "'\\240[\\128-\\191]",
    ),
    (
        "text_beyond_the_last_character",
        "'\\244[\\128-\\143]",
        "'\\244[\\128-\\191]",
    ),
    (
        "text_of_three_bytes_is_none",
        "'[\\225-\\236\\238\\239]",
        "'[\\225-\\236]",
    ),
    (
        "status_told_whole",
        "string.sub(text, 1, LONGEST_QUOTE)",
        "text",
    ),
    (
        "unreadable_job_of_another_worker",
        "  if not takeable(is, id, from) then return true end\n  if why then",
        "  if not why and not takeable(is, id, from) then return true end\n  if why then",
    ),
    (
        "unreadable_job_is_no_dead_letter",
        "now, 'unreadable', '', false, 'unreadable')",
        "now, nil, '', false, 'unreadable')",
    ),
    (
        "unreadable_counts_as_stopped",
        "'unreadable', '', false, 'unreadable')",
        "'unreadable', '', false)",
    ),
    (
        "its_queue_not_written",
        "redis.call('HSET', key, 'mw_queue', is.mw_queue, unpack(",
        "redis.call('HSET', key, 'mw_attempt', 0, unpack(",
    ),
    (
        "its_old_client_told_elsewhere",
        "  if legacy then is.mw_legacy = '1' end\n",
        "",
    ),
    (
        "forgotten_that_it_is_of_an_old_list",
        "unpack(legacy and {'mw_legacy', '1'} or {})",
        "unpack({})",
    ),
];
