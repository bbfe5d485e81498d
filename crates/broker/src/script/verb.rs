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
    MoveAway,
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
    CopyCounters,
    Alert,
    SpreadKeys,
    RunNow,
    SetJob,
    SaveObject,
    DeleteObject,
    ReadObjects,
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
    FlowDeploy,
    FlowFire,
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
    pub const ALL: [Self; 91] = [
        Self::Enqueue,
        Self::AddChild,
        Self::Claim,
        Self::Renew,
        Self::MoveAway,
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
        Self::CopyCounters,
        Self::Alert,
        Self::SpreadKeys,
        Self::RunNow,
        Self::SetJob,
        Self::SaveObject,
        Self::DeleteObject,
        Self::ReadObjects,
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
        Self::FlowDeploy,
        Self::FlowFire,
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
            Self::AddChild => "add_child",
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::MoveAway => "move_away",
            Self::Isolate => "isolate",
            Self::Log => "log",
            Self::Complete => "complete",
            Self::CompleteAndClaim => "complete_and_claim",
            Self::Fail => "fail",
            Self::Release => "release",
            Self::Reclaim => "reclaim",
            Self::ExpireWorkers => "expire_workers",
            Self::Promote => "promote",
            Self::ResolveDependents => "resolve_dependents",
            Self::CheckOrphans => "check_orphans",
            Self::TrackOrphans => "track_orphans",
            Self::Prune => "prune",
            Self::Control => "control",
            Self::Migrate => "migrate",
            Self::Register => "register",
            Self::Deregister => "deregister",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
            Self::PutSchedule => "put_schedule",
            Self::DueSchedules => "due_schedules",
            Self::FireSchedules => "fire_schedules",
            Self::CreateBatch => "create_batch",
            Self::SealBatch => "seal_batch",
            Self::CancelBatch => "cancel_batch",
            Self::SweepBatches => "sweep_batches",
            Self::Configure => "configure",
            Self::CopyCounters => "copy_counters",
            Self::Alert => "alert",
            Self::SpreadKeys => "spread_keys",
            Self::RunNow => "run_now",
            Self::SetJob => "set_job",
            Self::SaveObject => "save_object",
            Self::DeleteObject => "delete_object",
            Self::ReadObjects => "read_objects",
            Self::ImportBananas => "import_bananas",
            Self::ExportBananas => "export_bananas",
            Self::Restore => "restore",
            Self::FlowSubmit => "flow_submit",
            Self::FlowClaim => "flow_claim",
            Self::FlowCommit => "flow_commit",
            Self::FlowStop => "flow_stop",
            Self::FlowRetry => "flow_retry",
            Self::FlowAnswer => "flow_answer",
            Self::FlowSweep => "flow_sweep",
            Self::FlowDeploy => "flow_deploy",
            Self::FlowFire => "flow_fire",
            Self::BananasEnqueue => "bananas_enqueue",
            Self::BananasClaim => "bananas_claim",
            Self::BananasRenew => "bananas_renew",
            Self::BananasComplete => "bananas_complete",
            Self::BananasFail => "bananas_fail",
            Self::BananasRelease => "bananas_release",
            Self::BananasMoveToRoute => "bananas_move_to_route",
            Self::BananasReroute => "bananas_reroute",
            Self::BananasReclaim => "bananas_reclaim",
            Self::BananasDue => "bananas_due",
            Self::BananasPromote => "bananas_promote",
            Self::BananasOrphans => "bananas_orphans",
            Self::BananasRescue => "bananas_rescue",
            Self::BananasDeregister => "bananas_deregister",
            Self::BananasSchedules => "bananas_schedules",
            Self::BananasPutSchedule => "bananas_put_schedule",
            Self::BananasFireSchedule => "bananas_fire_schedule",
            Self::BananasPeek => "bananas_peek",
            Self::BananasRetryDead => "bananas_retry_dead",
            Self::BananasDeleteDead => "bananas_delete_dead",
            Self::BananasConfigure => "bananas_configure",
            Self::NoobleReceive => "nooble_receive",
            Self::NoobleComplete => "nooble_complete",
            Self::NoobleFail => "nooble_fail",
            Self::NoobleRelease => "nooble_release",
            Self::NoobleRenew => "nooble_renew",
            Self::NoobleReclaim => "nooble_reclaim",
            Self::NooblePromote => "nooble_promote",
            Self::NoobleTrim => "nooble_trim",
            Self::NoobleDeregister => "nooble_deregister",
            Self::NoobleRetryDead => "nooble_retry_dead",
            Self::NoobleSagaStep => "nooble_saga_step",
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
        if let Some(folder) = self.folder() {
            return format!("{folder}/{name}.lua");
        }
        let of_prefix = ["bananas", "nooble", "context", "flow"]
            .into_iter()
            .find_map(|folder| Some((folder, name.strip_prefix(folder)?.strip_prefix('_')?)));
        match of_prefix {
            Some((folder, name)) => format!("{folder}/{name}.lua"),
            None => format!("{name}.lua"),
        }
    }

    /// Returns the folder of its script; `None` for the life of a job, and if the prefix of its name says it.
    const fn folder(self) -> Option<&'static str> {
        match self {
            Self::SaveObject | Self::DeleteObject | Self::ReadObjects => Some("objects"),
            Self::ExpireWorkers
            | Self::Control
            | Self::MoveAway
            | Self::Register
            | Self::Deregister
            | Self::BananasDeregister => Some("worker"),
            Self::CheckOrphans | Self::TrackOrphans => Some("orphans"),
            Self::PutSchedule | Self::DueSchedules | Self::FireSchedules => Some("schedule"),
            Self::CreateBatch | Self::SealBatch | Self::CancelBatch | Self::SweepBatches => {
                Some("batch")
            }
            Self::Configure | Self::CopyCounters | Self::Alert | Self::SpreadKeys => Some("queue"),
            Self::ImportBananas | Self::ExportBananas | Self::Restore => Some("transfer"),
            _ => None,
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
