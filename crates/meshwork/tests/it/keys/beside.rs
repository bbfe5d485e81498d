//! A flow and messages of a context that go on while its keys are damaged.

use std::time::Duration;

use meshwork::Client;
use meshwork::context::{
    ContextError, ContextHandle, Coordinator, Identity, MessageJob, NewMessage, Node, Serves,
};
use meshwork::flow::{self, FlowClient, FlowError, FlowId, Plan, Stepper, StepperHandle};
use meshwork_broker::Broker;
use meshwork_model::context::MessageType;
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout, MessageKey};
use meshwork_test_servers::eventually;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::flow_actors::found;
use crate::worker_support::raw;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A flow that nobody runs.
const IDLE: &str = "flow: idle\njobs: {a: {script: '1', type: nobody}}\n";
/// A flow whose first job waits at the gate.
const RUNS: &str = "
flow: runs
jobs:
  a: {script: '1', type: gate}
  b: {script: '2', type: osis, needs: a}
";

fn plan(yaml: &str) -> Plan {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flow.yaml");
    std::fs::write(&file, yaml).unwrap();
    flow::load(&file).unwrap()
}

/// The contexts 7 and 8 of a node, with a coordinator of both and a stepper of the first.
pub(crate) struct Beside {
    seven: ContextHandle,
    eight: Client,
    me: Identity,
    flows: FlowClient,
    begun: Mutex<Option<(FlowId, MessageKey)>>,
    stop: CancellationToken,
    coordinator: Mutex<Option<JoinHandle<()>>>,
    stepper: Mutex<Option<StepperHandle>>,
}

impl Beside {
    /// Returns the client of the context 7, too.
    pub(crate) async fn start(of: &Broker, layout: ContextLayout) -> (Client, Self) {
        let (me, _) = found(of, layout).await;
        let node = Node::of(of);
        let id = |id| ContextId::new(id).unwrap();
        let made = node.create_context(&me, Some(id(8)), Some(layout));
        made.await.unwrap();
        let session = async |id| {
            let broker = of.of_context(ContextKeys::new(id, layout)).await;
            broker.unwrap()
        };
        let (seven, eight) = (session(id(7)).await, session(id(8)).await);
        let coordinator = Coordinator::new(&node).await.unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let run = async move { coordinator.run(&Serves::All, &stopped).await };
        let beside = Self {
            seven: node.context(id(7)).await.unwrap(),
            eight: Client::new(eight),
            me,
            flows: FlowClient::new(&seven).unwrap(),
            begun: Mutex::new(None),
            stop,
            coordinator: Mutex::new(Some(tokio::spawn(run))),
            stepper: Mutex::new(Some(Stepper::new(&seven).unwrap().start())),
        };
        (Client::new(seven), beside)
    }

    /// Begins a flow and a message, beside others that may be damaged. Returns the keys of their records.
    pub(crate) async fn begin(&self) -> Vec<String> {
        let submit = async |yaml| self.flows.submit(&plan(yaml), self.me.id()).await;
        submit(IDLE).await.unwrap();
        let flow = submit(RUNS).await.unwrap();
        self.send().await;
        let message = self.send().await;
        eventually("both jobs are there", PATIENCE, async || {
            let waiting: usize = raw(&self.eight, &["LLEN", &self.queue()]).await;
            (waiting == 2).then_some(())
        })
        .await;
        *self.begun.lock().await = Some((flow, message));
        let keys = self.seven.keys();
        vec![keys.flow(flow), keys.message(message)]
    }

    /// Sends a message with a job from context 7 to 8.
    async fn send(&self) -> MessageKey {
        let mut new = NewMessage::new(ContextId::new(8).unwrap(), MessageType::Job);
        new.jobs = vec![MessageJob {
            script_type: "v".parse().unwrap(),
            script: "1".to_owned(),
            timeout: None,
            retries: 0,
            env_vars: Default::default(),
            after: Vec::new(),
        }];
        self.seven.send(&self.me, &new).await.unwrap().key()
    }

    fn queue(&self) -> String {
        let keys = self.eight.broker().keys();
        keys.work_queue_type(&"v".parse().unwrap())
    }

    pub(crate) async fn flows(&self) -> Result<(), FlowError> {
        self.flows.list().await.map(drop)
    }

    pub(crate) async fn messages(&self) -> Result<(), ContextError> {
        self.seven.messages(&self.me).await.map(drop)
    }

    /// Checks that the flow and the message end as if nothing had happened.
    pub(crate) async fn end(&self) {
        let (flow, message) = self.begun.lock().await.unwrap();
        let ended = tokio::time::timeout(PATIENCE, self.flows.wait(flow, |_| {})).await;
        let ended = ended.expect("the flow ends").unwrap();
        assert!(ended.is_finished(), "{ended:?}");
        for _ in 0..2 {
            let job: String = raw(&self.eight, &["RPOP", &self.queue()]).await;
            let words = ["HSET", &job, "status", "finished", "result", "1"];
            raw::<i64>(&self.eight, &words).await;
        }
        eventually("the result is back", PATIENCE, async || {
            let views = self.seven.messages(&self.me).await.unwrap();
            let view = views.iter().find(|view| view.message.key() == message);
            view.filter(|view| view.message.status.as_str() == "processed")
                .map(drop)
        })
        .await;
        self.stop.cancel();
        if let Some(coordinator) = self.coordinator.lock().await.take() {
            coordinator.await.unwrap();
        }
        if let Some(stepper) = self.stepper.lock().await.take() {
            stepper.stop().await;
        }
    }
}
