//! Python scripts: what they see, what they return, how their errors read.

use std::path::Path;

use meshwork::runtime::builtin;
use meshwork_model::job::Job;
use meshwork_model::job::limits::{MAX_ENV, MAX_INPUT, MAX_LOG, MAX_OUTPUT};
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_test_servers::servers::{Tool, need};

use super::support::{enough_for_a_short_script, failure, job, output, run, run_with, script};

async fn python(text: &str) -> Report {
    run("python", script(text)).await
}

fn with_input(text: &str, input: &[u8]) -> Job {
    job(&[("script", text.as_bytes()), ("mw_input", input)])
}

/// Ends the test, which has been reported as skipped, where there is no Python.
macro_rules! need_python {
    () => {
        if need(Tool::Python).is_none() {
            return;
        }
    };
}
pub(crate) use need_python;

#[tokio::test]
async fn the_variable_result_is_the_result() {
    need_python!();
    for (text, expected) in [
        ("result = 'as it is, ä\\n'", "as it is, ä\n"),
        ("result = b'bytes'", "bytes"),
        (
            "result = {'b': [1, 2.5, None, True], 'a': 'ä'}",
            r#"{"b":[1,2.5,null,true],"a":"ä"}"#,
        ),
        ("result = 42", "42"),
        ("result = ''", ""),
        ("result = 0\nprint('said')", "0"),
        ("import sys\nresult = 'x'\nsys.exit(0)", "x"),
        ("import sys\nresult = 'x'\nsys.exit()", "x"),
    ] {
        assert_eq!(output(&python(text).await), expected, "{text}");
    }
}

#[tokio::test]
async fn without_it_the_result_is_what_was_printed() {
    need_python!();
    assert_eq!(
        output(&python("print('one')\nprint('two', end='')").await),
        "one\ntwo"
    );
    assert_eq!(
        output(&python("result = None\nprint('said')").await),
        "said\n"
    );
    assert_eq!(output(&python("pass").await), "");
    let bytes = python("import sys\nsys.stdout.buffer.write(bytes([255, 0]))").await;
    assert_eq!(bytes.result.unwrap(), [255, 0]);
}

#[tokio::test]
async fn a_result_without_a_form_is_refused_by_name() {
    need_python!();
    for (text, message) in [
        (
            "result = {1, 2}",
            "the result cannot be handed over: TypeError: Object of type set is not JSON serializable",
        ),
        (
            "result = float('nan')",
            "the result cannot be handed over: ValueError: Out of range float values are not JSON compliant",
        ),
        (
            "result = '\\ud800'",
            "the result cannot be handed over: UnicodeEncodeError",
        ),
        (
            "result = []\nresult.append(result)",
            "the result cannot be handed over: ValueError: Circular reference detected",
        ),
    ] {
        let report = python(text).await;
        assert!(
            failure(&report).message.starts_with(message),
            "{:?}",
            report.result
        );
    }
}

#[tokio::test]
async fn the_streams_are_kept_apart() {
    need_python!();
    let report =
        python("import sys\nprint('out')\nprint('err', file=sys.stderr)\nresult = 'res'").await;
    assert_eq!(
        (output(&report), &report.stdout[..], &report.stderr[..]),
        ("res", &b"out\n"[..], &b"err\n"[..])
    );
}

#[tokio::test]
async fn input_comes_on_stdin() {
    need_python!();
    let read = "import sys\nresult = sys.stdin.read()";
    assert_eq!(
        output(&run("python", with_input(read, "größe".as_bytes())).await),
        "größe"
    );
    assert_eq!(output(&python(read).await), "");
    let raw = "import sys\nresult = sys.stdin.buffer.read()[::-1]";
    let report = run("python", with_input(raw, b"\xff\x00a")).await;
    assert_eq!(report.result.unwrap(), b"a\x00\xff");
    // Text that is no UTF-8 goes through a script that reads and writes text.
    let report = run("python", with_input(read, b"a\xffb")).await;
    assert_eq!(report.result.unwrap(), b"a\xffb");
}

