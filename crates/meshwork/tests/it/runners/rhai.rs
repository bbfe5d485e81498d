//! Rhai scripts.

use std::time::{Duration, Instant};

use meshwork::runtime::{StopReason, builtin};
use meshwork_model::job::limits::{MAX_INPUT, MAX_LOG, MAX_OUTPUT, MAX_SCRIPT};
use meshwork_model::outcome::{Failure, FailureKind, Report};

use super::support::{ENDLESS, failure, job, output, run, run_of, run_with, script, within};

async fn osis(text: &str) -> Report {
    run("osis", script(text)).await
}

async fn osis_with(text: &str, input: &[u8]) -> Report {
    run(
        "osis",
        job(&[("script", text.as_bytes()), ("mw_input", input)]),
    )
    .await
}

#[tokio::test]
async fn the_last_expression_is_the_result() {
    for (text, expected) in [
        ("40 + 2", "42"),
        ("\"as it is, ä\"", "as it is, ä"),
        ("let x = 1;", ""),
        ("()", ""),
        ("1.5", "1.5"),
        ("2.0", "2.0"),
        ("true", "true"),
        ("'x'", "\"x\""),
        ("[1, \"a\\n\\\"\", (), [2.5]]", r#"[1,"a\n\"",null,[2.5]]"#),
        (
            "#{b: 1, a: #{c: 'ä'}, `x y`: []}",
            r#"{"a":{"c":"ä"},"b":1,"x y":[]}"#,
        ),
        ("return 5; 6", "5"),
        ("exit(\"early\"); 6", "early"),
        ("let b = blob(3, 65); b", "AAA"),
    ] {
        let text = text.replace("`x y`", "\"x y\"");
        assert_eq!(output(&osis(&text).await), expected, "{text}");
    }
}

#[tokio::test]
async fn a_value_without_a_form_is_refused_by_name() {
    for (text, message) in [
        (
            "[Fn(\"f\")]",
            "the result contains a Fn, which JSON has no form for",
        ),
        (
            "0..5",
            "the result contains a Range, which JSON has no form for",
        ),
        (
            "[blob(1)]",
            "the result contains a blob, which JSON has no form for",
        ),
        (
            "1.0 / 0.0",
            "the result contains inf, which is no number in JSON",
        ),
        (
            "let a = 1; for i in 0..200 { a = [a]; } a",
            "the result nests deeper than 100 levels",
        ),
    ] {
        let report = osis(text).await;
        assert!(
            failure(&report).message.starts_with(message),
            "{:?}",
            report.result
        );
    }
}

#[tokio::test]
async fn what_a_script_knows() {
    let fields: &[(&str, &[u8])] = &[
        (
            "script",
            b"fn all() { `${CALLER_ID} ${CONTEXT_ID} ${JOB_ID} ${INPUT} ${ENV.CITY}` } all()",
        ),
        ("caller_id", b"alice"),
        ("context_id", b"shop"),
        ("mw_input", "größe".as_bytes()),
        ("env_vars", br#"{"CITY": "Ghent"}"#),
    ];
    assert_eq!(
        output(&run("osis", job(fields)).await),
        "alice shop job-1 größe Ghent"
    );
    assert_eq!(output(&osis("type_of(INPUT) + ENV.len()").await), "()0");
    let changed = osis("CALLER_ID = \"bob\"").await;
    assert!(
        failure(&changed)
            .message
            .starts_with("Cannot modify constant CALLER_ID")
    );
}

#[tokio::test]
async fn input_is_text_or_else_a_blob() {
    assert_eq!(
        output(&osis_with("INPUT.len()", "äö".as_bytes()).await),
        "2"
    );
    assert_eq!(output(&osis_with("type_of(INPUT)", b"").await), "string");
    let bytes = b"\xff\x00ab";
    assert_eq!(
        output(&osis_with("`${type_of(INPUT)} ${INPUT.len()} ${INPUT[0]}`", bytes).await),
        "blob 4 255"
    );
    assert_eq!(osis_with("INPUT", bytes).await.result.unwrap(), bytes);
    // More than an array may hold, and still readable.
    let large = vec![0xff; 300_000];
    let text = "let count = 0; for byte in INPUT { count += 1; } `${INPUT.len()} ${count} ${INPUT[299_999]}`";
    assert_eq!(output(&osis_with(text, &large).await), "300000 300000 255");
}

#[tokio::test]
async fn the_largest_input_can_be_used() {
    let text = "a line of text\n".repeat(MAX_INPUT / 15 + 1);
    let input = &text.as_bytes()[..MAX_INPUT];
    let report = osis_with("INPUT + \"!\"", input).await;
    assert_eq!(
        failure(&report).message.split(':').next(),
        Some("the result takes more than 16777216 bytes, which is the limit")
    );
    let report = osis_with("print(INPUT); `${INPUT}!`.len()", input).await;
    assert_eq!(output(&report), (MAX_INPUT + 1).to_string());
    assert_eq!(report.stdout.len(), MAX_LOG);
}

#[tokio::test]
async fn the_largest_result_is_handed_over() {
    let report = osis_with("INPUT", &vec![b'x'; MAX_OUTPUT]).await;
    assert_eq!(report.result.unwrap().len(), MAX_OUTPUT);
}

#[tokio::test]
async fn print_and_debug_are_stdout_and_stderr() {
    let report = osis("print(1); debug(\"two\"); print(\"three\"); throw \"four\"").await;
    assert_eq!(report.stdout, b"1\nthree\n");
    assert_eq!(report.stderr, b"\"two\"\n");
    assert!(report.result.is_err());
}

#[tokio::test]
async fn an_endless_printer_keeps_only_the_end() {
    let runner = builtin("osis").unwrap();
    let text = "let i = 0; loop { print(`line ${i}`); debug(i); i += 1; }";
    let report = run_with(&*runner, script(text), Duration::from_secs(2)).await;
    assert_eq!(failure(&report), &Failure::timeout());
    assert_eq!(
        (report.stdout.len(), report.stderr.len()),
        (MAX_LOG, MAX_LOG)
    );
    assert!(report.stdout.ends_with(b"\n"));
}

#[tokio::test]
async fn an_error_comes_back_whole() {
    let text =
        "fn inner(x) {\n    throw `bad ${x}`;\n}\nfn outer(y) {\n    inner(y);\n}\n\nouter(7);\n";
    let report = osis(text).await;
    let failure = failure(&report);
    assert_eq!(failure.kind, FailureKind::Script);
    assert_eq!(failure.message, "Runtime error: bad 7 (line 2, position 5)");
    let traceback = "Traceback (most recent call last):
  line 8, position 1
    outer(7);
  line 5, position 5, in outer
    inner(y);
  line 2, position 5, in inner
    throw `bad ${x}`;";
    assert_eq!(failure.traceback.as_deref(), Some(traceback));
}

#[tokio::test]
async fn what_is_thrown_is_readable() {
    for (text, message) in [
        (
            "throw #{code: 5, why: \"x\"}",
            "Runtime error: #{\"code\": 5, \"why\": \"x\"} (line 1, position 1)",
        ),
        ("throw", "Runtime error (line 1, position 1)"),
        ("throw 42", "Runtime error: 42 (line 1, position 1)"),
        (
            "missing + 1",
            "Variable not found: missing (line 1, position 1)",
        ),
        (
            "[1][5]",
            "Array index 5 out of bounds: only 1 element in array (line 1, position 5)",
        ),
        ("1 / 0", "Division by zero: 1 / 0 (line 1, position 3)"),
    ] {
        assert_eq!(failure(&osis(text).await).message, message);
    }
}

#[tokio::test]
async fn a_script_that_cannot_be_read_fails_for_good() {
    let report = osis("let a = 1;\nlet b = ;").await;
    let expected = failure(&report);
    assert_eq!(expected.kind, FailureKind::Permanent);
    assert_eq!(
        expected.message,
        "Syntax error: Unexpected ';' (line 2, position 9)"
    );
    assert_eq!(
        expected.traceback.as_deref(),
        Some("Traceback (most recent call last):\n  line 2, position 9\n    let b = ;")
    );
    let report = run("osis", job(&[("script", b"\xff1 + 1")])).await;
    let expected = Failure::new(FailureKind::Permanent, "the script is not UTF-8 text");
    assert_eq!(failure(&report), &expected);
    let report = osis(&" ".repeat(MAX_SCRIPT + 1)).await;
    let message = "the script takes 1048577 bytes, the limit is 1048576";
    assert_eq!(
        failure(&report),
        &Failure::new(FailureKind::Permanent, message)
    );
}

#[tokio::test]
async fn there_is_no_way_out() {
    for (text, said) in [
        (
            "import \"/etc/passwd\" as p;",
            "'import' is a reserved keyword",
        ),
        ("eval(\"1 + 1\")", "'eval' is disabled"),
        ("Fn(\"eval\").call(\"1\")", "'eval' is a reserved keyword"),
        ("sleep(1)", "`sleep` is not available"),
        ("sleep(0.1)", "`sleep` is not available"),
        ("1.sleep()", "`sleep` is not available"),
        ("Fn(\"sleep\").call(1)", "`sleep` is not available"),
        ("let f = |x| x; f.curry(1)", "name of a property"),
        (
            "let min = 1; [1, 2].filter(|x| x > min)",
            "Variable not found: min",
        ),
        ("open(\"/etc/passwd\")", "Function not found: open"),
    ] {
        let report = osis(text).await;
        assert!(
            failure(&report).message.contains(said),
            "{text}: {:?}",
            report.result
        );
    }
}

#[tokio::test]
async fn memory_bombs_and_recursion_end_as_failures() {
    for (text, said) in [
        (
            "let s = \"x\"; loop { s += s; }",
            "Length of string too large",
        ),
        (
            "let s = \"x\"; s.pad(4_000_000, \"x\"); let t = s; s.replace(\"x\", t);",
            "Length of string too large",
        ),
        (
            "let a = [0]; loop { a += a; }",
            "Size of array/BLOB too large",
        ),
        (
            "let a = []; a.pad(1_000_000_000, 0);",
            "Size of array/BLOB too large",
        ),
        ("fn f(n) { f(n + 1) } f(0)", "Stack overflow"),
    ] {
        let report = osis(text).await;
        assert!(
            failure(&report).message.contains(said),
            "{text}: {:?}",
            report.result
        );
    }
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let report = osis(&deep).await;
    assert!(
        failure(&report)
            .message
            .contains("exceeds maximum complexity")
    );
}

#[tokio::test]
async fn an_endless_loop_ends_at_its_deadline() {
    let runner = builtin("osis").unwrap();
    for text in [
        "loop {}",
        "print(\"begun\"); let a = []; a.pad(50_000, 0); loop { a.push(1); a.pop(); }",
    ] {
        let began = Instant::now();
        let report = run_with(&*runner, script(text), Duration::from_millis(300)).await;
        assert_eq!(failure(&report), &Failure::timeout());
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?}",
            began.elapsed()
        );
    }
}

