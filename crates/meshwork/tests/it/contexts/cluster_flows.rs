//! Flows and schedules of contexts on all nodes of a Cluster, while slots move, nodes are killed and replicas take over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use meshwork::Client;
use meshwork::context::ContextHandle;
use meshwork::flow::{FlowSession, FlowTimes, FlowView, parse};
use meshwork_broker::WaitReplicas;
use meshwork_broker::flow::Flows;
use meshwork_model::keys::context::FlowId;
use meshwork_model::name::ScheduleName;
use meshwork_model::outcome::Report;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::Timing;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealServer};

use super::cluster_messages::{Serving, replaced};
use super::pool::{Site, stop};
use crate::worker_support::{Scripted, osis};

/// Longest time without progress.
const PATIENCE: Duration = Duration::from_secs(90);
/// Flows that are submitted, each of six jobs, three of them items.
const FLOWS: usize = 30;
/// Runs of jobs of these flows without a failure.
const RUNS: usize = FLOWS * 6;
/// Masters, each of which is killed and started again, and then replaced by its replica.
const MASTERS: usize = 3;
/// Greatest number of runs of a job: the first, and one for each failure of a node.
const MOST_RUNS: usize = 1 + 2 * MASTERS;
/// Contexts, of which each node has some.
const CONTEXTS: u32 = 12;
/// Flows that are open at once.
const AT_ONCE: usize = 5;
/// Beginnings of the names of keys that exist only while something is under way.
const UNDER_WAY: [&str; 9] = [
    "queue:",
    "msg_out",
    "msg_in:",
    "mw:lease",
    "mw:feed:",
    "mw:delayed",
    "mw:outbound",
    "mw:sent",
    "mw:open",
];
/// Slots of each schedule, one per second.
const SLOTS: u64 = 15;
/// The rule under which a failover loses no flow and no message.
const CONFIRMED: WaitReplicas = WaitReplicas {
    replicas: 1,
    timeout: Duration::from_millis(500),
};

/// Counts the runs of each script with each input.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<String, usize>>>);

impl Runs {
    fn runtime(&self) -> Arc<Scripted> {
        let runs = self.clone();
        Scripted::new(move |run| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let script = text(&run.job.script);
            let input = run.job.input.as_deref().map(text).unwrap_or_default();
            let mut runs = runs.0.lock().unwrap();
            *runs.entry(format!("{script} {input}")).or_default() += 1;
            match script.ends_with("list") {
                true => Report::done("[1,2,3]"),
                false => Report::done(script),
            }
        })
    }

    async fn reach(&self, runs: usize) {
        eventually("jobs run", PATIENCE, async || {
            (self.count() >= runs).then_some(())
        })
        .await;
    }

    /// The number of runs of flows that were submitted.
    fn count(&self) -> usize {
        self.of_flows().map(|(_, count)| count).sum()
    }

    fn of_flows(&self) -> impl Iterator<Item = (String, usize)> {
        let runs = self.0.lock().unwrap().clone();
        runs.into_iter().filter(|(script, _)| script != "tick ")
    }
}

/// The context of a node, with its flows.
struct Home {
    context: ContextHandle,
    client: Client,
    session: FlowSession,
    /// First and last slot of its schedule.
    slots: [u64; 2],
}

impl Home {
    async fn of(site: &Site, at: usize) -> Self {
        let context = &site.contexts[at];
        let session = context.flows(&site.me).await.unwrap();
        let tick = "{flow: tick, jobs: {a: {script: tick, type: osis}}}";
        let plan = parse("tick.yaml", tick, &BTreeMap::new()).unwrap();
        let mut times = FlowTimes::new(Timing::new("@every 1s".parse().unwrap()));
        let end = meshwork::host_ms() + SLOTS * 1_000;
        (times.timing.end, times.catch_up, times.overlap) =
            (Some(end), CatchUp::All(100), Overlap::Allow);
        let name: ScheduleName = "tick".parse().unwrap();
        session
            .add_schedule(&name, &plan, &times, false)
            .await
            .unwrap();
        let there = session.client().scheduled(&name).await.unwrap().unwrap();
        Self {
            context: context.clone(),
            client: site.clients[at].clone(),
            session,
            slots: [there.next.unwrap(), end],
        }
    }