#[tokio::test]
async fn input_that_nobody_reads_holds_nothing_up() {
    need_python!();
    let large = vec![b'x'; MAX_INPUT];
    assert_eq!(
        output(&run("python", with_input("result = 'done'", &large)).await),
        "done"
    );
    let some = "import sys\nresult = sys.stdin.read(3)";
    assert_eq!(
        output(&run("python", with_input(some, &large)).await),
        "xxx"
    );
    let closed = "import os\nos.close(0)\nprint('x' * 200000)\nresult = 'done'";
    assert_eq!(
        output(&run("python", with_input(closed, &large)).await),
        "done"
    );
    let all = "import sys\nresult = sys.stdin.buffer.read()";
    assert_eq!(
        run("python", with_input(all, &large))
            .await
            .result
            .unwrap()
            .len(),
        MAX_INPUT
    );
}

#[tokio::test]
async fn the_environment_is_the_jobs_alone() {
    need_python!();
    // Cargo sets it for tests: it stands for the worker's secrets.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let text = "import os\nresult = {name: value for name, value in os.environ.items() if name not in ('PATH', 'HOME', 'TMPDIR', 'MESHWORK_CALLS')}";
    let fields: &[(&str, &[u8])] = &[
        ("script", text.as_bytes()),
        ("caller_id", b"alice"),
        ("context_id", b"shop"),
        ("env_vars", br#"{"CITY": "Ghent", "CALLER_ID": "mallory"}"#),
    ];
    let report = run("python", job(fields)).await;
    let seen: std::collections::BTreeMap<String, String> =
        serde_json::from_str(output(&report)).unwrap();
    let expected = [
        ("CALLER_ID", "alice"),
        ("CITY", "Ghent"),
        ("CONTEXT_ID", "shop"),
        ("JOB_ID", "job-1"),
        ("MESHWORK_JOB", "job-1"),
        ("LANG", "C.UTF-8"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(seen, expected.into());
}

#[tokio::test]
async fn ids_are_variables_too() {
    need_python!();
    let text =
        b"def f():\n    return [CALLER_ID, CONTEXT_ID, JOB_ID, __name__, __file__]\nresult = f()";
    let report = run(
        "python",
        job(&[
            ("script", text),
            ("caller_id", b"alice"),
            ("context_id", b"shop"),
        ]),
    )
    .await;
    assert_eq!(
        output(&report),
        r#"["alice","shop","job-1","__main__","script.py"]"#
    );
}

#[tokio::test]
async fn an_environment_that_cannot_be_is_told() {
    need_python!();
    let fields: &[(&str, &[u8])] = &[("script", b"pass"), ("env_vars", br#"{"A": "x\u0000y"}"#)];
    let report = run("python", job(fields)).await;
    assert_eq!(failure(&report).kind, FailureKind::Permanent);
    assert!(
        failure(&report)
            .message
            .contains("no process can have the variable \"A\""),
        "{:?}",
        report.result
    );
    let large = format!(r#"{{"A": "{}"}}"#, "x".repeat(4 * MAX_ENV));
    let fields: &[(&str, &[u8])] = &[("script", b"pass"), ("env_vars", large.as_bytes())];
    let report = run("python", job(fields)).await;
    assert_eq!(failure(&report).kind, FailureKind::Permanent);
    assert!(
        failure(&report)
            .message
            .contains("Argument list too long (os error 7): the variable `A` takes 262145 bytes"),
        "{:?}",
        report.result
    );
}

#[tokio::test]
async fn the_folder_is_its_own_and_goes_with_it() {
    need_python!();
    let limit = enough_for_a_short_script().await;
    for end in [
        "",
        "\nraise ValueError('x')",
        "\nimport os\nos.kill(os.getpid(), 9)",
        "\nwhile True: pass",
    ] {
        let text = format!(
            "import os, tempfile\nopen('left', 'w').write('x')\nos.makedirs('a/b')\nos.chmod('a', 0)
assert os.getcwd() == os.environ['HOME'] == tempfile.gettempdir()
assert os.stat('..').st_mode & 0o777 == 0o700\nassert sorted(os.listdir()) == ['a', 'left', 'script.py']
print(os.getcwd(), flush=True){end}"
        );
        let runner = builtin("python").unwrap();
        let report = run_with(&*runner, script(&text), limit).await;
        let folder = String::from_utf8(report.stdout).unwrap();
        let folder = Path::new(folder.trim());
        assert!(
            folder.is_absolute(),
            "{:?} {}",
            report.result,
            String::from_utf8_lossy(&report.stderr)
        );
        assert!(!folder.parent().unwrap().exists(), "{}", folder.display());
    }
}

#[tokio::test]
async fn an_error_comes_back_whole() {
    need_python!();
    let text = "import os\n\ndef inner(x):\n    raise ValueError('bad ' + x)\n\ndef outer():\n    os.chdir('/')\n    inner('seed')\n\nouter()\n";
    let report = python(text).await;
    let failure = failure(&report);
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::Script, "ValueError: bad seed")
    );
    let traceback = "Traceback (most recent call last):
  File \"script.py\", line 10, in <module>
    outer()
  File \"script.py\", line 8, in outer
    inner('seed')
  File \"script.py\", line 4, in inner
    raise ValueError('bad ' + x)
ValueError: bad seed";
    // Newer versions underline the part of the line that failed.
    let underlines = |line: &&str| !line.trim().chars().all(|c| c == '^' || c == '~');
    let frames: Vec<_> = failure
        .traceback
        .as_deref()
        .unwrap()
        .lines()
        .filter(underlines)
        .collect();
    assert_eq!(frames.join("\n"), traceback);
    assert_eq!(report.stderr, b"");
}

#[tokio::test]
async fn errors_of_all_kinds_are_told() {
    need_python!();
    for (text, message, part) in [
        (
            "try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k') from e",
            "KeyError: 'k'",
            "ZeroDivisionError",
        ),
        (
            "def f(): f()\nf()",
            "RecursionError: maximum recursion depth exceeded",
            "Previous line repeated",
        ),
        (
            "import json\njson.loads('{')",
            "json.decoder.JSONDecodeError: Expecting property name",
            "script.py",
        ),
        (
            "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd()",
            "Odd: <exception str() failed>",
            "line 3",
        ),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "line 1"),
        ("exec('1 +')", "SyntaxError: invalid syntax", "line 1"),
        (
            "raise ValueError('\\ud800')",
            "ValueError: \\ud800",
            "line 1",
        ),
    ] {
        let report = python(text).await;
        let failure = failure(&report);
        assert_eq!(failure.kind, FailureKind::Script, "{text}");
        assert!(
            failure.message.starts_with(message),
            "{text}: {}",
            failure.message
        );
        let traceback = failure.traceback.as_deref().unwrap();
        assert!(
            traceback.contains(part) && !traceback.contains("<string>\", line 1, in _mesh"),
            "{traceback}"
        );
        assert!(!traceback.contains("_meshwork"), "{traceback}");
    }
}

#[tokio::test]
async fn a_script_that_cannot_be_read_fails_for_good() {
    need_python!();
    let report = python("x = 1\ny = = 2\n").await;
    assert_eq!(failure(&report).kind, FailureKind::Permanent);
    assert_eq!(
        failure(&report).message,
        "SyntaxError: invalid syntax (script.py, line 2)"
    );
    let traceback = failure(&report).traceback.as_deref().unwrap();
    assert!(
        traceback.contains("File \"script.py\", line 2\n    y = = 2\n"),
        "{traceback}"
    );
    for bytes in [&b"x = '\xff'"[..], b"x = 1\0", b"# coding: nonsense\n"] {
        let report = run("python", job(&[("script", bytes)])).await;
        assert_eq!(
            failure(&report).kind,
            FailureKind::Permanent,
            "{:?}",
            report.result
        );
    }
}

#[tokio::test]
async fn an_exit_is_told_by_its_status() {
    need_python!();
    for (text, message) in [
        ("import sys\nresult = 1\nsys.exit(3)", "exit status 3"),
        (
            "import sys\nsys.exit('no config')",
            "exit status 1: no config",
        ),
        ("import os\nresult = 1\nos._exit(4)", "exit status 4"),
        (
            "import os\nos.kill(os.getpid(), 9)",
            "killed by signal 9 (SIGKILL)",
        ),
        (
            "import os, signal\nsignal.signal(15, signal.SIG_DFL)\nos.kill(os.getpid(), 15)",
            "killed by signal 15 (SIGTERM)",
        ),
        (
            "import atexit, os\natexit.register(os._exit, 5)\nresult = 1",
            "exit status 5",
        ),
    ] {
        let expected = Failure::new(FailureKind::Script, message);
        assert_eq!(failure(&python(text).await), &expected, "{text}");
    }
    assert_eq!(
        output(&python("import os\nprint('said', flush=True)\nos._exit(0)").await),
        "said\n"
    );
}

#[tokio::test]
async fn logs_keep_their_end() {
    need_python!();
    let text = "import sys\nfor i in range(200000):\n    sys.stderr.buffer.write(b'line %d\\n' % i)\nresult = 1";
    let report = python(text).await;
    assert_eq!(output(&report), "1");
    assert_eq!(report.stderr.len(), MAX_LOG);
    assert!(report.stderr.starts_with(b"[earlier output is not stored"));
    assert!(report.stderr.ends_with(b"line 199999\n"));
}

#[tokio::test]
async fn an_endless_printer_is_held_in_check() {
    need_python!();
    let limit = enough_for_a_short_script().await;
    let runner = builtin("python").unwrap();
    let text = "import sys\nwhile True:\n    sys.stdout.write('x' * 99 + '\\n')\n    sys.stderr.write('y' * 99 + '\\n')";
    let report = run_with(&*runner, script(text), limit).await;
    assert_eq!(failure(&report), &Failure::timeout());
    assert_eq!(
        (report.stdout.len(), report.stderr.len()),
        (MAX_LOG, MAX_LOG)
    );
}

#[tokio::test]
async fn results_have_a_limit() {
    need_python!();
    let most = python(&format!("result = b'x' * {MAX_OUTPUT}")).await;
    assert_eq!(most.result.unwrap().len(), MAX_OUTPUT);
    let over = python(&format!("result = 'x' * {}", MAX_OUTPUT + 1)).await;
    let message = format!(
        "the result takes {} bytes, the limit is {MAX_OUTPUT}",
        MAX_OUTPUT + 1
    );
    assert_eq!(
        failure(&over),
        &Failure::new(FailureKind::Permanent, message)
    );
    let most = python(&format!("print('x' * {MAX_OUTPUT}, end='')")).await;
    assert_eq!(most.result.unwrap().len(), MAX_OUTPUT);
    let over = python(&format!("print('x' * {MAX_OUTPUT})")).await;
    let expected = format!(
        "the script printed {} bytes, the limit of a result is {MAX_OUTPUT}",
        MAX_OUTPUT + 1
    );
    assert!(
        failure(&over).message.starts_with(&expected),
        "{:?}",
        over.result
    );
}

#[tokio::test]
async fn modules_of_the_standard_library_work_as_in_any_script() {
    need_python!();
    let text = "import multiprocessing, pickle, subprocess, sys, threading
class Pair:
    def __init__(self, a): self.a = a
def double(x): return 2 * x
assert pickle.loads(pickle.dumps(Pair(3))).a == 3
assert sys.argv == ['script.py'], sys.argv
with multiprocessing.get_context('fork').Pool(2) as pool:
    doubled = pool.map(double, [1, 2, 3])
said = subprocess.run(['cat'], input=b'cat', capture_output=True).stdout.decode()
thread = threading.Thread(target=lambda: print('from a thread'))
thread.start()
result = [doubled, said]";
    let report = python(text).await;
    assert_eq!(output(&report), r#"[[2,4,6],"cat"]"#);
    assert_eq!(
        (
            &report.stdout[..],
            String::from_utf8_lossy(&report.stderr).as_ref()
        ),
        (&b"from a thread\n"[..], "")
    );
}
