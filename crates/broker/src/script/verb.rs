//! The verbs that have a script, and where it stands.

/// A script's name; the same word names the Rust function, the file and the conformance cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is described by the function of its name")]
pub enum Verb {
    Enqueue,
    Submit,
    Claim,
    Renew,
    Log,
    Finish,
    Exchange,
    Fail,
    Release,
    Reclaim,
    Orphan,
    Promote,
    Settle,
    Watch,
    Adopt,
    Prune,
    Control,
    Migrate,
    Present,
    Leave,
    Cancel,
    Retry,
    Delete,
    Schedule,
    Due,
    Tick,
    OpenBatch,
    SealBatch,
    CancelBatch,
    TendBatches,
    Configure,
    RunNow,
    TakeOver,
    GiveBack,
    BananasEnqueue,
    BananasClaim,
    BananasRenew,
    BananasFinish,
    BananasFail,
    BananasRelease,
    BananasMove,
    BananasForward,
    BananasReclaim,
    BananasDue,
    BananasPromote,
    BananasStrays,
    BananasAdopt,
    BananasLeave,
    BananasCrons,
    BananasCron,
    BananasFire,
    BananasPeek,
    BananasReplay,
    BananasForget,
    BananasConfigure,
    NoobleReceive,
    NoobleFinish,
    NoobleFail,
    NoobleRelease,
    NoobleRenew,
    NoobleReclaim,
    NooblePromote,
    NoobleTrim,
    NoobleLeave,
    NoobleReplay,
    NoobleStep,
    NoobleKeepAnswer,
}

/// Which system's wire a verb is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schema {
    /// Our own, which is Hero's (seeds 0 and 2).
    Hero,
    /// Jobs of Bananas (seed 4).
    Bananas,
    /// Actions of Nooble4 (seed 1).
    Nooble,
}

impl Verb {
    /// All verbs, in the order of a job's life.
    pub const ALL: [Self; 67] = [
        Self::Enqueue,
        Self::Submit,
        Self::Claim,
        Self::Renew,
        Self::Log,
        Self::Finish,
        Self::Exchange,
        Self::Fail,
        Self::Release,
        Self::Reclaim,
        Self::Orphan,
        Self::Promote,
        Self::Settle,
        Self::Watch,
        Self::Adopt,
        Self::Prune,
        Self::Control,
        Self::Migrate,
        Self::Present,
        Self::Leave,
        Self::Cancel,
        Self::Retry,
        Self::Delete,
        Self::Schedule,
        Self::Due,
        Self::Tick,
        Self::OpenBatch,
        Self::SealBatch,
        Self::CancelBatch,
        Self::TendBatches,
        Self::Configure,
        Self::RunNow,
        Self::TakeOver,
        Self::GiveBack,
        Self::BananasEnqueue,
        Self::BananasClaim,
        Self::BananasRenew,
        Self::BananasFinish,
        Self::BananasFail,
        Self::BananasRelease,
        Self::BananasMove,
        Self::BananasForward,
        Self::BananasReclaim,
        Self::BananasDue,
        Self::BananasPromote,
        Self::BananasStrays,
        Self::BananasAdopt,
        Self::BananasLeave,
        Self::BananasCrons,
        Self::BananasCron,
        Self::BananasFire,
        Self::BananasPeek,
        Self::BananasReplay,
        Self::BananasForget,
        Self::BananasConfigure,
        Self::NoobleReceive,
        Self::NoobleFinish,
        Self::NoobleFail,
        Self::NoobleRelease,
        Self::NoobleRenew,
        Self::NoobleReclaim,
        Self::NooblePromote,
        Self::NoobleTrim,
        Self::NoobleLeave,
        Self::NoobleReplay,
        Self::NoobleStep,
        Self::NoobleKeepAnswer,
    ];

