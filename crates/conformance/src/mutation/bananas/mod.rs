//! Changes of the scripts for jobs of Bananas.

mod crons;
mod dead;
mod ends;
mod limits;
mod over;
mod runs;

use meshwork_broker::script::Verb;

use super::Change;

/// All of them, each with the files whose cases notice most.
pub(super) const ALL: &[(Verb, &[Change], &[&str])] = &[
    (Verb::BananasEnqueue, runs::ENQUEUE, &[]),
    (Verb::BananasClaim, runs::CLAIM, &[]),
    (
        Verb::BananasClaim,
        limits::CLAIM,
        &["bananas_configure", "bananas_stats"],
    ),
    (Verb::BananasConfigure, limits::CONFIGURE, &[]),
    (Verb::BananasRenew, runs::RENEW, &[]),
    (Verb::BananasFinish, ends::FINISH, &[]),
    (Verb::BananasFail, ends::FAIL, &[]),
    (Verb::BananasRelease, runs::RELEASE, &[]),
    (Verb::BananasMove, runs::MOVE, &[]),
    (Verb::BananasForward, runs::FORWARD, &[]),
    (Verb::BananasReclaim, runs::RECLAIM, &[]),
    (Verb::BananasLeave, runs::LEAVE, &["bananas_reclaim"]),
    (Verb::BananasDue, ends::DUE, &["bananas_promote"]),
    (Verb::BananasPromote, ends::PROMOTE, &[]),
    (Verb::BananasStrays, ends::STRAYS, &[]),
    (Verb::BananasAdopt, ends::ADOPT, &["bananas_strays"]),
    (Verb::BananasCrons, crons::CRONS, &["bananas_cron"]),
    (Verb::BananasCron, crons::CRON, &[]),
    (Verb::BananasFire, crons::FIRE, &["bananas_cron"]),
    (Verb::BananasReplay, dead::REPLAY, &["bananas_dead"]),
    (Verb::BananasForget, dead::FORGET, &["bananas_dead"]),
    (Verb::BananasPeek, over::PEEK, &["take_over"]),
    (Verb::TakeOver, over::TAKE_OVER, &["take_over"]),
    (Verb::GiveBack, over::GIVE_BACK, &["give_back"]),
    (Verb::Finish, over::TOLD, &["give_back"]),
    (Verb::Fail, over::TOLD_FAILED, &["give_back"]),
    (Verb::Delete, over::TOLD_DELETED, &["give_back"]),
];