    /// Submits a flow with a job in the context `far`, again while the call fails. Returns the number of failed calls.
    async fn submit(&self, number: usize, far: &ContextHandle) -> usize {
        let (at, far) = (self.context.id(), far.id());
        let name = format!("{at}-{number}");
        let text = format!(
            "{{flow: '{name}', jobs: {{\
             list: {{script: {name}-list, type: osis}}, \
             each: {{script: {name}-each, type: osis, needs: list, foreach: list.result}}, \
             far: {{script: {name}-far, type: osis, needs: list, context: {far}}}, \
             last: {{script: {name}-last, type: osis, needs: [each, far]}}}}}}"
        );
        let plan = parse("f.yaml", &text, &BTreeMap::new()).unwrap();
        let mut failed = 0;
        eventually("the flow is submitted", PATIENCE, async || {
            let submitted = self.session.submit(&plan).await;
            failed += usize::from(submitted.is_err());
            submitted.ok()
        })
        .await;
        failed
    }

    /// All flows; `None` while the node does not answer.
    async fn views(&self) -> Option<Vec<FlowView>> {
        let client = self.session.client();
        let mut views = Vec::new();
        for flow in client.list().await.ok()? {
            // Jobs that a killed submission has left never run.
            if !flow.status.is_empty() {
                views.push(client.status(FlowId(flow.id)).await.ok()?);
            }
        }
        Some(views)
    }

    /// Waits until all flows have ended, those of all slots too.
    async fn ended(&self, submitted: usize) -> Vec<FlowView> {
        let slots = ((self.slots[1] - self.slots[0]) / 1_000 + 1) as usize;
        let mut most = 0;
        loop {
            let views = eventually("a further flow ends", PATIENCE, async || {
                let views = self.views().await?;
                let ended = views.iter().filter(|view| view.is_ended()).count();
                let all = ended == views.len() && ended >= submitted + slots;
                (ended > most || all).then(|| {
                    most = ended;
                    (views, all)
                })
            });
            if let (views, true) = views.await {
                return views;
            }
        }
    }

    /// Checks that each slot has started one flow.
    async fn judge_slots(&self, views: &[FlowView]) {
        let flows = Flows::of(self.client.broker()).unwrap();
        let mut found = Vec::new();
        for view in views.iter().filter(|view| view.name == "tick") {
            let record = flows.record(view.id).await.unwrap();
            found.push(record["mw_mark"].clone());
        }
        found.sort_unstable();
        let slots = (self.slots[0]..=self.slots[1]).step_by(1_000);
        let slots: Vec<_> = slots.map(|slot| format!("slot {slot}")).collect();
        assert_eq!(found, slots, "context {}", self.context.id());
    }

    /// The lists and sets of what is under way, and the jobs that have not ended; `None` while the node does not answer.
    async fn open(&self) -> Option<Vec<String>> {
        let prefix = self.context.keys().prefix();
        let conn = &mut self.client.broker().conn().clone();
        let mut keys = redis::cmd("KEYS");
        keys.arg(format!("{prefix}*"));
        let keys: Vec<String> = keys.query_async(conn).await.ok()?;
        let mut open = Vec::new();
        for key in keys {
            let name = key.strip_prefix(prefix).unwrap();
            if UNDER_WAY.iter().any(|head| name.starts_with(head)) {
                open.push(key);
            } else if name.starts_with("job:") && name.matches(':').count() == 2 {
                let mut fields = redis::cmd("HMGET");
                let fields = fields.arg(&key).arg("status").arg("mw_waiting");
                let fields: [Option<String>; 2] = fields.query_async(conn).await.ok()?;
                let [status, waiting] = fields.map(Option::unwrap_or_default);
                // Jobs of a submission that failed never run, and are deleted after an hour.
                let flow = waiting.trim_matches('"').strip_prefix("flow ");
                let flow = flow.map(|flow| format!("{prefix}flow:{flow}"));
                let mut sealed = redis::cmd("HEXISTS");
                let sealed = sealed.arg(flow.as_ref().unwrap_or(&key));
                let sealed: bool = sealed.arg("mw_sealed").query_async(conn).await.ok()?;
                let is_over = ["finished", "error"].contains(&status.as_str());
                if !is_over && (sealed || flow.is_none()) {
                    open.push(format!("{key} {status} {waiting}"));
                }
            }
        }
        Some(open)
    }
}

