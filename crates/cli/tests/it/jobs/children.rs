//! Jobs that submit jobs: `submit()` in scripts, the children, stopping them, and the command within a job.

use std::fs;

use crate::common::{Ground, Running, eventually, on_all_data};
use serde_json::{Value, json};

/// Output of a job, as JSON.
fn output(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "wait", id, "--json"]).ok().json()["output"].clone()
}

fn status(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "status", id, "--json"]).ok().json()
}

/// All jobs, however many.
fn jobs(ground: &Ground) -> Vec<Value> {
    ground
        .run(&["job", "list", "--limit", "100000", "--json"])
        .ok()
        .jsons()
}

/// The ids of a job's children, the newest first.
fn children(ground: &Ground, id: &str) -> Vec<String> {
    let args = ["job", "list", "--parent", id, "--limit", "2000", "--json"];
    let jobs = ground.run(&args).ok().jsons();
    jobs.iter()
        .map(|job| job["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Submits a script as the job `p`.
fn parent(ground: &Ground, file: &str, script: &str, more: &[&str]) {
    ground.file(file, script);
    ground
        .run(&[&["job", "submit", file, "--id", "p"], more].concat())
        .ok();
}

/// A worker for scripts of both types.
fn worker(ground: &Ground, more: &[&str]) -> Running {
    ground.worker(&[&["--type", "python,osis"], more].concat())
}

/// One that is to be killed: it runs one job at a time, so that no child runs there.
const TO_BE_KILLED: [&str; 2] = ["--concurrency", "1"];

/// A job in Python that says the command, and what came of it.
fn within_a_job(ground: &Ground, env: &str, more: &[&str]) -> Value {
    let script = format!(
        "import os, subprocess\n\
         open('c.rhai', 'w').write('1')\n\
         done = subprocess.run([{:?}, 'job', 'submit', 'c.rhai'], env={env}, capture_output=True, text=True)\n\
         result = dict(code=done.returncode, out=done.stdout, err=done.stderr)\n",
        env!("CARGO_BIN_EXE_meshwork"),
    );
    ground.file("outer.py", script);
    let done = ground.run(&[&["run", "outer.py"], more].concat()).ok();
    serde_json::from_str(&done.stdout).unwrap()
}

on_all_data! {
    fn the_command_opens_no_store_of_its_own_within_a_job(ground: &Ground) {
        // As the runner sets it, and where the script has cleared it.
        for env in ["None", "{'HOME': os.environ['HOME']}", "{'HOME': '/', 'MESHWORK_JOB': 'x'}", "{'HOME': '/'}"] {
            let said = within_a_job(ground, env, &[]);
            assert_eq!((&said["code"], &said["out"]), (&json!(2), &json!("")), "{env}: {said}");
            let why = said["err"].as_str().unwrap();
            assert!(why.contains("inside a job") && why.contains("add_child()"), "{why}");
            assert!(why.contains("--redis") && why.contains("MESHWORK_DATA"), "{why}");
        }
        let elsewhere = format!("MESHWORK_DATA={}", ground.path("elsewhere").display());
        let said = within_a_job(ground, "None", &["--env", &elsewhere]);
        assert_eq!(said["code"], 0, "{said}");
    }

    fn a_script_in_python_gets_children(ground: &Ground) {
        let script = "import os\n\
            a = submit('import os, sys; result = sys.stdin.read() + CALLER_ID + CONTEXT_ID + os.environ.get(\"X\", \"-\")',\n\
            \x20   input='in')\n\
            b = submit('INPUT.len()', type='osis', input=b'\\xff\\0', priority='high', retries=2, timeout=1.5, key='k',\n\
            \x20   delay=0.01)\n\
            c = submit('import json, os, sys; result = os.environ[\"X\"] + json.load(sys.stdin)[\"a\"]',\n\
            \x20   env=dict(X='y'), input=dict(a='z'))\n\
            result = [a, b, c]\n";
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let given = ["--caller-id", "me", "--context-id", "here", "--env", "X=x", "--traceparent", trace];
        parent(ground, "p.py", script, &given);
        let worker = worker(ground, &[]);
        assert_eq!(output(ground, "p"), json!(["p.1", "p.2", "p.3"]));
        assert_eq!(output(ground, "p.1"), json!("inmehere-"));
        assert_eq!(output(ground, "p.2"), json!(2));
        assert_eq!(output(ground, "p.3"), json!("yz"));
        let (p, b) = (status(ground, "p"), status(ground, "p.2"));
        assert_eq!((&p["children"], &p["parent"]), (&json!(3), &Value::Null));
        assert_eq!((&b["children"], &b["parent"], &b["type"]), (&json!(0), &json!("p"), &json!("osis")));
        let options = ["priority", "retries", "timeout", "key", "traceparent"].map(|name| b[name].clone());
        assert_eq!(options, [json!("high"), json!(2), json!(2), json!("k"), json!(trace)]);
        assert_eq!(children(ground, "p"), ["p.3", "p.2", "p.1"]);
        let said = ground.run(&["job", "status", "p.2"]).ok().stdout;
        assert!(said.contains("parent       p\n"), "{said}");
        ground.run(&["job", "list", "--parent", "none"]).exits(5);
        worker.stop();
    }

    fn a_script_in_rhai_gets_children(ground: &Ground) {
        let script = "let a = submit(`INPUT`, #{\"type\": \"osis\", input: \"x\", retries: 1});\n\
            let b = submit(\"6 * 7\");\n\
            let why = \"\";\n\
            try { submit(\"1\", #{prio: 1}); } catch (e) { why = e; }\n\
            [a, b, why]";
        parent(ground, "p.rhai", script, &[]);
        let worker = worker(ground, &[]);
        let said = output(ground, "p");
        assert_eq!((&said[0], &said[1]), (&json!("p.1"), &json!("p.2")));
        assert!(said[2].as_str().unwrap().contains("no option `prio`"), "{said}");
        assert_eq!((output(ground, "p.1"), output(ground, "p.2")), (json!("x"), json!(42)));
        assert_eq!(children(ground, "p"), ["p.2", "p.1"]);
        worker.stop();
    }

    fn runs_after_killed_workers_add_no_child_twice(ground: &Ground) {
        let (ran, reached) = (ground.path("ran"), ground.path("reached"));
        let script = format!(
            "import os, signal\n\
             for n in range(1, 6):\n\
             \x20   submit('open({ran:?}, \"a\").write(JOB_ID + \"\\\\n\")')\n\
             \x20   if n in (2, 4) and not os.path.exists({reached:?} + str(n)):\n\
             \x20       open({reached:?} + str(n), 'w').close()\n\
             \x20       while True: signal.pause()\n"
        );
        parent(ground, "p.py", &script, &[]);
        for n in [2, 4] {
            let first = worker(ground, &TO_BE_KILLED);
            let reached = ground.path(&format!("reached{n}"));
            eventually("the run has submitted that many", || reached.exists().then_some(()));
            first.kill();
            assert_eq!(children(ground, "p").len(), n);
        }
        let last = worker(ground, &[]);
        output(ground, "p");
        let all = children(ground, "p");
        assert_eq!(all, ["p.5", "p.4", "p.3", "p.2", "p.1"]);
        for id in &all {
            output(ground, id);
        }
        let ran = fs::read_to_string(ran).unwrap();
        let mut ran: Vec<_> = ran.lines().collect();
        ran.sort_unstable();
        assert_eq!(ran, ["p.1", "p.2", "p.3", "p.4", "p.5"]);
        assert_eq!(jobs(ground).len(), 6);
        assert_eq!(status(ground, "p")["lost"], 2);
        last.stop();
    }

    /// Killed wherever it is: in the script, on the way to the store, or on the way back.
    fn nor_do_runs_whose_workers_are_killed_in_the_midst_of_calls(ground: &Ground) {
        let (runs, reached) = (ground.path("runs"), ground.path("reached"));
        let script = format!(
            "import os, signal\n\
             with open({runs:?}, 'a') as file: file.write('.')\n\
             run = os.path.getsize({runs:?})\n\
             for n in range(1, 401):\n\
             \x20   assert submit('1', type='v') == 'p.%d' % n\n\
             \x20   if n == 100 * run: open({reached:?} + str(run), 'w').close()\n\
             while run < 4: signal.pause()\n"
        );
        parent(ground, "p.py", &script, &[]);
        for run in 1..=3 {
            let worker = worker(ground, &TO_BE_KILLED);
            let reached = ground.path(&format!("reached{run}"));
            eventually("the run is in the midst of its calls", || reached.exists().then_some(()));
            worker.kill();
        }
        let last = worker(ground, &[]);
        assert_eq!(output(ground, "p"), json!(""));
        let expected: Vec<_> = (1..=400).rev().map(|n| format!("p.{n}")).collect();
        assert_eq!(children(ground, "p"), expected);
        assert_eq!(jobs(ground).len(), 401);
        let queued = ground.run(&["queue", "list", "--json"]).ok().jsons();
        let queued = queued.iter().find(|queue| queue["queue"].as_str().unwrap().ends_with(":v"));
        assert_eq!(queued.map(|queue| queue["waiting"].clone()), Some(json!(400)), "{queued:?}");
        last.stop();
    }

    fn nor_does_a_run_in_rhai(ground: &Ground) {
        let script = "submit(\"1\"); submit(\"2\"); let i = 0; while i < 1_000_000 { i += 1 } submit(\"3\")";
        parent(ground, "p.rhai", script, &[]);
        let first = worker(ground, &TO_BE_KILLED);
        eventually("two children are submitted", || (children(ground, "p").len() >= 2).then_some(()));
        first.kill();
        let second = worker(ground, &[]);
        assert_eq!(output(ground, "p"), json!("p.3"));
        assert_eq!(children(ground, "p"), ["p.3", "p.2", "p.1"]);
        for (id, is) in [("p.1", 1), ("p.2", 2), ("p.3", 3)] {
            assert_eq!(output(ground, id), json!(is));
        }
        assert_eq!(jobs(ground).len(), 4);
        second.stop();
    }

    fn a_run_that_asks_for_other_children_is_refused(ground: &Ground) {
        let failed = ground.path("failed");
        let script = format!(
            "import os\n\
             if not os.path.exists({failed:?}):\n\
             \x20   open({failed:?}, 'w').close()\n\
             \x20   submit('result = 1'); submit('1', type='v'); submit('result = 3')\n\
             \x20   raise SystemExit(1)\n\
             result = []\n\
             for child in [dict(script='result = 2'), dict(script='1', type='v', retries=1), dict(script='result = 3')]:\n\
             \x20   try: result.append(submit(**child))\n\
             \x20   except RuntimeError as error: result.append(str(error))\n"
        );
        parent(ground, "p.py", &script, &["--retries", "1", "--backoff", "0.01"]);
        let worker = worker(ground, &[]);
        let said = output(ground, "p");
        for (at, words) in [(0, ["call 1", "in its script", "job p.1"]), (1, ["call 2", "in its options", "job p.2"])] {
            let why = said[at].as_str().unwrap();
            assert!(words.iter().all(|word| why.contains(word)), "{why}");
        }
        assert_eq!(said[2], "p.3");
        assert_eq!(output(ground, "p.1"), json!(1));
        assert_eq!(jobs(ground).len(), 4);
        worker.stop();
    }

    fn a_job_that_submits_itself_comes_to_an_end(ground: &Ground) {
        let script = "try: result = submit(open('script.py').read())\n\
            except RuntimeError as error: result = str(error)\n";
        parent(ground, "p.py", script, &[]);
        let worker = worker(ground, &[]);
        let mut id = "p".to_owned();
        for _ in 0..8 {
            let child = format!("{id}.1");
            assert_eq!(output(ground, &id), json!(child));
            id = child;
        }
        let said = output(ground, &id);
        assert!(said.as_str().unwrap().contains("no deeper than 8 levels"), "{said}");
        assert_eq!(jobs(ground).len(), 9);
        worker.stop();
    }

    fn a_job_has_a_thousand_children_at_most(ground: &Ground) {
        let script = "for _ in range(1000): last = submit('1', type='v')\n\
            try: submit('1', type='v')\n\
            except RuntimeError as error: result = [last, str(error)]\n";
        parent(ground, "p.py", script, &[]);
        let worker = worker(ground, &[]);
        let said = output(ground, "p");
        assert_eq!(said[0], "p.1000");
        assert!(said[1].as_str().unwrap().contains("call 1001 of add_child(): a job has at most 1000 children"), "{said}");
        assert_eq!(children(ground, "p").len(), 1000);
        let done = ground.run(&["job", "stop", "p", "--children", "--json"]).ok();
        assert_eq!(done.jsons().len(), 1001);
        assert!(jobs(ground).iter().all(|job| job["status"] != "dispatched"));
        worker.stop();
    }

    fn a_job_is_stopped_with_its_children_while_it_submits(ground: &Ground) {
        let script = "import time\n\
            submit('1', type='v')\n\
            if JOB_ID.count('.') < 2: submit(open('script.py').read())\n\
            while True:\n\
            \x20   submit('1', type='v')\n\
            \x20   time.sleep(0.05)\n";
        parent(ground, "p.py", script, &[]);
        let worker = worker(ground, &[]);
        eventually("grandchildren are there", || {
            let done = ground.run(&["job", "status", "p.2.2.2"]);
            (done.code == Some(0)).then_some(())
        });
        ground.run(&["job", "stop", "p", "--children", "--json"]).ok();
        let open: Vec<_> = jobs(ground).into_iter().filter(|job| job["status"] != "error").collect();
        assert!(open.is_empty(), "{open:#?}");
        let all = jobs(ground).len();
        let again = ground.run(&["job", "stop", "p", "--children"]).ok();
        assert_eq!(again.stdout, "p ended\n");
        assert_eq!(jobs(ground).len(), all);
        ground.run(&["job", "stop", "none", "--children"]).exits(5);
        worker.stop();
    }

    fn only_children_that_a_client_could_submit_are_taken(ground: &Ground) {
        ground.run(&["queue", "limit", "set", "v", "1", "--create"]).ok();
        let script = "result = []\n\
            for child in [dict(script='1', type='v'), dict(script='2', type='v'), dict(script=''), dict(script='x' * 1048577),\n\
            \x20     dict(script='1', timeout=0), dict(script='1', retries=101), dict(script='1', group='a b'),\n\
            \x20     dict(script='1', input=b'x' * 16777217), dict(script='1', input=b'x' * 40000000),\n\
            \x20     dict(script='1', prio=1), dict(script=1), dict(script='1', type='sal')]:\n\
            \x20   try: result.append(submit(**child))\n\
            \x20   except Exception as error: result.append('%s: %s' % (type(error).__name__, error))\n";
        parent(ground, "p.py", script, &[]);
        let worker = worker(ground, &[]);
        let said = output(ground, "p");
        let words = [
            "p.1",
            "holds 1 job already, which is its limit",
            "the script is empty",
            "the script takes 1048577 bytes, the limit is 1048576",
            "a timeout of 0 s is not possible",
            "101 retries are too many: at most 100",
            "option of add_child(): group: ",
            "the input takes 16777217 bytes, the limit is 16777216",
            "ValueError: the request of add_child() has",
            "TypeError: add_child() got an unexpected keyword argument 'prio'",
            "TypeError: add_child() takes a script as text",
            // Calls that were refused count, except for those with invalid options.
            "p.8",
        ];
        for (at, words) in words.iter().enumerate() {
            assert!(said[at].as_str().unwrap().contains(words), "{at}: {said}");
        }
        assert_eq!(children(ground, "p"), ["p.8", "p.1"]);
        worker.stop();
    }

    fn what_scripts_do_to_the_socket_harms_nobody(ground: &Ground) {
        let script = "import os, socket, threading\n\
            for rubbish in [b'garbage\\n\\n', b'{}\\n', b'\\xff' * 100000, b'']:\n\
            \x20   with socket.socket(socket.AF_UNIX) as end:\n\
            \x20       end.connect(os.environ['MESHWORK_CALLS'])\n\
            \x20       end.sendall(rubbish)\n\
            ids = [submit('1', type='v')]\n\
            def many():\n\
            \x20   for _ in range(5): ids.append(submit('1', type='v'))\n\
            threads = [threading.Thread(target=many) for _ in range(8)]\n\
            for thread in threads: thread.start()\n\
            for thread in threads: thread.join()\n\
            reads, writes = os.pipe()\n\
            if os.fork() == 0:\n\
            \x20   try: submit('1', type='v')\n\
            \x20   except RuntimeError as error: os.write(writes, str(error).encode())\n\
            \x20   os._exit(0)\n\
            os.close(writes)\n\
            result = [sorted(ids, key=lambda id: int(id[2:])), os.read(reads, 1000).decode()]\n";
        parent(ground, "p.py", script, &[]);
        let worker = worker(ground, &[]);
        let said = output(ground, "p");
        let ids: Vec<_> = (1..=41).map(|n| format!("p.{n}")).collect();
        assert_eq!(said[0], json!(ids));
        assert!(said[1].as_str().unwrap().contains("not in one that it has forked"), "{said}");
        assert_eq!(children(ground, "p").len(), 41);
        worker.stop();
    }
}
