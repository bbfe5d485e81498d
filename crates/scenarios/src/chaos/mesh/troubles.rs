//! Troubles of nodes: killed and paused processes, lost daemons and servers, and cut links. Some last for a while, in which
//! other nodes go on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use meshwork_test_servers::cuttable::Cuttable;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rustix::process::Signal;

use super::Killed;
use super::node::Node;
use crate::chaos::ChaosError;

/// Greatest number of nodes in trouble at a time.
const MOST: usize = 2;

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    KillSupervisor,
    KillWorker,
    KillServer,
    KillDaemon,
    PauseSupervisor,
    PauseWorker,
    PauseServer,
    PauseDaemon,
    CutLinks,
    CutClients,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::KillSupervisor,
        Self::KillWorker,
        Self::KillServer,
        Self::KillDaemon,
        Self::PauseSupervisor,
        Self::PauseWorker,
        Self::PauseServer,
        Self::PauseDaemon,
        Self::CutLinks,
        Self::CutClients,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KillSupervisor => "killed supervisors",
            Self::KillWorker => "killed workers",
            Self::KillServer => "killed servers",
            Self::KillDaemon => "killed daemons",
            Self::PauseSupervisor => "paused supervisors",
            Self::PauseWorker => "paused workers",
            Self::PauseServer => "paused servers",
            Self::PauseDaemon => "paused daemons",
            Self::CutLinks => "cut links",
            Self::CutClients => "cut clients",
        }
    }

    /// Returns the duration of the trouble.
    const fn lasts(self) -> Duration {
        Duration::from_millis(match self {
            Self::KillSupervisor | Self::KillWorker | Self::CutClients => 0,
            Self::KillDaemon => 300,
            Self::KillServer => 700,
            Self::PauseWorker | Self::PauseServer => 1_500,
            Self::PauseDaemon | Self::CutLinks => 2_500,
            // Longer than the lease of the process that exchanges frames.
            Self::PauseSupervisor => 8_000,
        })
    }
}

/// Links between daemons, with both nodes.
pub(super) type Links = Vec<([usize; 2], Cuttable)>;

/// Cuts or mends all links of a node.
pub(super) fn cut(links: &Links, node: usize, is_cut: bool) {
    for (_, link) in links.iter().filter(|(ends, _)| ends.contains(&node)) {
        match is_cut {
            true => link.cut(),
            false => link.mend(),
        }
    }
}

/// A trouble that lasts.
#[derive(Debug)]
struct Active {
    kind: Kind,
    node: usize,
    /// Number of the supervisor.
    which: usize,
    until: Instant,
}

/// Random choices, and the troubles of now.
pub(super) struct Troubles {
    random: StdRng,
    order: Vec<Kind>,
    active: Vec<Active>,
    /// Number of troubles so far, by kind.
    pub(super) counts: BTreeMap<Kind, u32>,
}

impl Troubles {
    pub(super) fn new(random: StdRng) -> Self {
        Self {
            random,
            order: Vec::new(),
            active: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Returns true if the server of a node answers.
    pub(super) fn answers(&self, node: usize) -> bool {
        let away = [Kind::KillServer, Kind::PauseServer];
        let mut of_node = self.active.iter().filter(|it| it.node == node);
        of_node.all(|active| !away.contains(&active.kind))
    }

    pub(super) fn is_over(&self) -> bool {
        self.active.is_empty()
    }

    pub(super) fn may_begin(&self) -> bool {
        self.active.len() < MOST
    }

    /// Begins the next trouble of a node that has none: all kinds in turn, in a random order.
    pub(super) async fn begin(
        &mut self,
        nodes: &mut [Node],
        links: &Links,
        killed: &mut Killed,
    ) -> Result<(), ChaosError> {
        if self.order.is_empty() {
            self.order = Kind::ALL.to_vec();
            self.order.shuffle(&mut self.random);
        }
        let calm: Vec<_> = (0..nodes.len())
            .filter(|node| self.active.iter().all(|it| it.node != *node))
            .collect();
        let (Some(kind), false) = (self.order.pop(), calm.is_empty()) else {
            return Ok(());
        };
        let at = calm[self.random.random_range(0..calm.len())];
        let node = &mut nodes[at];
        let which = self.random.random_range(0..node.supervisors.len());
        *self.counts.entry(kind).or_default() += 1;
        match kind {
            Kind::KillSupervisor => node.kill_supervisor(which).await?,
            Kind::KillWorker => {
                killed.insert(node.kill_worker().await?);
            }
            Kind::KillServer => node.server.kill9(),
            Kind::KillDaemon => node.daemon.kill().await?,
            Kind::PauseSupervisor => node.supervisors[which].signal(Signal::STOP)?,
            Kind::PauseWorker => node.signal_worker(Signal::STOP)?,
            Kind::PauseServer => node.server.pause(),
            Kind::PauseDaemon => node.daemon.signal(Signal::STOP)?,
            Kind::CutLinks => cut(links, at, true),
            Kind::CutClients => node.cut_clients(),
        }
        if kind.lasts() > Duration::ZERO {
            let until = Instant::now() + kind.lasts();
            self.active.push(Active {
                kind,
                node: at,
                which,
                until,
            });
        }
        Ok(())
    }

    /// Ends the troubles that have lasted long enough.
    pub(super) async fn end_due(
        &mut self,
        nodes: &mut [Node],
        links: &Links,
    ) -> Result<(), ChaosError> {
        let now = Instant::now();
        let due = self.active.extract_if(.., |active| active.until <= now);
        for active in due.collect::<Vec<_>>() {
            let node = &mut nodes[active.node];
            match active.kind {
                Kind::KillServer => node.server.start_again(),
                Kind::KillDaemon => node.start_daemon_again().await?,
                Kind::PauseSupervisor => node.supervisors[active.which].signal(Signal::CONT)?,
                Kind::PauseWorker => node.signal_worker(Signal::CONT)?,
                Kind::PauseServer => node.server.resume(),
                Kind::PauseDaemon => node.daemon.signal(Signal::CONT)?,
                Kind::CutLinks => cut(links, active.node, false),
                Kind::KillSupervisor | Kind::KillWorker | Kind::CutClients => {}
            }
        }
        Ok(())
    }
}
