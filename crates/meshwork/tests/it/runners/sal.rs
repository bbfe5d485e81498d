//! Scripts of the type `sal`, by the runtime: outcomes, constants, the sandbox, and refusals. The examples of
//! `examples/sal` call each function, with its answer and its error.

use std::collections::BTreeSet;
use std::path::Path;

use meshwork::runtime::{Confinement, builtin, sandbox_host};
use meshwork_model::job::Job;
use meshwork_model::outcome::{FailureKind, Report};
use meshwork_model::sandbox::Profile;
use meshwork_test_servers::fakes::mycelium::hosted::FakeMycelium;
use meshwork_test_servers::servers::{RealPostgres, Tool, need_for, need_program, shared};
use serde_json::{Map, Value, json};

use super::LAUNCHED;
use super::support::{PATIENCE, failure, job, output, run, run_of, script, within};

/// The examples, and the programs that each needs.
fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sal");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "sal"))
        .collect();
    files.sort();
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// Returns true if a program is there; else the test has been reported as skipped.
fn is_there(test: &str, program: &str) -> bool {
    let installed = [Tool::Rsync, Tool::Curl, Tool::Postgres, Tool::Redis];
    let tool = installed.into_iter().find(|tool| tool.program() == program);
    match tool {
        Some(tool) => need_for(test, tool).is_some(),
        None => need_program(test, program).is_some(),
    }
}

/// Returns the result of work that starts or ends a runtime.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Daemons that live as long as an example runs.
type Daemons = (Option<RealPostgres>, Vec<FakeMycelium>);

/// Returns the variables of an example, which name servers of its own. `None`: this machine lacks one.
fn servers_for(test: &str, example: &str) -> Option<(Map<String, Value>, Daemons)> {
    let (mut env, mut daemons) = (json!({}), (None, Vec::new()));
    match example {
        "redis.sal" => env["REDIS_URL"] = shared(Tool::Redis)?.url().into(),
        "postgres.sal" => {
            let server = RealPostgres::start_for(test)?;
            for (name, value) in server.variables() {
                env[name] = value.into();
            }
            daemons.0 = Some(server);
        }
        "mycelium.sal" => {
            let one = FakeMycelium::start(&[]);
            let other = FakeMycelium::start(&[one.link()]);
            env["MYCELIUM_API"] = one.url().into();
            env["MYCELIUM_OTHER"] = other.url().into();
            daemons.1.extend([one, other]);
        }
        _ => {}
    }
    let Value::Object(env) = env else {
        return None;
    };
    Some((env, daemons))
}

async fn run_confined(profile: Profile, job: Job) -> Report {
    let runtime = builtin("sal").unwrap();
    let (mut run, _stop) = run_of(job, PATIENCE);
    run.confinement = Confinement::of(profile);
    within(runtime.run(run)).await
}

