//! What any command can fail with, and what becomes of it: a message that names the thing, a hint where
//! something can be done, an exit code. The one place for all three.

use std::time::Duration;

use meshwork::model::keys::hero::{LegacyListError, NoWorkQueue};
use meshwork_broker::MigrateError;

use crate::commands::{JsonlError, ServiceError, UsageError, exit_of_migration};
use crate::confirm::ConfirmError;
use crate::exit::Exit;
use crate::hands::HandsError;
use crate::http::BindError;
use crate::http::guard::TokenError;
use crate::input::InputError;
use crate::interrupt::Interrupted;
use crate::out::{OutError, note};
use crate::script::ScriptError;
use crate::target::TargetError;

/// Why a command gave up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    /// Of a job or a schedule of Bananas, which other commands show than those of ours.
    #[error(transparent)]
    OfBananas(meshwork::Error),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Queue(#[from] NoWorkQueue),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Jsonl(#[from] JsonlError),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Hands(#[from] HandsError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(transparent)]
    OldList(#[from] LegacyListError),
    #[error(transparent)]
    Out(#[from] OutError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error(transparent)]
    Handler(#[from] meshwork::protocol::bananas::HandlerError),
    #[error(transparent)]
    Config(#[from] crate::commands::ConfigError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Action(#[from] meshwork::protocol::nooble::Error),
    #[error("{place} is no JSON: {why}")]
    NoJson { place: String, why: String },
    #[error("there is no dead letter {0}: `meshwork action dead list` shows those that there are")]
    NoDeadAction(String),
    #[error(
        "the dead letter {id} came from the queue {queue}, of the other dialect, and stays where it is: say --dialect \
         {dialect}"
    )]
    OtherDialect {
        id: String,
        queue: String,
        dialect: &'static str,
    },
    #[error(
        "nothing is known of the task or trace {0}: services of ours tell of the actions that they ended in the last \
         day, the latest 50,000"
    )]
    NoTrace(String),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("{name} is {value:?}: {why}")]
    Variable {
        name: &'static str,
        value: String,
        why: String,
    },
    #[error("{0} is for jobs of ours: leave it out with --schema bananas")]
    OnlyOurs(&'static str),
    #[error("{0} is for jobs of Bananas: give --schema bananas too, or leave it out")]
    OnlyBananas(&'static str),
    #[error("the handler {0} is given twice: say which file it is")]
    HandlerTwice(String),
    #[error("--topic says nothing without bindings: give --bindings FILE, or --route")]
    TopicUnread,
    #[error("no job of {of} has ended for {waited:?}; they go on")]
    NothingEnds { of: usize, waited: Duration },
    #[error("the system gives no {what}: {source}")]
    System {
        what: &'static str,
        source: std::io::Error,
    },
}

impl From<meshwork_broker::Error> for Error {
    fn from(error: meshwork_broker::Error) -> Self {
        Self::Meshwork(error.into())
    }
}

impl Error {
    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Meshwork(error) | Self::OfBananas(error) => exit_of(error),
            Self::Target(TargetError::Meshwork(error)) => exit_of(error),
            Self::Target(_) | Self::Script(_) | Self::Input(_) => Exit::USAGE,
            Self::OldList(_) | Self::Queue(_) | Self::Usage(_) => Exit::USAGE,
            Self::Service(ServiceError::Denied { .. }) => Exit::SERVER,
            Self::Handler(_) | Self::Service(_) | Self::Config(_) | Self::Variable { .. } => {
                Exit::USAGE
            }
            Self::OnlyBananas(_) | Self::HandlerTwice(_) | Self::TopicUnread => Exit::USAGE,
            Self::NoJson { .. } => Exit::USAGE,
            Self::Token(_) | Self::OnlyOurs(_) | Self::OtherDialect { .. } => Exit::USAGE,
            Self::Action(error) => exit_of_action(error),
            Self::NoDeadAction(_) | Self::NoTrace(_) => Exit::NO_JOB,
            Self::Jsonl(JsonlError::Changed { .. }) => Exit::FAILED,
            Self::Jsonl(_) => Exit::USAGE,
            Self::Migrate(error) => exit_of_migration(error),
            Self::Confirm(ConfirmError::NoTerminal { .. }) => Exit::USAGE,
            Self::Confirm(ConfirmError::Declined) => Exit::FAILED,
            Self::Hands(HandsError::Nobody { .. }) => Exit::USAGE,
            Self::Hands(HandsError::Gone { .. }) => Exit::SERVER,
            Self::Out(OutError::NoReader) => Exit::NO_READER,
            Self::Interrupted(interrupted) => interrupted.exit(),
            Self::NothingEnds { .. } => Exit::NOT_ENDED,
            Self::Out(OutError::Write(_)) | Self::System { .. } | Self::Bind(_) => Exit::SYSTEM,
        }
    }

    /// What can be done, where the message does not say it.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::OfBananas(meshwork::Error::NoJob { .. }) => Some(
                "`meshwork bananas queues` tells what waits, `meshwork bananas dead` shows dead letters",
            ),
            Self::OfBananas(meshwork::Error::NotDead { .. }) => {
                Some("`meshwork bananas dead` shows the dead letters")
            }
            Self::OfBananas(meshwork::Error::NoSchedule { .. }) => {
                Some("`meshwork bananas schedule list` shows the schedules that there are")
            }
            Self::OfBananas(meshwork::Error::ScheduleExists { .. }) => Some(
                "`--replace` makes another one of it, `meshwork bananas schedule list` shows it",
            ),
            Self::Meshwork(meshwork::Error::NoJob { .. }) => {
                Some("`meshwork job list` shows the jobs that there are")
            }
            Self::Meshwork(meshwork::Error::NoSchedule { .. }) => {
                Some("`meshwork schedule list` shows the schedules that there are")
            }
            Self::Meshwork(meshwork::Error::ScheduleExists { .. }) => {
                Some("`--replace` makes another one of it, `meshwork schedule show` shows it")
            }
            Self::Meshwork(meshwork::Error::QueueFull { .. }) => Some(
                "`meshwork queue list` shows the limits, `meshwork queue limit set` changes one",
            ),
            Self::Meshwork(meshwork::Error::NoBatch { .. }) => {
                Some("`meshwork batch list` shows the batches that there are")
            }
            Self::Meshwork(meshwork::Error::Draining { .. }) => {
                Some("`meshwork queue resume` lets it take jobs again")
            }
            Self::Meshwork(meshwork::Error::TooLarge { .. }) => {
                Some("`meshwork queue limit show` says how much it takes")
            }
            Self::Meshwork(meshwork::Error::NotDead { .. }) => {
                Some("`meshwork dead list` shows the dead letters")
            }
            // One that is up and refuses has said what to do.
            Self::Meshwork(meshwork::Error::Broker(error))
                if error.is_temporary() && !error.says_what_to_do() =>
            {
                Some("look whether the server is up, and say the same command again")
            }
            Self::NothingEnds { .. } => Some("say the same command again to go on waiting"),
            Self::Out(OutError::Write(_)) => Some("look whether the disk is full"),
            _ => None,
        }
    }

    /// Says it on stderr.
    pub(crate) fn tell(&self) {
        // The reader left on purpose, as `head` does.
        if matches!(self, Self::Out(OutError::NoReader)) {
            return;
        }
        note(format_args!("error: {self}"));
        if let Some(hint) = self.hint() {
            note(format_args!("hint: {hint}"));
        }
    }
}

