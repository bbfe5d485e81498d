//! Errors of the library and the broker as errors of a command.

use meshwork::context::ContextError;
use meshwork::flow::FlowError;
use meshwork::protocol::bananas::HandlerError;
use meshwork::protocol::nooble::Error as ActionError;
use meshwork::spread::SpreadError;
use meshwork_broker::conn::ConnectError;
use meshwork_broker::{Error as BrokerError, MigrateError};
use meshwork_model::keys::hero::{LegacyListError, NoWorkQueue};
use meshwork_ops::OpError;

use super::CommandError;
use crate::exit::Exit;

/// Remedy for a wrong name of a queue.
const QUEUES: &str = "`meshwork queue list` shows the queues";

impl From<meshwork::Error> for CommandError {
    fn from(error: meshwork::Error) -> Self {
        let made = Self::new(exit_of(&error), &error);
        match hint_of(&error) {
            Some(hint) => made.with_hint(hint),
            None => made,
        }
    }
}

impl From<OpError> for CommandError {
    fn from(error: OpError) -> Self {
        let (exit, hint) = match error {
            OpError::Jobs(error) => return error.into(),
            OpError::Context(error) => return error.into(),
            OpError::Flow(error) => return error.into(),
            OpError::Spread(error) => return error.into(),
            OpError::InPart(part, error) => return Self::from(*error).in_part(part),
            OpError::NoQueue {
                is_change: true, ..
            } => {
                let message = format!("{error}: correct its name, or give --create");
                return Self::new(Exit::NO_JOB, message).with_hint(QUEUES);
            }
            OpError::NoQueue { .. } => (Exit::NO_JOB, Some(QUEUES)),
            OpError::Invalid(_) => (Exit::USAGE, None),
            OpError::Refused { .. } => (Exit::FAILED, None),
            OpError::NotFound { hint, .. } => (Exit::NO_JOB, Some(hint)),
            OpError::Forbidden { hint, .. } => (Exit::FAILED, hint),
        };
        let made = Self::new(exit, error);
        match hint {
            Some(hint) => made.with_hint(hint),
            None => made,
        }
    }
}

impl From<BrokerError> for CommandError {
    fn from(error: BrokerError) -> Self {
        meshwork::Error::from(error).into()
    }
}

impl From<NoWorkQueue> for CommandError {
    fn from(error: NoWorkQueue) -> Self {
        Self::usage(error)
    }
}

impl From<LegacyListError> for CommandError {
    fn from(error: LegacyListError) -> Self {
        Self::usage(error)
    }
}

impl From<HandlerError> for CommandError {
    fn from(error: HandlerError) -> Self {
        Self::usage(error)
    }
}

impl From<MigrateError> for CommandError {
    fn from(error: MigrateError) -> Self {
        let exit = match error {
            MigrateError::Broker(_) => Exit::SERVER,
            MigrateError::Shared { .. } => Exit::USAGE,
            _ => Exit::FAILED,
        };
        Self::new(exit, error)
    }
}

impl From<ActionError> for CommandError {
    fn from(error: ActionError) -> Self {
        use ActionError as E;
        let exit = match error {
            E::Target(_) | E::Data(_) | E::Invalid(_) => Exit::USAGE,
            E::Connect(_) | E::Broker(_) => Exit::SERVER,
            E::NoAnswer { .. } => Exit::NOT_ENDED,
            E::Failed { .. } | E::Answer { .. } | E::Unreadable { .. } => Exit::FAILED,
            _ => Exit::SYSTEM,
        };
        Self::new(exit, error)
    }
}

impl From<FlowError> for CommandError {
    fn from(error: FlowError) -> Self {
        let exit = match error {
            FlowError::Broker(error) => return meshwork::Error::from(error).into(),
            FlowError::Context(error) => return error.into(),
            FlowError::NoFlow(_) | FlowError::NoApproval(..) => Exit::NO_JOB,
            FlowError::NoPlan(_)
            | FlowError::NotTakenUp(_)
            | FlowError::NotEnded(_)
            | FlowError::NotAsked(_)
            | FlowError::Late(_)
            | FlowError::Answered { .. } => Exit::FAILED,
            _ => Exit::USAGE,
        };
        Self::new(exit, error)
    }
}

impl From<SpreadError> for CommandError {
    fn from(error: SpreadError) -> Self {
        use SpreadError as E;
        let exit = match error {
            E::Context(error) => return error.into(),
            E::Job(error) => return error.into(),
            E::Moving { .. } | E::Busy(_) | E::Registry(_) => Exit::FAILED,
            _ => Exit::USAGE,
        };
        Self::new(exit, error)
    }
}