#[tokio::test]
async fn a_script_ends_when_it_is_stopped() {
    let runner = builtin("osis").unwrap();
    let (run, stop) = run_of(script("loop {}"), ENDLESS);
    let task = tokio::spawn(async move { runner.run(run).await });
    stop.stop(StopReason::Lost);
    assert!(within(task).await.unwrap().result.is_err());
}

#[tokio::test]
async fn many_scripts_run_at_once() {
    let runner = builtin("osis").unwrap();
    let runs = (0..50).map(|n| {
        let (run, stop) = run_of(
            script(&format!("let s = 0; for i in 0..1000 {{ s += {n}; }} s")),
            Duration::from_secs(60),
        );
        let report = runner.run(run);
        async move {
            let _stop = stop;
            report.await
        }
    });
    let reports = within(futures_util::future::join_all(runs)).await;
    for (n, report) in reports.iter().enumerate() {
        assert_eq!(output(report), (n * 1000).to_string());
    }
}

/// Lines that editors and systems add before a script: the rest keeps its line numbers.
#[tokio::test]
async fn a_first_line_for_the_system_and_a_mark_of_an_editor_are_skipped() {
    for (text, result) in [
        ("#!/usr/bin/env herodo\n40 + 2", "42"),
        ("\u{feff}#!/usr/bin/env herodo\r\n40 + 2", "42"),
        ("\u{feff}40 + 2", "42"),
    ] {
        assert_eq!(output(&osis(text).await), result, "{text:?}");
        let checked = meshwork::runtime::check("osis", text.as_bytes()).await;
        assert_eq!(checked, Ok(()), "{text:?}");
    }
    let report = osis("#!/usr/bin/env herodo\n\nthrow \"no\"").await;
    let message = &failure(&report).message;
    assert!(message.contains("line 3"), "{message}");
}