#[tokio::test]
async fn every_example_ends_well() {
    if !LAUNCHED {
        return;
    }
    for (name, text) in examples() {
        let needed = text
            .lines()
            .find_map(|line| line.strip_prefix("// needs: "));
        let needed = needed.into_iter().flat_map(|line| line.split(", "));
        let test = format!("sal::{name}");
        if needed.filter(|program| !is_there(&test, program)).count() > 0 {
            continue;
        }
        let example = name.clone();
        let Some((env, daemons)) = apart(move || servers_for(&test, &example)).await else {
            continue;
        };
        let env = Value::Object(env).to_string();
        let fields = [("script", text.as_bytes()), ("env_vars", env.as_bytes())];
        let report = run_confined(Profile::Standard, job(&fields)).await;
        assert_eq!(output(&report), "done", "{name}");
        apart(move || drop(daemons)).await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_an_error() {
    if !LAUNCHED {
        return;
    }
    let env = json!({
        "REDIS_URL": "redis://127.0.0.1:1",
        "POSTGRES_HOST": "127.0.0.1",
        "POSTGRES_PORT": "1",
        "POSTGRES_PASSWORD": "sesame",
    });
    let env = env.to_string();
    for (call, part) in [
        ("redis_ping()", "(127.0.0.1:1, of REDIS_URL)"),
        ("redis_reset()", "Redis error: "),
        ("redis_set(\"a\", \"1\")", "Redis error: "),
        (
            "pg_connect()",
            "(127.0.0.1:1, of POSTGRES_HOST and POSTGRES_PORT)",
        ),
        ("pg_ping()", "PostgreSQL error: "),
        ("pg_reset()", "PostgreSQL error: "),
        ("pg_execute(\"SELECT 1\")", "PostgreSQL error: "),
    ] {
        let fields = [("script", call.as_bytes()), ("env_vars", env.as_bytes())];
        let report = run_confined(Profile::Standard, job(&fields)).await;
        let failure = failure(&report);
        assert_eq!(failure.kind, FailureKind::Script, "{failure:?}");
        let message = &failure.message;
        assert!(message.contains(part), "{call}: {message}");
        assert!(!message.contains("sesame"), "{message}");
    }
}

/// A function without a test is found here, as its name is in no example.
#[test]
fn an_example_calls_each_function() {
    let all: String = examples().into_iter().map(|(_, text)| text).collect();
    let words: BTreeSet<&str> = all
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let done = meshwork_sal::functions().filter(|function| function.refused.is_none());
    let callable = done.filter(|function| function.kind != meshwork_sal::Kind::Type);
    let missing: Vec<_> = callable
        .map(|function| function.name)
        .filter(|name| !words.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test]
async fn each_refused_function_names_its_reason() {
    if !LAUNCHED {
        return;
    }
    let mut text = String::from("let missing = [];\n");
    let mut done: BTreeSet<_> = meshwork_sal::functions()
        .filter(|function| function.refused.is_none())
        .map(|function| (function.name, function.arguments))
        .collect();
    for function in meshwork_sal::functions() {
        let is_function = function.kind == meshwork_sal::Kind::Function;
        // Methods of several types have one name; the reason is that of the first.
        if !is_function || !done.insert((function.name, function.arguments)) {
            continue;
        }
        // Rhai itself refuses other numbers of arguments.
        let reason = function.refused.filter(|_| function.name != "is_def_fn");
        let Some(reason) = reason else {
            continue;
        };
        let (name, args) = (function.name, vec!["()"; function.arguments].join(", "));
        text += &format!(
            "try {{ {name}({args}); missing.push(\"{name}\"); }} catch (e) {{ if e != \"`{name}` is refused: {reason}\" {{ missing.push(`${{e}}`); }} }}\n"
        );
    }
    text += "missing";
    assert_eq!(output(&run("sal", script(&text)).await), "[]");
}

#[tokio::test]
async fn outcomes_and_constants_are_those_of_a_script() {
    if !LAUNCHED {
        return;
    }
    let fields: [(&str, &[u8]); 5] = [
        ("script", b"print(1); debug(2); progress(0.5, \"half\"); #{ id: JOB_ID, caller: CALLER_ID, input: INPUT, env: [ENV.A, ENV.HOME == env_get(\"HOME\"), ENV.PATH != ()] }"),
        ("mw_input", b"in"),
        ("caller_id", b"c"),
        ("context_id", b"x"),
        ("env_vars", br#"{"A":"1"}"#),
    ];
    let report = run("sal", job(&fields)).await;
    assert_eq!(
        output(&report),
        r#"{"caller":"c","env":["1",true,true],"id":"job-1","input":"in"}"#
    );
    assert_eq!(report.stdout, b"1\n");
    for (text, kind, part) in [
        ("let x = ;", FailureKind::Permanent, "Syntax error"),
        ("throw \"no\"", FailureKind::Script, "no"),
        ("Permanent(\"never\")", FailureKind::Permanent, "never"),
        ("Snooze(2)", FailureKind::Snoozed, "2 s"),
        ("fn f() { f() } f()", FailureKind::Script, "Stack overflow"),
        (
            "nowhere(1)",
            FailureKind::Script,
            "`meshwork runtime show sal` lists",
        ),
        (
            "mkdir(1, 2)",
            FailureKind::Script,
            "SAL has `mkdir` with other arguments",
        ),
    ] {
        let report = run("sal", script(text)).await;
        let failure = failure(&report);
        assert_eq!(failure.kind, kind, "{failure:?}");
        assert!(failure.message.contains(part), "{failure:?}");
    }
    let report = run("sal", script("\nfile_read(\"none\")")).await;
    let traceback = failure(&report).traceback.as_deref().unwrap();
    assert!(traceback.contains("line 2"), "{traceback}");
}

#[tokio::test]
async fn a_script_reaches_no_further_than_its_profile() {
    if !LAUNCHED {
        return;
    }
    let host = sandbox_host().await.unwrap();
    let outside = tempfile::tempdir().unwrap();
    let (secret, new) = (outside.path().join("secret"), outside.path().join("new"));
    std::fs::write(&secret, "secret").unwrap();
    let new_path = new.clone();
    let (secret, new) = (secret.display(), new.display());
    let attempts = [
        format!("file_read(\"{secret}\")"),
        format!("copy(\"{secret}\", \"here\"); file_read(\"here\")"),
        format!(
            "let r = run_silent(\"cat {secret}\"); if !r.success {{ throw r.stderr; }} r.stdout"
        ),
        format!(
            "chdir(\"{}\"); file_read(\"secret\")",
            outside.path().display()
        ),
        format!("file_write(\"{new}\", \"x\"); run(\"cp {secret} {new}\\ntrue\").execute().code"),
        format!("rsync(\"{secret}\", \"{new}\")"),
    ];
    for attempt in &attempts {
        let is_rsync = attempt.starts_with("rsync");
        if is_rsync && !is_there("sal::a_script_reaches_no_further_than_its_profile", "rsync") {
            continue;
        }
        let report = run_confined(Profile::Open, script(attempt)).await;
        assert!(report.result.is_ok(), "{attempt}: {report:?}");
        for profile in [Profile::Standard, Profile::Strict] {
            if host.allows(profile).is_err() {
                continue;
            }
            let _ = std::fs::remove_file(&new_path);
            let report = run_confined(profile, script(attempt)).await;
            assert!(report.result.is_err(), "{attempt} in {profile}: {report:?}");
            let message = &failure(&report).message;
            assert!(
                message.contains("the sandbox profile"),
                "{attempt}: {message}"
            );
            assert!(!new_path.exists(), "{attempt} in {profile}");
        }
    }
}

#[tokio::test]
async fn scripts_of_other_runners_work_as_they_are() {
    if !LAUNCHED {
        return;
    }
    for (text, result) in [
        ("\u{feff}#!/usr/bin/env herodo\nexist(\"/\")", "true"),
        (
            "let r = run(\"seq 700000\", #{ silent: true }); r.stdout.len()",
            "4788895",
        ),
        (
            "let r = run_silent(\"seq 700000\"); r.stdout.split(\"\\n\").len()",
            "700001",
        ),
        (
            "run_silent(\"dd if=/dev/zero of=big bs=1M count=16\"); file_read(\"big\").len()",
            "16777216",
        ),
        (
            "fn mine(a) { a } [is_def_fn(\"exist\", 1), is_def_fn(\"mine\", 1), is_def_fn(\"exist\", 2), \
             is_def_fn(\"package_install\", 1), is_def_fn(\"Int\", \"mine\", 1)]",
            "[true,true,false,false,true]",
        ),
    ] {
        let report = run("sal", script(text)).await;
        assert_eq!(output(&report), result, "{text}");
    }
    for (text, part) in [
        (
            "exec(\"21 * 2\")",
            "it runs a text, a file or a URL as a script",
        ),
        ("rsync_builder()", "call rsync(source, destination)"),
        ("playbook_from_text(\"!!a.b\")", "it reads heroscript"),
        (
            "run_silent(\"dd if=/dev/zero of=big bs=1M count=17\"); file_read(\"big\")",
            "it has 17825792 bytes, the limit is 16777216",
        ),
    ] {
        let report = run("sal", script(text)).await;
        let message = &failure(&report).message;
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[tokio::test]
async fn without_a_launcher_no_script_runs() {
    if LAUNCHED {
        return;
    }
    let report = run("sal", script("1")).await;
    let failure = failure(&report);
    assert_eq!(failure.kind, FailureKind::NotStarted);
    assert!(failure.message.contains("no launcher"), "{failure:?}");
}