fn exit_of_action(error: &meshwork::protocol::nooble::Error) -> Exit {
    use meshwork::protocol::nooble::Error as E;
    match error {
        E::Target(_) | E::Data(_) | E::Invalid(_) => Exit::USAGE,
        E::Connect(_) | E::Broker(_) => Exit::SERVER,
        E::NoAnswer { .. } => Exit::NOT_ENDED,
        E::Failed { .. } | E::Answer { .. } | E::Unreadable { .. } => Exit::FAILED,
        _ => Exit::SYSTEM,
    }
}

fn exit_of(error: &meshwork::Error) -> Exit {
    use meshwork::Error as E;
    use meshwork_broker::Error as BrokerError;
    use meshwork_broker::conn::ConnectError;
    match error {
        E::Target(_)
        | E::Connect(ConnectError::Target(_))
        | E::Name(_)
        | E::Invalid(_)
        | E::InvalidBatch(_)
        | E::Script { .. }
        | E::LogDir(_)
        | E::Exists { .. }
        | E::UnknownType { .. }
        | E::NameTaken { .. }
        | E::Rhythm(_)
        | E::Zone(_)
        | E::ScheduleExists { .. }
        | E::NothingToRun => Exit::USAGE,
        E::Broker(BrokerError::Schedule(_) | BrokerError::ScheduleOver { .. }) => Exit::USAGE,
        E::Broker(BrokerError::ScheduleBusy { .. }) => Exit::FAILED,
        E::Overlaps { .. } | E::ScheduleRefused { .. } | E::Unreadable(_) => Exit::FAILED,
        E::Broker(
            BrokerError::Setting(_) | BrokerError::InvalidBananas(_) | BrokerError::InvalidCron(_),
        ) => Exit::USAGE,
        E::Failed { .. }
        | E::Payload { .. }
        | E::QueueFull { .. }
        | E::NotUnique { .. }
        | E::Draining { .. }
        | E::TooLarge { .. }
        | E::NotDead { .. }
        | E::BatchClosed { .. } => Exit::FAILED,
        E::Connect(_) | E::Broker(_) => Exit::SERVER,
        E::NotEnded { .. }
        | E::NotStopped { .. }
        | E::NotDrained { .. }
        | E::BatchNotEnded { .. } => Exit::NOT_ENDED,
        E::NoJob { .. } | E::NoPrerequisite { .. } | E::NoSchedule { .. } | E::NoBatch { .. } => {
            Exit::NO_JOB
        }
        _ => Exit::SYSTEM,
    }
}