#[tokio::test]
async fn a_value_as_large_as_an_input_is_no_limit() {
    let records: Vec<_> = (0..11_000)
        .map(|id| format!(r#"{{"id":{id},"a":1,"b":[2]}}"#))
        .collect();
    let records = format!("[{}]", records.join(","));
    let lines = "12345\n".repeat(1_100_000);
    let blob = vec![0xff; 1_100_000];
    for (text, input, result) in [
        (
            "let all = parse_json(INPUT); all.push(1); all.len()",
            records.as_bytes(),
            "11001",
        ),
        ("INPUT.split(\"\\n\").len()", lines.as_bytes(), "1100001"),
        ("let b = INPUT; b.push(1); b.len()", &blob, "1100001"),
        (
            "let s = \"\"; s.pad(16_000_000, 'x'); s.len()",
            b"",
            "16000000",
        ),
    ] {
        assert_eq!(output(&osis_with(text, input).await), result, "{text}");
    }
}

#[tokio::test]
async fn an_exceeded_limit_is_named() {
    for (text, part) in [
        (
            "let s = \"x\"; loop { s += s; }",
            "the limit is 16777216 bytes of text in one value (line",
        ),
        (
            "blob(1_000_001)",
            "the limit is 1000000 elements of arrays and bytes of blobs in one value",
        ),
        (
            "let f = 0; fn f(n) { f(n + 1) } f(0)",
            "Stack overflow: calls nest deeper than 128 (line",
        ),
        (
            "fn f() { f() } f()",
            "Stack overflow: calls nest deeper than 128 (line",
        ),
    ] {
        let report = osis(text).await;
        let message = &failure(&report).message;
        assert!(message.contains(part), "{text}: {message}");
    }
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (text, part) in [
        (deep.as_str(), "it nests deeper than 128 levels (line"),
        ("import \"helper\" as h;", "a script is one file"),
    ] {
        let message = failure(&osis(text).await).message.clone();
        assert!(message.contains(part), "{message}");
        let checked = meshwork::runtime::check("osis", text.as_bytes()).await;
        let message = checked.unwrap_err().to_string();
        assert!(
            message.contains(part.trim_end_matches(" (line")),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_script_can_catch_calls_that_nest_too_deeply() {
    let text = "fn depth(n) { try { return depth(n + 1); } catch { return n; } } depth(1) >= 127";
    assert_eq!(output(&osis(text).await), "true");
    let text =
        "fn f(n) { f(n + 1) } let said = (); try { f(0); } catch (e) { said = `${e}`; } said";
    let said = osis(text).await;
    assert!(
        output(&said).contains("calls nest deeper than 128"),
        "{said:?}"
    );
    let report = osis("fn f(n) { f(n + 1) }\nf(0)").await;
    let traceback = failure(&report).traceback.clone().unwrap();
    assert!(
        traceback.contains("more calls") && traceback.lines().count() < 60,
        "{traceback}"
    );
}

#[cfg(feature = "sal")]
#[tokio::test]
async fn a_function_of_sal_names_the_type_of_its_scripts() {
    for text in ["file_read(\"a\")", "run(\"ls\").silent().execute()"] {
        let report = osis(text).await;
        let message = &failure(&report).message;
        assert!(
            message.contains("is a function of SAL") && message.contains("`--type sal`"),
            "{message}"
        );
    }
    let report = osis("nowhere()").await;
    let message = &failure(&report).message;
    assert!(!message.contains("SAL"), "{message}");
}
