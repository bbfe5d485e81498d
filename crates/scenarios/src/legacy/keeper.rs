//! Supervises the processes of the old system: kills those that wait to be killed, and starts others.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::LegacyError;
use super::client::Batch;
use super::orders::{Account, Orders};
use meshwork_test_servers::Kept;

/// Paths of the programs.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// The `meshwork` command.
    pub(super) meshwork: PathBuf,
    /// The test kit's own `legacy`, which runs as the old worker, the old client, and a Meshwork worker.
    pub(super) legacy: PathBuf,
}

/// A kind of process of the old system.
#[derive(Clone)]
pub(super) enum Role {
    Worker,
    Client(Batch),
}

/// Runs a process until it ends by itself, and starts it again after each kill. The thread returns the number of
/// kills.
pub(super) fn keep(
    legacy: &Path,
    orders: Orders,
    role: Role,
) -> JoinHandle<Result<u64, LegacyError>> {
    let legacy = legacy.to_owned();
    thread::spawn(move || {
        let (mut orders, mut role, mut kills) = (orders, role, 0);
        loop {
            let process = Kept(spawn(&legacy, &orders, &role)?);
            if !stands_still(&process)? {
                return Ok(kills);
            }
            drop(process);
            kills += 1;
            orders.seed = orders.seed.wrapping_add(1);
            if let Role::Client(batch) = &mut role {
                batch.from = submitted(&orders, batch)?;
            }
        }
    })
}

/// Waits until the process is stopped; returns false if it has ended well before.
fn stands_still(process: &Kept) -> Result<bool, LegacyError> {
    let pid = Pid::from_raw(process.0.id().cast_signed());
    let (_, status) = waitpid(pid, WaitOptions::UNTRACED)
        .map_err(|error| LegacyError::io("waiting for a process")(error.into()))?
        .ok_or(LegacyError::Ended("without a status".to_owned()))?;
    if status.stopped() {
        return Ok(true);
    }
    match status.exit_status() {
        Some(0) => Ok(false),
        other => Err(LegacyError::Ended(format!("{other:?}"))),
    }
}

/// Returns the number of the job after the last that this client has stored.
fn submitted(orders: &Orders, batch: &Batch) -> Result<u64, LegacyError> {
    let lines = Account::Submitted.read(&orders.dir);
    let lines = lines.map_err(LegacyError::io("the submitted jobs"))?;
    let own = lines.iter().filter(|line| {
        let name = line.split(' ').nth(1);
        name == Some(&*orders.name)
    });
    Ok(batch.from.max(first(batch) + own.count() as u64))
}

/// Interval between the first job numbers of two batches of a client.
pub(super) const BATCH: u64 = 1_000_000;

fn first(batch: &Batch) -> u64 {
    batch.from - batch.from % BATCH
}

fn spawn(legacy: &Path, orders: &Orders, role: &Role) -> Result<Child, LegacyError> {
    let mut command = Command::new(legacy);
    command.arg(match role {
        Role::Worker => "worker",
        Role::Client(_) => "client",
    });
    add_arguments(&mut command, orders);
    if let Role::Client(batch) = role {
        for (option, number) in [
            ("--client", batch.client),
            ("--from", batch.from),
            ("--to", batch.to),
            ("--timeout", batch.timeout),
            ("--wait-for-each", batch.wait_for_each),
            ("--wait", batch.wait),
        ] {
            command.arg(option).arg(number.to_string());
        }
        command.arg("--script").arg(&batch.script);
        if let Some(script_type) = &batch.script_type {
            command.arg("--script-type").arg(script_type);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().map_err(LegacyError::io("a process"))
}

fn add_arguments(command: &mut Command, orders: &Orders) {
    command
        .args(["--url", &orders.url])
        .args(["--list", &orders.list])
        .args(["--worker-id", &orders.worker_id])
        .args(["--name", &orders.name])
        .args(["--seed", &orders.seed.to_string()])
        .args(["--deadly", &orders.deadly.to_string()])
        .arg("--dir")
        .arg(&orders.dir);
}

/// Starts a Meshwork worker with the recording runner.
pub(super) fn ours(programs: &Programs, orders: &Orders) -> Result<Kept, LegacyError> {
    let mut command = Command::new(&programs.legacy);
    command.arg("ours");
    add_arguments(&mut command, orders);
    let child = command.stdin(Stdio::null()).spawn();
    Ok(Kept(child.map_err(LegacyError::io("our worker"))?))
}
