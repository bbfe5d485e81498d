//! Flows of typed jobs: outputs are the inputs of the next jobs, as a whole and item by item.

use std::time::Duration;

use meshwork::flow::{Flow, FlowClient, FlowView, Plan};
use meshwork::{Client, Input, JobStatus, Worker};
use meshwork_model::flow::Work;
use meshwork_model::keys::context::{ActorId, ContextId, ContextKeys, ContextLayout};

use crate::engines::on_each_engine;

/// The longest that a test waits.
const PATIENCE: Duration = Duration::from_secs(60);

#[meshwork::job(output = Text)]
struct Read {
    text: String,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Text {
    words: Vec<String>,
}

#[meshwork::job(input = Text, output = Vec<String>)]
struct Split;

#[meshwork::job(input = String, output = usize, retries = 2, backoff = "3s", timeout = "90s", priority = "high")]
struct Measure {
    add: usize,
}

#[meshwork::job(input = Vec<usize>, output = String)]
struct Report {
    title: String,
}

async fn read(job: Read) -> Result<Text, String> {
    let words = job.text.split(' ').map(str::to_owned).collect();
    Ok(Text { words })
}

async fn split(_: Split, Input(text): Input<Split>) -> Result<Vec<String>, String> {
    Ok(text.words)
}

async fn measure(job: Measure, Input(word): Input<Measure>) -> Result<usize, String> {
    Ok(word.len() + job.add)
}

async fn report(job: Report, Input(sizes): Input<Report>) -> Result<String, String> {
    Ok(format!("{}: {sizes:?}", job.title))
}

on_each_engine![
    outputs_are_the_next_inputs,
    an_input_that_does_not_fit_fails_for_good,
    the_input_is_the_result_of_the_first_prerequisite,
];

/// Runs a plan in a context of its own to its end.
async fn run(node: Client, plan: &Plan) -> FlowView {
    let keys = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Prefix);
    let client = node.in_context(keys, ActorId(12)).await.unwrap();
    let flows = FlowClient::new(client.broker()).unwrap();
    let id = flows.submit(plan, ActorId(12)).await.unwrap();
    let worker = Worker::new(&client).job(read).job(split).job(measure);
    let worker = worker.job(report).start().await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, flows.wait(id, |_| {})).await;
    worker.stop().await;
    match ended {
        Ok(ended) => ended.unwrap(),
        Err(_) => panic!("{:#?}", flows.status(id).await),
    }
}

async fn outputs_are_the_next_inputs(client: Client) {
    // Words that are JSON, and one that is a template.
    let text = "one 22 \"three\" {{item}}".to_owned();
    let title = "{{item}}".to_owned();
    let flow = Flow::new("words").start(Read { text }).then(Split);
    let flow = flow.each(Measure { add: 1 });
    let flow = flow.options(|measure| measure.concurrency(2));
    let flow = flow.then(Report { title }).plan().unwrap();
    let ended = run(client, &flow).await;
    let output = flow.output(&ended).unwrap();
    assert_eq!(
        output.as_deref(),
        Some("{{item}}: [4, 3, 8, 9]"),
        "{ended:#?}"
    );
}

async fn an_input_that_does_not_fit_fails_for_good(client: Client) {
    // A program of an older version returns something else.
    let mut flow = Flow::new("words")
        .start(Read { text: "a".into() })
        .then(Split);
    flow = flow.options(|split| split.retries(3));
    let mut plan = Plan::clone(&flow.plan().unwrap());
    let Work::Run(run_of_split) = &mut plan.jobs[1].work else {
        panic!("it runs");
    };
    run_of_split.script_type = "report".to_owned();
    let script = plan.scripts.get_mut(&run_of_split.script).unwrap();
    *script = r#"{"title": ""}"#.to_owned();
    let ended = run(client, &plan).await;
    let error = ended.jobs[1].error.as_deref().unwrap();
    assert!(
        error.contains("the input of `report` does not fit"),
        "{error}"
    );
}

async fn the_input_is_the_result_of_the_first_prerequisite(client: Client) {
    let worker = Worker::new(&client).job(read).job(split);
    let worker = worker.start().await.unwrap();
    let read = client.enqueue(Read { text: "a b".into() }).await.unwrap();
    let split = client.enqueue(Split).after(&read).await.unwrap();
    assert_eq!(split.result_within(PATIENCE).await.unwrap(), ["a", "b"]);
    let alone = client.enqueue(Split).retries(3).await.unwrap();
    let error = alone.result_within(PATIENCE).await.unwrap_err();
    assert!(
        error.to_string().contains("there is no job before it"),
        "{error}"
    );
    assert_eq!(alone.status().await.unwrap(), Some(JobStatus::Failed));
    worker.stop().await;
}

#[test]
fn the_options_of_a_type_are_those_of_its_job() {
    let flow = Flow::new("words").start(Read {
        text: String::new(),
    });
    let flow = flow.then(Split).each(Measure { add: 0 }).plan().unwrap();
    let measure = &flow.jobs[2];
    assert_eq!((measure.retries, measure.backoff_ms), (2, Some(3000)));
    assert_eq!(
        (flow.jobs[1].timeout_ms, measure.timeout_ms),
        (None, Some(90_000))
    );
    let Work::Run(run) = &measure.work else {
        panic!("it runs");
    };
    assert_eq!(run.priority.as_deref(), Some("high"));
}

#[test]
fn what_no_flow_has_is_refused_by_name() {
    #[meshwork::job(unique = "one", key = "tenant", concurrent = false)]
    struct Alone;
    #[meshwork::job(name = "send-mail")]
    struct Mail;
    #[meshwork::job(input = Text, output = Text)]
    struct Again;
    let error = |flow: Result<_, meshwork::flow::FlowFaults>| flow.err().unwrap().to_string();
    let alone = error(Flow::new("f").start(Alone).plan().map(drop));
    assert!(
        alone.contains("the job `alone` has the option `concurrent`, `key`, `unique`"),
        "{alone}"
    );
    let mail = error(Flow::new("f").start(Mail).plan().map(drop));
    assert!(mail.contains("\"send-mail\" is no name of a job"), "{mail}");
    let twice = Flow::new("f").start(Read {
        text: String::new(),
    });
    let twice = error(twice.then(Again).then(Again).plan().map(drop));
    assert!(twice.contains("again"), "{twice}");
}