    /// The verb as a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.parts().0
    }

    /// What it is about.
    #[must_use]
    pub const fn schema(self) -> Schema {
        let at = self as usize;
        if at < Self::BananasEnqueue as usize {
            Schema::Hero
        } else if at < Self::NoobleReceive as usize {
            Schema::Bananas
        } else {
            Schema::Nooble
        }
    }

    #[allow(clippy::too_many_lines, reason = "a table with a line for each verb")]
    pub(super) const fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::Enqueue => ("enqueue", include_str!("../lua/enqueue.lua")),
            Self::Submit => ("submit", include_str!("../lua/submit.lua")),
            Self::Claim => ("claim", include_str!("../lua/claim.lua")),
            Self::Renew => ("renew", include_str!("../lua/renew.lua")),
            Self::Log => ("log", include_str!("../lua/log.lua")),
            Self::Finish => ("finish", include_str!("../lua/finish.lua")),
            Self::Exchange => ("exchange", include_str!("../lua/exchange.lua")),
            Self::Fail => ("fail", include_str!("../lua/fail.lua")),
            Self::Release => ("release", include_str!("../lua/release.lua")),
            Self::Reclaim => ("reclaim", include_str!("../lua/reclaim.lua")),
            Self::Orphan => ("orphan", include_str!("../lua/orphan.lua")),
            Self::Promote => ("promote", include_str!("../lua/promote.lua")),
            Self::Settle => ("settle", include_str!("../lua/settle.lua")),
            Self::Watch => ("watch", include_str!("../lua/watch.lua")),
            Self::Adopt => ("adopt", include_str!("../lua/adopt.lua")),
            Self::Prune => ("prune", include_str!("../lua/prune.lua")),
            Self::Control => ("control", include_str!("../lua/control.lua")),
            Self::Migrate => ("migrate", include_str!("../lua/migrate.lua")),
            Self::Present => ("present", include_str!("../lua/present.lua")),
            Self::Leave => ("leave", include_str!("../lua/leave.lua")),
            Self::Cancel => ("cancel", include_str!("../lua/cancel.lua")),
            Self::Retry => ("retry", include_str!("../lua/retry.lua")),
            Self::Delete => ("delete", include_str!("../lua/delete.lua")),
            Self::Schedule => ("schedule", include_str!("../lua/schedule.lua")),
            Self::Due => ("due", include_str!("../lua/due.lua")),
            Self::Tick => ("tick", include_str!("../lua/tick.lua")),
            Self::OpenBatch => ("open_batch", include_str!("../lua/open_batch.lua")),
            Self::SealBatch => ("seal_batch", include_str!("../lua/seal_batch.lua")),
            Self::CancelBatch => ("cancel_batch", include_str!("../lua/cancel_batch.lua")),
            Self::TendBatches => ("tend_batches", include_str!("../lua/tend_batches.lua")),
            Self::Configure => ("configure", include_str!("../lua/configure.lua")),
            Self::RunNow => ("run_now", include_str!("../lua/run_now.lua")),
            Self::TakeOver => ("take_over", include_str!("../lua/take_over.lua")),
            Self::GiveBack => ("give_back", include_str!("../lua/give_back.lua")),
            Self::BananasEnqueue => (
                "bananas_enqueue",
                include_str!("../lua/bananas/enqueue.lua"),
            ),
            Self::BananasClaim => ("bananas_claim", include_str!("../lua/bananas/claim.lua")),
            Self::BananasRenew => ("bananas_renew", include_str!("../lua/bananas/renew.lua")),
            Self::BananasFinish => ("bananas_finish", include_str!("../lua/bananas/finish.lua")),
            Self::BananasFail => ("bananas_fail", include_str!("../lua/bananas/fail.lua")),
            Self::BananasRelease => (
                "bananas_release",
                include_str!("../lua/bananas/release.lua"),
            ),
            Self::BananasMove => ("bananas_move", include_str!("../lua/bananas/move.lua")),
            Self::BananasForward => (
                "bananas_forward",
                include_str!("../lua/bananas/forward.lua"),
            ),
            Self::BananasReclaim => (
                "bananas_reclaim",
                include_str!("../lua/bananas/reclaim.lua"),
            ),
            Self::BananasDue => ("bananas_due", include_str!("../lua/bananas/due.lua")),
            Self::BananasPromote => (
                "bananas_promote",
                include_str!("../lua/bananas/promote.lua"),
            ),
            Self::BananasStrays => ("bananas_strays", include_str!("../lua/bananas/strays.lua")),
            Self::BananasAdopt => ("bananas_adopt", include_str!("../lua/bananas/adopt.lua")),
            Self::BananasLeave => ("bananas_leave", include_str!("../lua/leave.lua")),
            Self::BananasCrons => ("bananas_crons", include_str!("../lua/bananas/crons.lua")),
            Self::BananasCron => ("bananas_cron", include_str!("../lua/bananas/cron.lua")),
            Self::BananasFire => ("bananas_fire", include_str!("../lua/bananas/fire.lua")),
            Self::BananasPeek => ("bananas_peek", include_str!("../lua/bananas/peek.lua")),
            Self::BananasReplay => ("bananas_replay", include_str!("../lua/bananas/replay.lua")),
            Self::BananasForget => ("bananas_forget", include_str!("../lua/bananas/forget.lua")),
            Self::BananasConfigure => (
                "bananas_configure",
                include_str!("../lua/bananas/configure.lua"),
            ),
            Self::NoobleReceive => ("nooble_receive", include_str!("../lua/nooble/receive.lua")),
            Self::NoobleFinish => ("nooble_finish", include_str!("../lua/nooble/finish.lua")),
            Self::NoobleFail => ("nooble_fail", include_str!("../lua/nooble/fail.lua")),
            Self::NoobleRelease => ("nooble_release", include_str!("../lua/nooble/release.lua")),
            Self::NoobleRenew => ("nooble_renew", include_str!("../lua/nooble/renew.lua")),
            Self::NoobleReclaim => ("nooble_reclaim", include_str!("../lua/nooble/reclaim.lua")),
            Self::NooblePromote => ("nooble_promote", include_str!("../lua/nooble/promote.lua")),
            Self::NoobleTrim => ("nooble_trim", include_str!("../lua/nooble/trim.lua")),
            Self::NoobleLeave => ("nooble_leave", include_str!("../lua/nooble/leave.lua")),
            Self::NoobleReplay => ("nooble_replay", include_str!("../lua/nooble/replay.lua")),
            Self::NoobleStep => ("nooble_step", include_str!("../lua/nooble/step.lua")),
            Self::NoobleKeepAnswer => (
                "nooble_keep_answer",
                include_str!("../lua/nooble/keep_answer.lua"),
            ),
        }
    }
}