impl From<ContextError> for CommandError {
    fn from(error: ContextError) -> Self {
        use ContextError as E;
        let temporary = match &error {
            E::Broker(error) => error.is_temporary(),
            E::Jobs(error) => {
                matches!(&**error, meshwork::Error::Broker(error) if error.is_temporary())
            }
            _ => false,
        };
        let exit = match error {
            E::Jobs(ref error) => exit_of(error),
            E::Broker(_) | E::Acl(_) => Exit::SERVER,
            E::NoActor(_) | E::NoContext(_) | E::NoMessage { .. } | E::NoRecord { .. } => {
                Exit::NO_JOB
            }
            E::NoRunner { .. } | E::NoPeer(_) => Exit::NO_JOB,
            E::NotEnded { .. } => Exit::NOT_ENDED,
            E::Busy(_)
            | E::Denied(_)
            | E::HasRole { .. }
            | E::LacksRole { .. }
            | E::NoNodeScope(_) => Exit::FAILED,
            E::MessageOpen { .. } | E::PeerNotTrusted(_) | E::Card(_) => Exit::FAILED,
            E::LastAdmin { .. } | E::NoNumber(_) => Exit::FAILED,
            E::RevokedKey(_) | E::UnknownKey { .. } => Exit::FAILED,
            _ => Exit::USAGE,
        };
        Self::new(exit, error).temporary(temporary)
    }
}

/// Returns the exit code of an error.
fn exit_of(error: &meshwork::Error) -> Exit {
    use meshwork::Error as E;
    match error {
        E::Target(_)
        | E::Connect(ConnectError::Target(_))
        | E::Name(_)
        | E::Invalid(_)
        | E::InvalidBatch(_)
        | E::Script { .. }
        | E::LogDir(_)
        | E::JobExists { .. }
        | E::UnknownType { .. }
        | E::WorkerNameTaken { certain: true, .. }
        | E::Recurrence(_)
        | E::Zone(_)
        | E::ScheduleExists { .. }
        | E::Cursor(_)
        | E::NoHandlers => Exit::USAGE,
        E::Broker(BrokerError::Schedule(_) | BrokerError::ScheduleOver { .. }) => Exit::USAGE,
        E::Broker(BrokerError::Element(_) | BrokerError::Prerequisite(_)) => Exit::USAGE,
        E::Broker(BrokerError::ScheduleBusy { .. }) | E::NoJobNumber { .. } => Exit::FAILED,
        E::Overlaps { .. } | E::ScheduleRefused { .. } | E::Unreadable(_) => Exit::FAILED,
        E::Broker(
            BrokerError::Setting(_) | BrokerError::InvalidBananas(_) | BrokerError::InvalidCron(_),
        ) => Exit::USAGE,
        E::Failed { .. }
        | E::Payload { .. }
        | E::QueueFull { .. }
        | E::DuplicateUniqueKey { .. }
        | E::QueueDraining { .. }
        | E::PayloadTooLarge { .. }
        | E::NotDeadLettered { .. }
        | E::BatchClosed { .. } => Exit::FAILED,
        E::Connect(_) | E::Broker(_) | E::WorkerNameTaken { certain: false, .. } => Exit::SERVER,
        E::JobWaitTimeout { .. }
        | E::CancelTimeout { .. }
        | E::DrainTimeout { .. }
        | E::RequestTimeout { .. }
        | E::BatchWaitTimeout { .. } => Exit::NOT_ENDED,
        E::JobNotFound { .. }
        | E::UnknownPrerequisite { .. }
        | E::NoSchedule { .. }
        | E::BatchNotFound { .. } => Exit::NO_JOB,
        _ => Exit::SYSTEM,
    }
}

/// Returns the remedy for an error whose message has none.
fn hint_of(error: &meshwork::Error) -> Option<&'static str> {
    use meshwork::Error as E;
    Some(match error {
        E::JobNotFound { .. } => "`meshwork job list` lists the jobs",
        E::NoSchedule { .. } => "`meshwork schedule list` lists the schedules",
        E::ScheduleExists { .. } => "`--replace` replaces it, `meshwork schedule show` shows it",
        E::QueueFull { .. } => {
            "`meshwork queue list` shows the limits, `meshwork queue limit set` changes one"
        }
        E::BatchNotFound { .. } => "`meshwork batch list` lists the batches",
        E::QueueDraining { .. } => "`meshwork queue resume` ends the drain",
        E::PayloadTooLarge { .. } => "`meshwork queue limit show` shows the greatest size",
        E::NotDeadLettered { .. } => "`meshwork dead list` shows the dead letters",
        // A reachable server that refuses has its own hint.
        E::Broker(error) if error.is_temporary() && !error.says_what_to_do() => {
            "check that the server is up, and repeat the command"
        }
        _ => return None,
    })
}
