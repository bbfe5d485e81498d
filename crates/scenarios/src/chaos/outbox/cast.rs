//! The processes of the scenario, and their kills.

use std::path::{Path, PathBuf};

use meshwork_outbox::sqlx::{self, PgPool};
use meshwork_test_servers::servers::{RealPostgres, RealServer};
use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use super::{LOOK, Plan};
use crate::chaos::ChaosError;
use crate::chaos::hostile::failed;
use crate::chaos::process::Process;

/// Number of sorts of victims: relay, worker, redis-server, PostgreSQL, and a connection of PostgreSQL, whose process takes
/// all others with it.
pub(super) const VICTIMS: usize = 5;
/// Number of sorts without PostgreSQL.
const FILE_VICTIMS: usize = 3;
/// Number of relays, and of workers.
const EACH: usize = 2;
/// A process of PostgreSQL that serves a client, other than this one.
const CONNECTION: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' \
                          AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1";

/// All processes that may be killed.
pub(super) struct Cast<'a> {
    plan: &'a Plan,
    dir: PathBuf,
    relays: Vec<Process>,
    workers: Vec<Process>,
    redis: RealServer,
    database: Server,
}

/// The database.
pub(super) enum Server {
    /// A server, with connections of the judge.
    Postgres(RealPostgres, PgPool),
    /// The URL of a file.
    Sqlite(String),
}

impl Server {
    pub(super) fn url(&self) -> String {
        match self {
            Self::Postgres(server, _) => server.url(),
            Self::Sqlite(url) => url.clone(),
        }
    }
}

impl<'a> Cast<'a> {
    /// Starts the relays and the workers. Returns when they are ready.
    pub(super) async fn start(
        plan: &'a Plan,
        dir: &Path,
        redis: RealServer,
        database: Server,
    ) -> Result<Self, ChaosError> {
        let mut cast = Self {
            plan,
            dir: dir.to_owned(),
            relays: Vec::new(),
            workers: Vec::new(),
            redis,
            database,
        };
        for number in 0..EACH {
            let (relay, worker) = (cast.relay(number)?, cast.worker(number)?);
            cast.relays.push(relay);
            cast.workers.push(worker);
        }
        for process in cast.relays.iter_mut().chain(&mut cast.workers) {
            process.says("ready").await?;
        }
        Ok(cast)
    }

    pub(super) fn redis_url(&self) -> String {
        self.redis.url()
    }

    fn process(&self, mut command: Command, name: &str) -> Result<Process, ChaosError> {
        command
            .current_dir(&self.dir)
            .env_remove("MESHWORK_DATA")
            .env("REDIS_URL", self.redis.url())
            .env("DATABASE_URL", self.database.url());
        Process::start(command, &self.dir, name)
    }

    fn relay(&self, number: usize) -> Result<Process, ChaosError> {
        let mut command = Command::new(&self.plan.binary);
        command.args(["outbox", "relay", "--json", "--poll", "1"]);
        self.process(command, &format!("relay-{number}"))
    }

    fn worker(&self, number: usize) -> Result<Process, ChaosError> {
        let (program, arguments) = &self.plan.worker;
        let mut command = Command::new(program);
        command.args(arguments);
        self.process(command, &format!("worker-{number}"))
    }

    /// Fails if a process has ended by itself.
    pub(super) fn are_there(&mut self) -> Result<(), ChaosError> {
        let mut all = self.relays.iter_mut().chain(&mut self.workers);
        all.try_for_each(Process::is_there)
    }

    /// Returns when a process ends by itself, with the error.
    pub(super) async fn ends(&mut self) -> ChaosError {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            if let Err(error) = self.are_there() {
                return error;
            }
        }
    }

    /// Kills the next victim with `kill -9`, each sort in turn, and starts it again. Returns its sort.
    pub(super) async fn kill(
        &mut self,
        due: u32,
        random: &mut StdRng,
    ) -> Result<usize, ChaosError> {
        let sorts = match self.database {
            Server::Postgres(..) => VICTIMS,
            Server::Sqlite(_) => FILE_VICTIMS,
        };
        let (sort, one) = (due as usize % sorts, random.random_range(0..EACH));
        match (sort, &mut self.database) {
            (0, _) => {
                self.relays[one].kill().await?;
                self.relays[one] = self.relay(one)?;
            }
            (1, _) => {
                self.workers[one].kill().await?;
                self.workers[one] = self.worker(one)?;
            }
            (3, Server::Postgres(server, _)) => {
                server.kill9();
                server.start_again();
            }
            (4, Server::Postgres(_, pool)) => kill_connection(pool).await?,
            _ => {
                self.redis.kill9();
                self.redis.start_again();
            }
        }
        Ok(sort)
    }

    /// Stops all processes in order.
    pub(super) async fn stop(mut self) -> Result<(), ChaosError> {
        for process in self.relays.iter_mut().chain(&mut self.workers) {
            process.stop().await?;
        }
        Ok(())
    }
}

async fn kill_connection(pool: &PgPool) -> Result<(), ChaosError> {
    let mut again = tokio::time::interval(LOOK);
    let pid: i32 = loop {
        again.tick().await;
        // After a kill of the server the first connections of the pool are broken.
        if let Ok(pid) = sqlx::query_scalar(CONNECTION).fetch_one(pool).await {
            break pid;
        }
    };
    let pid = Pid::from_raw(pid);
    let sent = pid.map_or(Ok(()), |pid| kill_process(pid, Signal::KILL));
    // It may have ended meanwhile.
    sent.or_else(|error| match error {
        rustix::io::Errno::SRCH => Ok(()),
        error => Err(failed(&error)),
    })
}
