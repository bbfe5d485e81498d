//! Jobs that call actions: `call_action()` in Python and Rhai, through their worker.

use std::sync::{Arc, Mutex};

use meshwork::protocol::nooble::{ActionContext, ActionError, Service, ServiceHandle};
use meshwork::{Client, JobRequest, Worker, WorkerHandle};
use meshwork_model::job::Job;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::support::{BOUND, Ground, PAUSE};

/// A worker for scripts of both types, and a client for its jobs.
async fn started(ground: &Ground) -> (Client, WorkerHandle) {
    let client = Client::open(&ground.url()).await.unwrap();
    let worker = Worker::new(&client).actions(ground.broker.names().clone());
    let worker = worker.script_type(&"python".parse().unwrap()).unwrap();
    let worker = worker.script_type(&"osis".parse().unwrap()).unwrap();
    (client, worker.start().await.unwrap())
}

/// Runs a script as a job.
async fn ran(client: &Client, script_type: &str, script: &str) -> Job {
    let request = JobRequest::new(script_type.parse().unwrap(), script);
    let id = client.enqueue(request).await.unwrap();
    client.wait(&id, BOUND).await.unwrap()
}

fn output(job: &Job) -> Value {
    let output = job.output.as_deref().unwrap_or_else(|| panic!("{job:?}"));
    serde_json::from_slice(output).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_gets_the_answer_of_a_service_and_its_error() {
    let python = "a = call_action('demo.echo', {'n': 1, 'ä': [None, 1.5]})\n\
        try: call_action('demo.refuse', {})\n\
        except ActionError as e: b = [e.kind, e.code, e.details, str(e), isinstance(e, TimeoutError)]\n\
        result = [a, b, call_action('demo.echo')]\n";
    let rhai = "let a = call_action(\"demo.echo\", #{n: 1, \"ä\": [(), 1.5]});\n\
        let b = ();\n\
        try { call_action(\"demo.refuse\", #{}) } catch (e) { b = [e.kind, e.code, e.details, e.message, false] }\n\
        [a, b, call_action(\"demo.echo\", #{}, 30)]";
    let refuse = async |_: Value, _: ActionContext| {
        let details = meshwork_model::nooble::Data::of(&json!({ "most": 3 })).unwrap();
        let error = ActionError::new("ValidationError", "TOO_MANY", "four are too many");
        Err::<(), _>(error.details(details))
    };
    for ground in Ground::both().await {
        let service = ground.service().handle("demo.refuse", refuse);
        let service = service.start().await.unwrap();
        let (client, worker) = started(&ground).await;
        for (script_type, script) in [("python", python), ("osis", rhai)] {
            let job = ran(&client, script_type, script).await;
            let said = "demo.refuse failed: four are too many";
            let expected = json!([
                { "echo": { "n": 1, "ä": [null, 1.5] } },
                ["ValidationError", "TOO_MANY", { "most": 3 }, said, false],
                { "echo": {} },
            ]);
            assert_eq!(output(&job), expected, "{script_type}");
        }
        // An error that the script does not catch is that of the job.
        for (script_type, script) in [
            ("python", "call_action('demo.refuse', {})"),
            ("osis", "call_action(\"demo.refuse\", #{})"),
        ] {
            let job = ran(&client, script_type, script).await;
            let error = job.error.unwrap();
            assert!(error.contains("demo.refuse failed: four"), "{error}");
        }
        worker.stop().await;
        service.stop().await;
        // Nothing is left of the lists for answers.
        let left: Vec<String> = ground.say(&["KEYS", "*:responses:*"]).await;
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_service_there_is_an_error_in_time() {
    let python = "try: call_action('nobody.there', {}, timeout=0.05)\n\
        except TimeoutError as e: result = [e.kind, isinstance(e, ActionError), str(e)]\n";
    let rhai = "let said = ();\n\
        try { call_action(\"nobody.there\", #{}, 0.05) } catch (e) { said = [e.kind, true, e.message] }\n\
        said";
    let Some(ground) = Ground::open(meshwork_model::keys::nooble::Dialect::Streams).await else {
        return;
    };
    let (client, worker) = started(&ground).await;
    for (script_type, script) in [("python", python), ("osis", rhai)] {
        let said = output(&ran(&client, script_type, script).await);
        assert_eq!((&said[0], &said[1]), (&json!("Timeout"), &json!(true)));
        let why = said[2].as_str().unwrap();
        assert!(
            why.contains("no answer to nobody.there after 50 ms"),
            "{why}"
        );
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_refused_by_name() {
    let python = "said = []\n\
        for type, data, options in [('x', {}, {}), ('.y', {}, {}), ('a.b', [], {}), ('a.b', {}, dict(timeout=-1)),\n\
        \x20       ('a.b', {'x': 'y' * 17000000}, {}), (5, {}, {})]:\n\
        \x20   try: call_action(type, data, **options)\n\
        \x20   except Exception as e: said.append(type_of(e) + ' ' + str(e))\n\
        result = said\n";
    let python = format!("type_of = lambda e: type_(e).__name__\ntype_ = type\n{python}");
    let rhai = "let said = [];\n\
        for given in [[\"x\", #{}], [\".y\", #{}], [\"a.b\", []]] {\n\
        \x20   try { call_action(given[0], given[1]) } catch (e) { said.push(`${e.kind} ${e.message}`) }\n\
        }\n\
        try { call_action(\"a.b\", #{}, -1) } catch (e) { said.push(`${e}`) }\n\
        try { call_action(\"a.b\", #{}, \"1\") } catch (e) { said.push(`${e}`) }\n\
        said";
    let Some(ground) = Ground::open(meshwork_model::keys::nooble::Dialect::Streams).await else {
        return;
    };
    let (client, worker) = started(&ground).await;
    let check = |said: &Value, words: &[&str]| {
        let said = said.as_array().unwrap();
        assert_eq!(said.len(), words.len(), "{said:?}");
        for (said, word) in said.iter().zip(words) {
            assert!(said.as_str().unwrap().contains(word), "{word}: {said}");
        }
    };
    let said = output(&ran(&client, "python", &python).await);
    let words = [
        "ActionError the action type \"x\" is without an operation",
        "\".y\" is without a service",
        "TypeError call_action() takes data as a dict, not as list",
        "the timeout -1 is not possible",
        "the limit is 16777216: pass a reference",
        "TypeError call_action() takes the type",
    ];
    check(&said, &words);
    let said = output(&ran(&client, "osis", rhai).await);
    let words = [
        "Refused the action type \"x\" is without an operation",
        "\".y\" is without a service",
        "data is an object of JSON: give names and values between braces, not a list",
        "the timeout -1 is not possible",
        "the timeout of call_action() is seconds, not of the type string",
    ];
    check(&said, &words);
    worker.stop().await;
    let keys: Vec<String> = ground.say(&["KEYS", "nooble4:*"]).await;
    assert!(keys.is_empty(), "{keys:?}");
}

/// A service whose action `demo.hang` never ends, and a signal for each begun one.
async fn hanging(ground: &Ground) -> (ServiceHandle, Arc<Semaphore>) {
    let began = Arc::new(Semaphore::new(0));
    let begins = Arc::clone(&began);
    let hang = move |_: Value, _: ActionContext| {
        begins.add_permits(1);
        async { std::future::pending::<Result<(), String>>().await }
    };
    let service = Service::new(&ground.demo).handle("demo.hang", hang);
    let service = service.shutdown_timeout(PAUSE).start().await.unwrap();
    (service, began)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_with_its_job() {
    // The script in Python goes on after the signal, and learns why its call has no answer.
    let python = "import signal\n\
        signal.signal(signal.SIGTERM, lambda *_: None)\n\
        try: call_action('demo.hang', {}, timeout=3600)\n\
        except ActionError as e: print(e.kind, e)\n";
    let rhai = "try { call_action(\"demo.hang\", #{}, 3600) } catch (e) { loop {} }";
    let Some(ground) = Ground::open(meshwork_model::keys::nooble::Dialect::Streams).await else {
        return;
    };
    let (service, began) = hanging(&ground).await;
    let (client, worker) = started(&ground).await;
    for (script_type, script) in [("python", python), ("osis", rhai)] {
        let request = JobRequest::new(script_type.parse().unwrap(), script);
        let id = client.enqueue(request).await.unwrap();
        let begun = tokio::time::timeout(BOUND, began.acquire()).await;
        begun.unwrap().unwrap().forget();
        client.cancel(&id).await.unwrap();
        let job = client.wait(&id, BOUND).await.unwrap();
        if script_type == "python" {
            let stdout = String::from_utf8_lossy(&job.stdout);
            assert!(stdout.contains("Stopped the call of demo.hang"), "{job:?}");
        } else {
            assert!(job.error.is_some(), "{job:?}");
        }
    }
    // The timeout of the job ends its call too.
    let request = JobRequest::new("osis".parse().unwrap(), rhai);
    let request = request.timeout(std::time::Duration::from_secs(1));
    let id = client.enqueue(request).await.unwrap();
    let job = client.wait(&id, BOUND).await.unwrap();
    assert!(job.error.unwrap().contains("timeout"));
    worker.stop().await;
    service.stop().await;
}

/// A job that runs again makes the same calls, and their ids say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_call_has_the_id_of_the_first_one() {
    let script = "import os\n\
        call_action('demo.note', {'a': 1})\n\
        call_action('demo.note', {'a': 1})\n\
        call_action('demo.note', {'a': 2})\n\
        raise Retry(after=0)\n";
    for ground in Ground::both().await {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&seen);
        let note = move |_: Value, context: ActionContext| {
            let action = &context.action;
            let ids = (action.action_id.clone(), action.correlation_id.clone());
            notes.lock().unwrap().push(ids);
            async { Ok::<_, String>(json!({})) }
        };
        let service = Service::new(&ground.demo).handle("demo.note", note);
        let service = service.start().await.unwrap();
        let (client, worker) = started(&ground).await;
        let request = JobRequest::new("python".parse().unwrap(), script);
        let id = client.enqueue(request.retries(1)).await.unwrap();
        client.wait(&id, BOUND).await.unwrap();
        let seen = seen.lock().unwrap().clone();
        let ids: Vec<_> = seen.iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(ids.len(), 6, "{ids:?}");
        assert_eq!(ids[..3], ids[3..]);
        let different: std::collections::HashSet<_> = ids[..3].iter().collect();
        assert_eq!(different.len(), 3);
        // An answer to the first run's call is never taken for that to the second's.
        let correlations: std::collections::HashSet<_> =
            seen.iter().map(|(_, id)| id.clone().unwrap()).collect();
        assert_eq!(correlations.len(), 6);
        worker.stop().await;
        service.stop().await;
    }
}
