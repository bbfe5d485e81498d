//! The verbs that have a script, and the files of the scripts.

/// A script's name; the same word names the Rust function, the file and the conformance cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is described by the function of its name")]
pub enum Verb {
    Enqueue,
    Submit,
    Claim,
    Renew,
    Isolate,
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
    Alert,
    RunNow,
    TakeOver,
    GiveBack,
    Import,
    FlowSubmit,
    FlowClaim,
    FlowCommit,
    FlowStop,
    FlowRetry,
    FlowAnswer,
    FlowSweep,
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
    NoobleStoreReply,
    ContextCommit,
    ContextDraw,
    ContextRead,
    ContextScan,
    ContextTake,
}

/// The protocol of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schema {
    /// Meshwork's own, which is Hero's.
    Hero,
    /// Jobs of Bananas.
    Bananas,
    /// Actions of Nooble4.
    Nooble,
    /// Records and messages of contexts. Their jobs use [`Self::Hero`].
    Context,
}

impl Schema {
    /// Returns the protocol of a script's file.
    pub(super) fn of_file(file: &str) -> Self {
        match file.split('/').next() {
            Some("bananas") => Self::Bananas,
            Some("nooble") => Self::Nooble,
            Some("context") => Self::Context,
            _ => Self::Hero,
        }
    }
}

impl Verb {
    /// All verbs, in the order of a job's life.
    pub const ALL: [Self; 82] = [
        Self::Enqueue,
        Self::Submit,
        Self::Claim,
        Self::Renew,
        Self::Isolate,
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
        Self::Alert,
        Self::RunNow,
        Self::TakeOver,
        Self::GiveBack,
        Self::Import,
        Self::FlowSubmit,
        Self::FlowClaim,
        Self::FlowCommit,
        Self::FlowStop,
        Self::FlowRetry,
        Self::FlowAnswer,
        Self::FlowSweep,
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
        Self::NoobleStoreReply,
        Self::ContextCommit,
        Self::ContextDraw,
        Self::ContextRead,
        Self::ContextScan,
        Self::ContextTake,
    ];

    /// Returns the name of the verb.
    #[must_use]
    #[allow(clippy::too_many_lines, reason = "a table with a line for each verb")]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Submit => "submit",
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Isolate => "isolate",
            Self::Log => "log",
            Self::Finish => "finish",
            Self::Exchange => "exchange",
            Self::Fail => "fail",
            Self::Release => "release",
            Self::Reclaim => "reclaim",
            Self::Orphan => "orphan",
            Self::Promote => "promote",
            Self::Settle => "settle",
            Self::Watch => "watch",
            Self::Adopt => "adopt",
            Self::Prune => "prune",
            Self::Control => "control",
            Self::Migrate => "migrate",
            Self::Present => "present",
            Self::Leave => "leave",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
            Self::Schedule => "schedule",
            Self::Due => "due",
            Self::Tick => "tick",
            Self::OpenBatch => "open_batch",
            Self::SealBatch => "seal_batch",
            Self::CancelBatch => "cancel_batch",
            Self::TendBatches => "tend_batches",
            Self::Configure => "configure",
            Self::Alert => "alert",
            Self::RunNow => "run_now",
            Self::TakeOver => "take_over",
            Self::GiveBack => "give_back",
            Self::Import => "import",
            Self::FlowSubmit => "flow_submit",
            Self::FlowClaim => "flow_claim",
            Self::FlowCommit => "flow_commit",
            Self::FlowStop => "flow_stop",
            Self::FlowRetry => "flow_retry",
            Self::FlowAnswer => "flow_answer",
            Self::FlowSweep => "flow_sweep",
            Self::BananasEnqueue => "bananas_enqueue",
            Self::BananasClaim => "bananas_claim",
            Self::BananasRenew => "bananas_renew",
            Self::BananasFinish => "bananas_finish",
            Self::BananasFail => "bananas_fail",
            Self::BananasRelease => "bananas_release",
            Self::BananasMove => "bananas_move",
            Self::BananasForward => "bananas_forward",
            Self::BananasReclaim => "bananas_reclaim",
            Self::BananasDue => "bananas_due",
            Self::BananasPromote => "bananas_promote",
            Self::BananasStrays => "bananas_strays",
            Self::BananasAdopt => "bananas_adopt",
            Self::BananasLeave => "bananas_leave",
            Self::BananasCrons => "bananas_crons",
            Self::BananasCron => "bananas_cron",
            Self::BananasFire => "bananas_fire",
            Self::BananasPeek => "bananas_peek",
            Self::BananasReplay => "bananas_replay",
            Self::BananasForget => "bananas_forget",
            Self::BananasConfigure => "bananas_configure",
            Self::NoobleReceive => "nooble_receive",
            Self::NoobleFinish => "nooble_finish",
            Self::NoobleFail => "nooble_fail",
            Self::NoobleRelease => "nooble_release",
            Self::NoobleRenew => "nooble_renew",
            Self::NoobleReclaim => "nooble_reclaim",
            Self::NooblePromote => "nooble_promote",
            Self::NoobleTrim => "nooble_trim",
            Self::NoobleLeave => "nooble_leave",
            Self::NoobleReplay => "nooble_replay",
            Self::NoobleStep => "nooble_step",
            Self::NoobleStoreReply => "nooble_store_reply",
            Self::ContextCommit => "context_commit",
            Self::ContextDraw => "context_draw",
            Self::ContextRead => "context_read",
            Self::ContextScan => "context_scan",
            Self::ContextTake => "context_take",
        }
    }

    /// Returns the file of its script in `lua/`.
    pub(super) fn file(self) -> String {
        let name = match self {
            // Lists are released in the same way for all kinds of jobs.
            Self::BananasLeave => Self::Leave.name(),
            _ => self.name(),
        };
        let of_folder = ["bananas_", "nooble_", "context_", "flow_"]
            .into_iter()
            .find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?)));
        match of_folder {
            Some((folder, name)) => format!("{}/{name}.lua", folder.trim_end_matches('_')),
            None => format!("{name}.lua"),
        }
    }

    /// Returns the protocol of the verb.
    #[must_use]
    pub const fn schema(self) -> Schema {
        let at = self as usize;
        if at < Self::BananasEnqueue as usize {
            Schema::Hero
        } else if at < Self::NoobleReceive as usize {
            Schema::Bananas
        } else if at < Self::ContextCommit as usize {
            Schema::Nooble
        } else {
            Schema::Context
        }
    }
}