/// Moves the slots of all homes, kills each node, and replaces each by its replica.
async fn disturb(cluster: &mut RealCluster, homes: &[Home], runs: &Runs) {
    for at in 0..3 * MASTERS {
        let (next, master) = (RUNS * (at + 1) / (3 * MASTERS + 1), at % MASTERS);
        runs.reach(next).await;
        match at / MASTERS {
            0 => {
                let (from, slot) = cluster.owner(homes[master].context.keys().prefix());
                let to = (from + 1) % MASTERS;
                cluster.settle().await;
                cluster.begin_move(slot, from, to).unwrap();
                cluster.move_keys(slot, from, to).unwrap();
                cluster.end_move(slot, from, to).unwrap();
            }
            1 => {
                cluster.node_mut(master).kill9();
                cluster.node_mut(master).start_again();
            }
            _ => {
                cluster.node_mut(master).kill9();
                replaced(cluster, master).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_and_schedules_end_once_while_slots_move_and_nodes_fail() {
    let options = RealServer::redis().append_only();
    let Some(cluster) = RealCluster::start(options, MASTERS).await else {
        return;
    };
    let mut site = Site::on_cluster_with(cluster, CONTEXTS, Some(CONFIRMED)).await;
    let places: Vec<_> = site.contexts.iter().map(|it| site.place(it)).collect();
    let mut cluster = site.cluster.take().unwrap();
    let (runs, begun) = (Runs::default(), Instant::now());
    let workers = site.workers(8, &[osis()], |_| runs.runtime()).await;
    let serving = Serving::start(&site.node).await;
    let mut homes = Vec::new();
    for node in 0..MASTERS {
        let at = places.iter().position(|place| *place == node).unwrap();
        homes.push(Home::of(&site, at).await);
    }
    let submitting = async {
        let mut failed = 0;
        for number in 0..FLOWS {
            let far = &homes[(number + 1) % MASTERS].context;
            failed += homes[number % MASTERS].submit(number, far).await;
            runs.reach(RUNS / FLOWS * number.saturating_sub(AT_ONCE))
                .await;
        }
        failed
    };
    let (failed, ()) = tokio::join!(submitting, disturb(&mut cluster, &homes, &runs));
    let mut copies: BTreeMap<String, usize> = BTreeMap::new();
    for home in &homes {
        let views = home.ended(FLOWS / MASTERS).await;
        for view in &views {
            assert_eq!(view.status, "finished", "{view:#?}");
            *copies.entry(view.name.clone()).or_default() += 1;
        }
        home.judge_slots(&views).await;
    }
    for home in &homes {
        eventually("nothing is open", PATIENCE, async || {
            home.open().await?.is_empty().then_some(())
        })
        .await;
    }
    copies.remove("tick");
    let doubled = copies.values().sum::<usize>() - copies.len();
    let most = runs.of_flows().map(|(_, count)| count).max();
    println!(
        "{} flows in {:?}: calls that failed {failed}, doubled {doubled}, runs {} of {RUNS}, most of one job {most:?}",
        copies.len(),
        begun.elapsed(),
        runs.count(),
    );
    assert_eq!(copies.len(), FLOWS);
    assert!(doubled <= failed);
    assert_eq!(runs.of_flows().count(), RUNS);
    for (job, count) in runs.of_flows() {
        let flow = job.rsplit_once('-').unwrap().0;
        let copies = copies[flow];
        assert!(
            (copies..=copies * MOST_RUNS).contains(&count),
            "{job}: {count}"
        );
    }
    serving.stop().await;
    stop(workers).await;
}
