//! The verbs that have a script, and the files of the scripts.

/// A script's name; the same word names the Rust function, the file and the conformance cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is described by the function of its name")]
pub enum Verb {
    Enqueue,
    AddChild,
    Claim,
    Renew,
    Isolate,
    Log,
    Complete,
    CompleteAndClaim,
    Fail,
    Release,
    Reclaim,
    ExpireWorkers,
    Promote,
    ResolveDependents,
    CheckOrphans,
    TrackOrphans,
    Prune,
    Control,
    Migrate,
    Register,
    Deregister,
    Cancel,
    Retry,
    Delete,
    PutSchedule,
    DueSchedules,
    FireSchedules,
    CreateBatch,
    SealBatch,
    CancelBatch,
    SweepBatches,
    Configure,
    Alert,
    RunNow,
    ImportBananas,
    ExportBananas,
    Restore,
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
    BananasComplete,
    BananasFail,
    BananasRelease,
    BananasMoveToRoute,
    BananasReroute,
    BananasReclaim,
    BananasDue,
    BananasPromote,
    BananasOrphans,
    BananasRescue,
    BananasDeregister,
    BananasSchedules,
    BananasPutSchedule,
    BananasFireSchedule,
    BananasPeek,
    BananasRetryDead,
    BananasDeleteDead,
    BananasConfigure,
    NoobleReceive,
    NoobleComplete,
    NoobleFail,
    NoobleRelease,
    NoobleRenew,
    NoobleReclaim,
    NooblePromote,
    NoobleTrim,
    NoobleDeregister,
    NoobleRetryDead,
    NoobleSagaStep,
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
pub enum Protocol {
    /// Meshwork's own, which is Hero's.
    Hero,
    /// Jobs of Bananas.
    Bananas,
    /// Actions of Nooble4.
    Nooble,
    /// Records and messages of contexts. Their jobs use [`Self::Hero`].
    Context,
}

impl Protocol {
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
        Self::AddChild,
        Self::Claim,
        Self::Renew,
        Self::Isolate,
        Self::Log,
        Self::Complete,
        Self::CompleteAndClaim,
        Self::Fail,
        Self::Release,
        Self::Reclaim,
        Self::ExpireWorkers,
        Self::Promote,
        Self::ResolveDependents,
        Self::CheckOrphans,
        Self::TrackOrphans,
        Self::Prune,
        Self::Control,
        Self::Migrate,
        Self::Register,
        Self::Deregister,
        Self::Cancel,
        Self::Retry,
        Self::Delete,
        Self::PutSchedule,
        Self::DueSchedules,
        Self::FireSchedules,
        Self::CreateBatch,
        Self::SealBatch,
        Self::CancelBatch,
        Self::SweepBatches,
        Self::Configure,
        Self::Alert,
        Self::RunNow,
        Self::ImportBananas,
        Self::ExportBananas,
        Self::Restore,
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
        Self::BananasComplete,
        Self::BananasFail,
        Self::BananasRelease,
        Self::BananasMoveToRoute,
        Self::BananasReroute,
        Self::BananasReclaim,
        Self::BananasDue,
        Self::BananasPromote,
        Self::BananasOrphans,
        Self::BananasRescue,
        Self::BananasDeregister,
        Self::BananasSchedules,
        Self::BananasPutSchedule,
        Self::BananasFireSchedule,
        Self::BananasPeek,
        Self::BananasRetryDead,
        Self::BananasDeleteDead,
        Self::BananasConfigure,
        Self::NoobleReceive,
        Self::NoobleComplete,
        Self::NoobleFail,
        Self::NoobleRelease,
        Self::NoobleRenew,
        Self::NoobleReclaim,
        Self::NooblePromote,
        Self::NoobleTrim,
        Self::NoobleDeregister,
        Self::NoobleRetryDead,
        Self::NoobleSagaStep,
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
            Self::AddChild => "submit",
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Isolate => "isolate",
            Self::Log => "log",
            Self::Complete => "finish",
            Self::CompleteAndClaim => "exchange",
            Self::Fail => "fail",
            Self::Release => "release",
            Self::Reclaim => "reclaim",
            Self::ExpireWorkers => "orphan",
            Self::Promote => "promote",
            Self::ResolveDependents => "settle",
            Self::CheckOrphans => "watch",
            Self::TrackOrphans => "adopt",
            Self::Prune => "prune",
            Self::Control => "control",
            Self::Migrate => "migrate",
            Self::Register => "present",
            Self::Deregister => "leave",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
            Self::PutSchedule => "schedule",
            Self::DueSchedules => "due",
            Self::FireSchedules => "tick",
            Self::CreateBatch => "open_batch",
            Self::SealBatch => "seal_batch",
            Self::CancelBatch => "cancel_batch",
            Self::SweepBatches => "tend_batches",
            Self::Configure => "configure",
            Self::Alert => "alert",
            Self::RunNow => "run_now",
            Self::ImportBananas => "take_over",
            Self::ExportBananas => "give_back",
            Self::Restore => "import",
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
            Self::BananasComplete => "bananas_finish",
            Self::BananasFail => "bananas_fail",
            Self::BananasRelease => "bananas_release",
            Self::BananasMoveToRoute => "bananas_move",
            Self::BananasReroute => "bananas_forward",
            Self::BananasReclaim => "bananas_reclaim",
            Self::BananasDue => "bananas_due",
            Self::BananasPromote => "bananas_promote",
            Self::BananasOrphans => "bananas_strays",
            Self::BananasRescue => "bananas_adopt",
            Self::BananasDeregister => "bananas_leave",
            Self::BananasSchedules => "bananas_crons",
            Self::BananasPutSchedule => "bananas_cron",
            Self::BananasFireSchedule => "bananas_fire",
            Self::BananasPeek => "bananas_peek",
            Self::BananasRetryDead => "bananas_replay",
            Self::BananasDeleteDead => "bananas_forget",
            Self::BananasConfigure => "bananas_configure",
            Self::NoobleReceive => "nooble_receive",
            Self::NoobleComplete => "nooble_finish",
            Self::NoobleFail => "nooble_fail",
            Self::NoobleRelease => "nooble_release",
            Self::NoobleRenew => "nooble_renew",
            Self::NoobleReclaim => "nooble_reclaim",
            Self::NooblePromote => "nooble_promote",
            Self::NoobleTrim => "nooble_trim",
            Self::NoobleDeregister => "nooble_leave",
            Self::NoobleRetryDead => "nooble_replay",
            Self::NoobleSagaStep => "nooble_step",
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
            Self::BananasDeregister => Self::Deregister.name(),
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
    pub const fn protocol(self) -> Protocol {
        let at = self as usize;
        if at < Self::BananasEnqueue as usize {
            Protocol::Hero
        } else if at < Self::NoobleReceive as usize {
            Protocol::Bananas
        } else if at < Self::ContextCommit as usize {
            Protocol::Nooble
        } else {
            Protocol::Context
        }
    }
}
