//! Changes of migrate.

use super::Change;

pub(super) const MIGRATE: &[Change] = &[
    (
        "setting_not_removed",
        "redis.call('HDEL', CONFIG, field)",
        "local _ = field",
    ),
    (
        "setting_not_written",
        "redis.call('HSET', CONFIG, field, ARGV[5])",
        "local _ = field",
    ),
    (
        "setting_of_another_type",
        "'migration:' .. ARGV[3]",
        "'migration:' .. ARGV[3] .. 's'",
    ),
    ("only_the_first_step", "~= ARGV[4] then", "~= '' then"),
    (
        "nobody_is_told",
        "event('', 'migration', ARGV[2],",
        "local _ = (ARGV[2] and",
    ),
    ("nobody_did_it", "'migration', ARGV[2],", "'migration', '',"),
    (
        "its_end_is_a_phase",
        "ARGV[5] ~= '' and ARGV[5] or 'off'",
        "ARGV[5]",
    ),
];
