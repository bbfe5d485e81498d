//! Changes of the scripts for actions of Nooble4.

mod ends;
mod keeps;
mod steps;

use meshwork_broker::script::Verb;

use super::Change;

/// All of them, each with the files whose cases notice most.
pub(super) const ALL: &[(Verb, &[Change], &[&str])] = &[
    (Verb::NoobleReceive, keeps::RECEIVE, &[]),
    (Verb::NoobleFinish, ends::FINISH, &[]),
    (Verb::NoobleFail, ends::FAIL, &[]),
    (Verb::NoobleRelease, ends::RELEASE, &[]),
    (Verb::NoobleRenew, keeps::RENEW, &["nooble_reclaim"]),
    (Verb::NoobleReclaim, keeps::RECLAIM, &[]),
    (Verb::NooblePromote, keeps::PROMOTE, &["nooble_fail"]),
    (Verb::NoobleTrim, keeps::TRIM, &[]),
    (Verb::NoobleLeave, keeps::LEAVE, &[]),
    (Verb::NoobleReplay, ends::REPLAY, &[]),
    (Verb::NoobleStep, steps::STEP, &[]),
    (Verb::NoobleKeepAnswer, steps::KEEP_ANSWER, &["nooble_step"]),
];
