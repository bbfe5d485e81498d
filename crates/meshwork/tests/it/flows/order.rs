//! Random flows in a store: each job starts after the ends of all its ancestors and is decided on by them, however long a
//! cancel takes; also after retries.

use std::collections::BTreeMap;

use meshwork::flow::run::RetryFrom;
use meshwork_broker::Claimed;
use meshwork_model::flow::Graph;
use meshwork_model::keys::context::FlowId;
use meshwork_model::name::JobId;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;

/// The most jobs of a random flow.
const MOST: usize = 12;
/// The most jobs that run at once.
const SLOTS: usize = 3;

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        // A linear congruential generator (Knuth's MMIX); its high bits are the better ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// Draws a flow, whose scripts are the names of their jobs. The input of a job has the statuses of its needs, and of a need
/// of each need.
fn draw(random: &mut Random, jobs: usize) -> Plan {
    let mut file = serde_json::Map::new();
    let mut known: Vec<Vec<usize>> = Vec::new();
    for number in 0..jobs {
        let name = format!("j{number}");
        let mut job = json!({"script": name, "type": "osis"});
        if number > 0 && random.percent(8) && !known[number - 1].contains(&usize::MAX) {
            job["compensates"] = json!(format!("j{}", number - 1));
            known.push(vec![usize::MAX]);
            file.insert(name, job);
            continue;
        }
        let mut needs = Vec::new();
        for _ in 0..random.below(3) {
            let need = random.below(number.max(1) as u64) as usize;
            if need < number && !needs.contains(&need) && !known[need].contains(&usize::MAX) {
                needs.push(need);
            }
        }
        let above = needs.iter().flat_map(|need| known[*need].first().copied());
        let named: Vec<usize> = needs.iter().copied().chain(above).collect();
        for other in named {
            job["with"][format!("j{other}")] = json!(format!("{{{{j{other}.status}}}}"));
        }
        match random.below(10) {
            0..2 => job["if"] = json!("always()"),
            2..4 => job["if"] = json!("failed()"),
            4 => job["if"] = json!("false"),
            _ => {}
        }
        if random.percent(20) {
            job["foreach"] = json!("3");
            job["concurrency"] = json!(2);
        }
        if random.percent(15) {
            job["continue"] = json!(true);
        }
        let names: Vec<String> = needs.iter().map(|need| format!("j{need}")).collect();
        job["needs"] = json!(names);
        known.push(needs);
        file.insert(name, job);
    }
    let flow = json!({"flow": "random", "fail_fast": random.percent(80), "jobs": file});
    // JSON is YAML.
    plan(&flow.to_string())
}

/// A flow in a store whose clock stands still, and what ran of it.
struct Ground {
    broker: Broker,
    flows: FlowClient,
    stepper: Stepper,
    plan: Plan,
    graph: Graph,
    id: FlowId,
    random: Random,
    /// The last input of each job or item, by the key of its record, with the name of the job.
    inputs: BTreeMap<String, (String, Value)>,
}

impl Ground {
    async fn new(seed: u64, jobs: usize) -> Self {
        let (clock, _) = Clock::manual(1_700_000_000_000);
        let node = Broker::new(Conn::embedded(&Handle::in_memory()), JobKeys::default());
        let broker = context_of(node.with_clock(clock)).await;
        let mut random = Random(seed);
        let plan = draw(&mut random, jobs);
        let flows = FlowClient::new(&broker).unwrap();
        let id = flows.submit(&plan, ActorId(12)).await.unwrap();
        Self {
            stepper: Stepper::new(&broker).unwrap(),
            graph: Graph::new(&plan).unwrap(),
            inputs: BTreeMap::new(),
            broker,
            flows,
            plan,
            id,
            random,
        }
    }

    async fn view(&self) -> FlowView {
        self.flows.status(self.id).await.unwrap()
    }

    /// Claims a job, if one waits, and checks that all before it has ended.
    async fn start(&mut self) -> Result<Option<Claimed>, TestCaseError> {
        let Some(claimed) = next_job(&self.broker).await else {
            return Ok(None);
        };
        let name = String::from_utf8(claimed.job.script.clone()).unwrap();
        let (view, ancestors) = (self.view().await, self.graph.ancestors());
        let number = self.graph.number(&name).unwrap();
        for (other, job) in view.jobs.iter().enumerate() {
            let ended = matches!(job.status, "finished" | "error" | "skipped" | "stopped");
            let before = match self.graph.level_of(number) {
                Some(_) => ancestors.contains(number, other),
                None => self.graph.level_of(other).is_some(),
            };
            prop_assert!(
                ended || !before,
                "{} before {}: {:#?}",
                name,
                job.name,
                view
            );
        }
        let input = claimed.job.input.as_deref().unwrap_or(b"{}");
        let input = serde_json::from_slice(input).unwrap_or(Value::Null);
        self.inputs.insert(claimed.job.id.clone(), (name, input));
        Ok(Some(claimed))
    }

