//! The sandbox of a run, made from the origin of its job and from all that narrows it.

use super::{Limit, Limits, Profile, SandboxSettings};

/// The sandbox that a worker gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerSandbox {
    /// Profile of all jobs but those of [`JobOrigin::Command`].
    pub profile: Profile,
    /// Profile of the jobs that the worker's own command enqueued.
    pub command: Profile,
    /// Limits of all runs.
    pub limits: Limits,
    /// Limits of runs in `standard` and `strict`, for resources that [`Self::limits`] leaves out.
    pub defaults: Limits,
}

/// The origin of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOrigin {
    /// The command that started this worker for its own jobs enqueued it.
    Command,
    /// A client of this node's store enqueued it.
    Node,
    /// A message of another node has it. An admin of its context may have granted more than `strict`.
    Foreign {
        /// The granted profile.
        granted: Option<Profile>,
    },
}

/// The sandbox of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effective {
    /// Its profile.
    pub profile: Profile,
    /// Its limits.
    pub limits: Limits,
}

impl Effective {
    /// Returns true if the sandbox neither confines nor limits a run.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.profile == Profile::Open && self.limits.is_empty()
    }
}

/// A job or a queue asks for more than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLax {
    /// The profile is laxer.
    #[error(
        "the {requester} asks for the sandbox `{requested}`, but the {limiter} requires `{required}`"
    )]
    Profile {
        /// Party that asks for it.
        requester: Party,
        /// The profile that it asks for.
        requested: Profile,
        /// Party that requires a stricter one.
        limiter: Party,
        /// The laxest profile that is allowed.
        required: Profile,
    },
    /// A limit is higher.
    #[error("the {requester} asks for a {limit} limit of {}, but the {limiter} allows {}", .limit.value(*.requested), .limit.value(*.allowed))]
    Limit {
        /// Party that asks for it.
        requester: Party,
        /// The resource.
        limit: Limit,
        /// The limit that it asks for.
        requested: u64,
        /// Party that allows less.
        limiter: Party,
        /// The highest limit that is allowed.
        allowed: u64,
    },
}

/// A party that narrows the sandbox of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// The worker.
    Worker,
    /// The origin of the job on another node.
    Origin,
    /// The queue.
    Queue,
    /// The parent of the job.
    Parent,
    /// The job.
    Job,
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Worker => "worker",
            Self::Origin => "origin of the job on another node",
            Self::Queue => "queue",
            Self::Parent => "parent of the job",
            Self::Job => "job",
        })
    }
}

/// Returns the sandbox of a run.
///
/// The origin gives the profile: that of the worker; for its command's own jobs that of the command; `strict` for jobs
/// of other nodes, or what an admin granted, and never laxer than the worker. The queue, the parent and the job narrow
/// it in this order. The limits are those of the worker, narrowed by the queue and the job. The defaults of the worker do not
/// bind the jobs of its own command.
///
/// # Errors
/// The queue or the job asks for more than those before it allow.
pub fn effective(
    worker: &WorkerSandbox,
    origin: JobOrigin,
    queue: &SandboxSettings,
    job: &SandboxSettings,
) -> Result<Effective, TooLax> {
    let mut profile = Narrowed::of(worker, origin);
    profile.ask(Party::Queue, queue.profile)?;
    profile.require(Party::Parent, job.parent);
    profile.ask(Party::Job, job.profile)?;
    let profile = profile.profile;

    let mut limits = worker.limits;
    if origin == JobOrigin::Command {
        limits = limits.or(&queue.limits).or(&job.limits);
    }
    if profile > Profile::Open {
        limits = limits.or(&worker.defaults);
    }
    narrow(&mut limits, Party::Queue, &queue.limits, |_| Party::Worker)?;
    narrow(&mut limits, Party::Job, &job.limits, |limit| {
        match queue.limits.get(limit).is_some() {
            true => Party::Queue,
            false => Party::Worker,
        }
    })?;
    Ok(Effective { profile, limits })
}

/// Returns the request of a child, whose parent made the request `parent` and ran in the profile `ran`. The child asks
/// for the profile `child`, if any, and has the parent's limits.
///
/// # Errors
/// The child asks for a laxer profile than that of its parent's run.
pub fn of_child(
    parent: &SandboxSettings,
    ran: Profile,
    child: Option<Profile>,
) -> Result<SandboxSettings, TooLax> {
    let mut least = Narrowed {
        profile: ran,
        by: Party::Parent,
    };
    least.ask(Party::Job, child)?;
    Ok(SandboxSettings {
        profile: child,
        parent: (ran > Profile::Open).then_some(ran),
        limits: parent.limits,
    })
}

/// A profile, and the party that required it.
struct Narrowed {
    profile: Profile,
    by: Party,
}

impl Narrowed {
    fn of(worker: &WorkerSandbox, origin: JobOrigin) -> Self {
        let (profile, by) = match origin {
            JobOrigin::Command => (worker.command, Party::Worker),
            JobOrigin::Node => (worker.profile, Party::Worker),
            JobOrigin::Foreign { granted } => {
                let least = granted.unwrap_or(Profile::Strict);
                match least > worker.profile {
                    true => (least, Party::Origin),
                    false => (worker.profile, Party::Worker),
                }
            }
        };
        Self { profile, by }
    }

    /// Raises the profile to that of a party, if that one is stricter.
    fn require(&mut self, by: Party, least: Option<Profile>) {
        if let Some(least) = least.filter(|least| *least > self.profile) {
            *self = Self { profile: least, by };
        }
    }

    /// As [`Self::require`], but a laxer profile is an error.
    fn ask(&mut self, requester: Party, requested: Option<Profile>) -> Result<(), TooLax> {
        match requested {
            Some(requested) if requested < self.profile => Err(TooLax::Profile {
                requester,
                requested,
                limiter: self.by,
                required: self.profile,
            }),
            requested => {
                self.require(requester, requested);
                Ok(())
            }
        }
    }
}

/// Lowers limits to those that a party asks for. A higher one is an error.
fn narrow(
    limits: &mut Limits,
    requester: Party,
    requested: &Limits,
    limiter: impl Fn(Limit) -> Party,
) -> Result<(), TooLax> {
    for (limit, requested) in requested.iter() {
        if let Some(allowed) = limits.get(limit).filter(|allowed| *allowed < requested) {
            return Err(TooLax::Limit {
                requester,
                limit,
                requested,
                limiter: limiter(limit),
                allowed,
            });
        }
        limits.set(limit, Some(requested));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
