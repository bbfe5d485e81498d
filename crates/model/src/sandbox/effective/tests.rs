//! Tests of the rule: all combinations of origin, worker, queue, parent and job.

use super::*;

use Profile::{Open, Standard, Strict};

const NONE: SandboxSettings = SandboxSettings {
    profile: None,
    parent: None,
    limits: Limits::NONE,
};

fn worker(profile: Profile, command: Profile) -> WorkerSandbox {
    WorkerSandbox {
        profile,
        command,
        limits: Limits::default(),
        defaults: [(Limit::Processes, 256)].into_iter().collect(),
    }
}

fn of(profile: Option<Profile>, parent: Option<Profile>) -> SandboxSettings {
    SandboxSettings {
        profile,
        parent,
        ..NONE
    }
}

fn limited(limit: Limit, value: u64) -> SandboxSettings {
    SandboxSettings {
        limits: [(limit, value)].into_iter().collect(),
        ..NONE
    }
}

#[test]
fn the_profile_is_the_strictest_of_all_parties_and_a_laxer_request_is_refused() {
    let foreign = |granted| JobOrigin::Foreign { granted };
    let origins = [
        JobOrigin::Command,
        JobOrigin::Node,
        foreign(None),
        foreign(Some(Open)),
        foreign(Some(Standard)),
    ];
    let requests = [None, Some(Open), Some(Standard), Some(Strict)];
    let mut refused = 0;
    for (profile, command) in [(Open, Open), (Standard, Open), (Strict, Strict)] {
        for origin in origins {
            // Written out, so that the test has the rule a second time.
            let base = match origin {
                JobOrigin::Command => command,
                JobOrigin::Node => profile,
                JobOrigin::Foreign { granted: None } => Strict,
                JobOrigin::Foreign {
                    granted: Some(granted),
                } => profile.max(granted),
            };
            for queue in requests {
                for parent in requests {
                    for job in requests {
                        let got = effective(
                            &worker(profile, command),
                            origin,
                            &of(queue, None),
                            &of(job, parent),
                        );
                        let least = base.max(queue.unwrap_or(Open));
                        let least_of_job = least.max(parent.unwrap_or(Open));
                        let is_lax = queue.is_some_and(|queue| queue < base)
                            || job.is_some_and(|job| job < least_of_job);
                        refused += usize::from(is_lax);
                        assert_eq!(
                            got.ok().map(|got| got.profile),
                            (!is_lax).then(|| least_of_job.max(job.unwrap_or(Open))),
                            "{profile} {command} {origin:?} {queue:?} {parent:?} {job:?}",
                        );
                    }
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_refusal_names_both_parties() {
    let open = of(Some(Open), None);
    let lax = |worker: &WorkerSandbox, origin, queue: &SandboxSettings, job: &SandboxSettings| {
        effective(worker, origin, queue, job)
            .unwrap_err()
            .to_string()
    };
    let standard = worker(Standard, Open);
    assert_eq!(
        lax(&standard, JobOrigin::Node, &NONE, &open),
        "the job asks for the sandbox `open`, but the worker requires `standard`"
    );
    assert_eq!(
        lax(&standard, JobOrigin::Node, &open, &NONE),
        "the queue asks for the sandbox `open`, but the worker requires `standard`"
    );
    let strict = of(Some(Strict), None);
    assert!(
        lax(&standard, JobOrigin::Node, &strict, &open).ends_with("the queue requires `strict`")
    );
    let child = of(Some(Open), Some(Standard));
    let message = lax(&worker(Open, Open), JobOrigin::Node, &NONE, &child);
    assert!(
        message.ends_with("the parent of the job requires `standard`"),
        "{message}"
    );
    let foreign = JobOrigin::Foreign { granted: None };
    let message = lax(&worker(Open, Open), foreign, &NONE, &open);
    assert!(
        message.ends_with("the origin of the job on another node requires `strict`"),
        "{message}"
    );
}

#[test]
fn limits_only_fall_from_the_worker_to_the_queue_to_the_job() {
    let mut of_worker = worker(Open, Open);
    of_worker.limits.set(Limit::Memory, Some(400));
    let run = |queue: &SandboxSettings, job: &SandboxSettings| {
        effective(&of_worker, JobOrigin::Node, queue, job)
    };
    let memory = |value| limited(Limit::Memory, value);
    let got = |queue: SandboxSettings, job: SandboxSettings| {
        run(&queue, &job).unwrap().limits.get(Limit::Memory)
    };
    assert_eq!(got(NONE, NONE), Some(400));
    assert_eq!(got(memory(300), NONE), Some(300));
    assert_eq!(got(memory(300), memory(200)), Some(200));
    assert_eq!(got(NONE, memory(400)), Some(400));
    for (queue, job, fault) in [
        (
            memory(401),
            NONE,
            "the queue asks for a memory limit of 401 B, but the worker allows 400 B",
        ),
        (
            NONE,
            memory(401),
            "the job asks for a memory limit of 401 B, but the worker allows 400 B",
        ),
        (
            memory(300),
            memory(301),
            "the job asks for a memory limit of 301 B, but the queue allows 300 B",
        ),
    ] {
        assert_eq!(run(&queue, &job).unwrap_err().to_string(), fault);
    }
}

#[test]
fn default_limits_hold_in_standard_and_strict_only() {
    let processes = |profile, job: &SandboxSettings| {
        effective(&worker(profile, Open), JobOrigin::Node, &NONE, job)
            .map(|got| got.limits.get(Limit::Processes))
    };
    assert_eq!(processes(Open, &NONE), Ok(None));
    assert_eq!(processes(Standard, &NONE), Ok(Some(256)));
    assert_eq!(processes(Open, &of(Some(Strict), None)), Ok(Some(256)));
    assert_eq!(
        processes(Open, &limited(Limit::Processes, 1000)),
        Ok(Some(1000))
    );
    assert!(processes(Standard, &limited(Limit::Processes, 1000)).is_err());
}

#[test]
fn a_child_keeps_the_profile_and_the_limits_of_its_parent() {
    let parent = limited(Limit::Memory, 300);
    let child = |ran, child| of_child(&parent, ran, child);
    assert_eq!(child(Open, None), Ok(parent));
    let kept = child(Standard, None).unwrap();
    assert_eq!((kept.parent, kept.limits), (Some(Standard), parent.limits));
    let narrowed = child(Standard, Some(Strict)).unwrap();
    assert_eq!(narrowed.profile, Some(Strict));
    let refused = child(Strict, Some(Standard)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the job asks for the sandbox `standard`, but the parent of the job requires `strict`"
    );
}

#[test]
fn a_command_asks_for_more_than_the_defaults_of_its_own_worker() {
    let worker = worker(Standard, Standard);
    let of = |origin, queue: u64, job: u64| {
        let request = |value| match value {
            0 => NONE,
            value => limited(Limit::Processes, value),
        };
        let found = effective(&worker, origin, &request(queue), &request(job));
        found
            .ok()
            .and_then(|found| found.limits.get(Limit::Processes))
    };
    for (queue, job, own, other) in [
        (0, 0, Some(256), Some(256)),
        (0, 1000, Some(1000), None),
        (500, 0, Some(500), None),
        (500, 400, Some(400), None),
        (500, 1000, None, None),
        (100, 0, Some(100), Some(100)),
    ] {
        assert_eq!(of(JobOrigin::Command, queue, job), own, "{queue} {job}");
        assert_eq!(of(JobOrigin::Node, queue, job), other, "{queue} {job}");
    }
    let mut limiting = worker;
    limiting.limits.set(Limit::Processes, Some(300));
    let job = limited(Limit::Processes, 1000);
    assert!(effective(&limiting, JobOrigin::Command, &NONE, &job).is_err());
}