    /// Ends a run. One whose cancel was requested stops, or finishes before it does.
    async fn end(&mut self, claimed: Claimed) {
        let id = JobId::foreign(claimed.job.id.clone());
        let job = self.broker.inspect(&id).await.unwrap().unwrap();
        let failure = match job.stop {
            Some(_) if self.random.percent(60) => Some(Failure::stopped()),
            None if self.random.percent(20) => Some(Failure::new(FailureKind::Permanent, "x")),
            _ => None,
        };
        match failure {
            Some(failure) => {
                let failed = self
                    .broker
                    .fail(&claimed, &failure, b"", b"", Duration::ZERO);
                assert_eq!(failed.await.unwrap(), Failed::Failed);
            }
            None => {
                let finished = self.broker.complete(&claimed, b"1", b"", b"");
                assert_eq!(finished.await.unwrap(), Completed::Finished);
            }
        }
    }

    /// Runs the flow to its end, in a random order.
    async fn drive(&mut self, cancels: bool) -> Result<FlowView, TestCaseError> {
        let mut running = Vec::new();
        loop {
            while self.stepper.step().await.unwrap().is_none() {}
            if cancels && self.random.percent(5) {
                self.flows.cancel(self.id, true).await.unwrap();
            }
            let free = running.len() < SLOTS && self.random.percent(70);
            if free && let Some(claimed) = self.start().await? {
                running.push(claimed);
            } else if !running.is_empty() {
                let at = self.random.below(running.len() as u64) as usize;
                self.end(running.remove(at)).await;
            } else if let view = self.view().await
                && view.is_ended()
            {
                return Ok(view);
            }
        }
    }

    /// Checks that each job was decided on by the final ends of its ancestors.
    fn check(&self, view: &FlowView, cancelled: bool) -> Result<(), TestCaseError> {
        let status = |name: &str| match view.job(name).unwrap().status {
            "stopped" => "error",
            status => status,
        };
        let runs = view.jobs.iter().flat_map(|job| {
            let items = job.items.iter();
            let items = items.filter_map(|item| Some((item.id.clone()?, item.status)));
            items.chain([(job.id.clone(), job.status)])
        });
        for (id, of) in runs {
            let known = self.inputs.iter().find(|(key, _)| key.ends_with(&id));
            let (Some((_, (name, input))), "finished" | "error") = (known, of) else {
                continue;
            };
            for (other, said) in input.as_object().into_iter().flatten() {
                prop_assert_eq!(status(other), said, "{} of {}: {:#?}", other, name, view);
            }
        }
        let ancestors = self.graph.ancestors();
        for (job, node) in self.plan.jobs.iter().enumerate() {
            let asks = node.condition.as_ref();
            if cancelled || asks.is_none_or(|it| it.text != "failed()") {
                continue;
            }
            let failed = self.plan.jobs.iter().enumerate().any(|(other, node)| {
                let continues = node.continue_on_failure;
                let failed = match view.jobs[other].status {
                    "error" => !continues,
                    status => status == "stopped",
                };
                failed && ancestors.contains(job, other)
            });
            let skipped = view.jobs[job].status == "skipped";
            prop_assert_eq!(skipped, !failed, "{}: {:#?}", node.name, view);
        }
        Ok(())
    }

    /// Retries the flow at random places. False if it cannot be retried there.
    async fn retry(&mut self, view: &FlowView) -> bool {
        let mut from = Vec::new();
        for _ in 0..=self.random.below(3) {
            let job = &view.jobs[self.random.below(view.jobs.len() as u64) as usize];
            let items = job.items.len() as u64;
            from.push(match self.random.below(3) {
                0 => RetryFrom::All(job.name.clone()),
                1 if items > 0 => {
                    RetryFrom::Item(job.name.clone(), self.random.below(items) as usize)
                }
                _ => RetryFrom::Job(job.name.clone()),
            });
        }
        self.flows.retry(self.id, ActorId(12), &from).await.is_ok()
    }
}

async fn run(seed: u64, jobs: usize) -> Result<(), TestCaseError> {
    let mut ground = Ground::new(seed, jobs).await;
    for round in 0..3 {
        let cancels = round == 0 && ground.random.percent(20);
        let view = ground.drive(cancels).await?;
        let cancelled = view.error.as_deref() == Some("stopped");
        ground.check(&view, cancelled)?;
        if !ground.retry(&view).await {
            break;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(40),
    })]

    #[test]
    fn random_flows_start_each_job_after_all_its_ancestors(seed in any::<u64>(), jobs in 1..=MOST) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // A flow that hangs fails the test.
        let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, run(seed, jobs)).await });
        ended.unwrap_or_else(|_| Err(TestCaseError::fail("it did not end")))?;
    }
}
