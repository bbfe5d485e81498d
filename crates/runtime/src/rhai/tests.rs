//! Tests of limits, which are small here, and of the stack. Behaviour of scripts is tested from outside.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use rhai::{Array, Dynamic, Map, Scope};

use super::engine::{self, Limits};
use super::{error, value};

/// Limits that a loop reaches at once.
const SMALL: Limits = Limits {
    operations: 100_000,
    calls: 20,
    depth: 30,
    variables: 20,
    functions: 10,
    text: 1000,
    elements: 200,
    entries: 100,
};

/// Returns the error of a script at a limit.
fn refused(script: &str) -> String {
    let engine = engine::new(&SMALL, &Arc::new(AtomicBool::new(false)));
    let said = match engine.eval::<Dynamic>(script) {
        Ok(value) => panic!("{script} gave {value}"),
        Err(error) => error.to_string(),
    };
    // The position does not matter here.
    said.split(" (line").next().unwrap_or_default().to_owned()
}

#[track_caller]
fn all_refused(message: &str, scripts: &[&str]) {
    for script in scripts {
        assert_eq!(refused(script), message, "{script}");
    }
}

#[test]
fn every_limit_holds() {
    all_refused(
        "Too many operations",
        &["loop {}", "let x = 0; while true { x += 1; }"],
    );
    let recursion = [
        "fn f() { f() } f()",
        "fn f(g) { g.call(g) } f(f)",
        "fn f(x) { [x].map(f) } f(1)",
    ];
    for script in recursion {
        assert!(refused(script).contains("Stack overflow"), "{script}");
    }
    all_refused(
        "Length of string too large",
        &[
            "let s = \"a\"; loop { s += s; }",
            "let s = \"a\"; loop { s = s + s; }",
            "let s = \"a\"; loop { s = `${s}${s}`; }",
            "let s = \"\"; s.pad(1_000_000_000_000, 'a');",
        ],
    );
    all_refused(
        "Size of array/BLOB too large",
        &[
            "let a = []; loop { a.push(0); }",
            "let a = [0]; loop { a += a; }",
            "let a = []; a.pad(1_000_000_000_000, 0);",
            "blob(1_000_000_000_000)",
        ],
    );
    all_refused(
        "Size of object map too large",
        &["let m = #{}; for i in 0..1000 { m.set(`${i}`, i); }"],
    );
}

#[test]
fn a_script_has_only_so_many_names() {
    let variables: String = (0..30).map(|n| format!("let v{n} = {n};")).collect();
    let functions: String = (0..30).map(|n| format!("fn f{n}() {{}}")).collect();
    assert_eq!(refused(&variables), "Too many variables defined");
    assert_eq!(
        refused(&functions),
        "Syntax error: Number of functions defined exceeds maximum limit"
    );
}

/// Functions with large results check the limits before they allocate.
#[test]
fn what_multiplies_counts_first() {
    const TEXT: &str = "let s = \"\"; s.pad(900, 'a'); let t = s;";
    for (script, message) in [
        ("s.replace(\"a\", t)", "Length of string"),
        ("s.replace('a', t)", "Length of string"),
        ("s.replace(\"\", t)", "Length of string"),
        ("s.split(\"\")", "Size of array"),
        ("s.split('a')", "Size of array"),
        ("s.split(\"a\", 500)", "Size of array"),
        ("s.split('a', 500)", "Size of array"),
        ("s.split_rev(\"\")", "Size of array"),
        ("s.split_rev('a')", "Size of array"),
        ("s.split_rev(\"a\", 500)", "Size of array"),
        ("s.split_rev('a', 500)", "Size of array"),
        ("s.to_chars()", "Size of array"),
    ] {
        let said = refused(&format!("{TEXT} {script}"));
        assert_eq!(said, format!("{message} too large"), "{script}");
    }
}

/// Within the limits they behave as Rhai's own functions.
#[test]
fn what_multiplies_does_the_same_as_ever() {
    let ours = engine::new(&SMALL, &Arc::new(AtomicBool::new(false)));
    let standard = rhai::Engine::new();
    for text in ["", "a", " a b ", "a,b,,c,", "aaa", "äöü"] {
        for call in [
            "split()",
            "split(\",\")",
            "split(\"\")",
            "split(',')",
            "split('a')",
            "split(\"a\", 2)",
            "split(',', 2)",
            "split(\",\", 0)",
            "split(',', -1)",
            "split_rev(\",\")",
            "split_rev('a')",
            "split_rev(\",\", 2)",
            "split_rev(',', 2)",
            "split_rev(\"\")",
            "to_chars()",
            "split(1)",
            "to_blob().to_array()",
        ] {
            let script = format!("let t = \"{text}\"; t.{call}");
            let [ours, standard] = [&ours, &standard]
                .map(|e| e.eval::<Array>(&script).map(|a| format!("{a:?}")).unwrap());
            assert_eq!(ours, standard, "{script}");
        }
        for with in [
            "\"b\", \"cd\"",
            "\"\", \"-\"",
            "'a', \"xy\"",
            "\"a\", \"\"",
            "'a', 'b'",
        ] {
            let script = format!("let t = \"{text}\"; t.replace({with}); t");
            let [ours, standard] = [&ours, &standard].map(|e| e.eval::<String>(&script).unwrap());
            assert_eq!(ours, standard, "{script}");
        }
    }
}

/// The limits of sizes bound the nesting of all kinds of values, and so the stack.
#[test]
fn nesting_is_bound_by_size() {
    all_refused(
        "Size of array/BLOB too large",
        &[
            "let a = []; loop { a = [a]; }",
            "let a = []; loop { a = [take(a)]; }",
            "let a = []; loop { let b = []; b.push(a); a = b; }",
            "let a = []; loop { let b = [0]; b[0] = a; a = b; }",
            "let a = []; loop { let b = [0]; b.set(0, a); a = b; }",
            "let a = []; loop { let b = [0]; b.insert(0, a); a = b; }",
            "let a = []; loop { let b = []; b += [a]; a = b; }",
            "let a = []; loop { a = [a].map(|x| x); }",
            "fn nest() { loop { this = [this]; } } let a = []; a.nest()",
            "fn nest(a) { [a] } let a = []; loop { a = nest(a); }",
            "let a = []; a.pad(150, 0); a.reduce(|sum, x| [[sum, x]], [])",
        ],
    );
    all_refused(
        "Size of object map too large",
        &[
            "let a = #{}; loop { a = #{a: a}; }",
            "let a = #{}; loop { let b = #{}; b.a = take(a); a = b; }",
            "let a = #{}; loop { let b = #{}; b[\"a\"] = a; a = b; }",
            "let a = #{}; loop { let b = #{}; b.set(\"a\", a); a = b; }",
            "let a = #{}; loop { let b = #{}; b += #{a: a}; a = b; }",
            "let a = #{}; loop { a = #{a: [a]}; }",
        ],
    );
}

/// A tenth of the deepest value within the limits fits on a tenth of the stack.
#[test]
fn the_stack_holds_the_deepest_value() {
    const SHARE: usize = 10;
    let limits = Limits::for_input(0);
    let stack = limits.stack() / SHARE;
    let run = move || {
        let deep = || {
            let arrays =
                (0..limits.elements / SHARE - 2).fold(Dynamic::UNIT, |inner, _| vec![inner].into());
            (0..limits.entries / SHARE)
                .fold(arrays, |inner, _| Map::from([("a".into(), inner)]).into())
        };
        let mut scope = Scope::new();
        scope.push("a", deep()).push("b", deep());
        let mut engine = engine::new(&limits, &Arc::new(AtomicBool::new(false)));
        engine.on_print(|_| {});
        for script in [
            "a.to_debug().len() > 1_000",
            "`${a}`.len() > 1_000",
            "print(a); true",
            "let c = a; c.set(\"x\", 1); c.len() == 2",
            "[a, b].len() == 2",
            "switch a { 1 => false, _ => true }",
        ] {
            let done = engine.eval_with_scope::<bool>(&mut scope, script);
            assert!(done.unwrap(), "{script}");
        }
        for script in ["a == b", "a != b", "[a].contains(b)", "[a] == [b]"] {
            let error = engine.eval_with_scope::<bool>(&mut scope, script);
            let error = error.unwrap_err().to_string();
            assert!(error.contains("nest deeper than 1000"), "{script}: {error}");
        }
        let error = engine.eval_with_scope::<()>(&mut scope, "throw a");
        let failure = error::runtime(&error.unwrap_err(), "throw a", &engine);
        assert!(failure.message.contains("nests deeply"), "{failure:?}");
        let copy = engine.eval_with_scope::<Dynamic>(&mut scope, "a").unwrap();
        assert_eq!(value::output(copy), Err(value::OutputError::TooDeep));
    };
    let thread = thread::Builder::new().stack_size(stack);
    thread.spawn(run).unwrap().join().unwrap();
}

/// Text and comparison of values that do not nest deeply are those of Rhai.
#[test]
fn nested_values_are_printed_and_compared_as_ever() {
    let ours = engine::new(&SMALL, &Arc::new(AtomicBool::new(false)));
    let mut standard = rhai::Engine::new();
    // The optimizer prints constants in another way.
    standard.set_optimization_level(rhai::OptimizationLevel::None);
    let values = [
        "[]",
        "#{}",
        "[1, \"a\\n\", 'x', (), 2.0, [true]]",
        "#{a: 1, \"b c\": [#{d: ()}]}",
        "[1..3, Fn(\"f\"), blob(2, 65)]",
        "[[[]]]",
    ];
    for value in values {
        let texts = [
            format!("{value}.to_string()"),
            format!("{value}.to_debug()"),
            format!("`${{{value}}}`"),
            format!("({value} + \"\").to_string()"),
        ];
        for script in texts {
            let [ours, standard] = [&ours, &standard].map(|e| e.eval::<String>(&script).ok());
            assert_eq!(ours, standard, "{script}");
        }
        for other in values {
            for script in [
                format!("{value} == {other}"),
                format!("{value} != {other}"),
                format!("[{value}, 1].contains({other})"),
                format!("[{value}] == [1]"),
            ] {
                let [ours, standard] = [&ours, &standard]
                    .map(|e| e.eval::<bool>(&script).map_err(|error| error.to_string()));
                assert_eq!(ours, standard, "{script}");
            }
        }
    }
}

/// The deepest script and the deepest calls fit on the stack.
#[test]
fn the_stack_holds_the_deepest_script() {
    let limits = Limits::for_input(0);
    let half = meshwork_model::job::limits::MAX_SCRIPT / 2;
    let nested = |open: &str, middle: &str, close: &str| {
        let times = half / open.len().max(close.len());
        format!("{}{middle}{}", open.repeat(times), close.repeat(times))
    };
    let scripts = [
        nested("(", "1", ")"),
        nested("[", "", "]"),
        nested("#{a:", "1", "}"),
        nested("{", "", "}"),
        nested("if true {", "", "}"),
        nested("`${", "1", "}`"),
        nested("f(", "1", ")"),
        nested("switch 1 { 1 => ", "1", "}"),
        nested("!", "true", ""),
        nested("1+", "1", ""),
        nested("true&&", "true", ""),
        nested("a.", "b", ""),
        nested("if false {} else ", "{}", ""),
        nested("", "a", "[0]"),
        nested("", "a", ".b()"),
        format!(
            "fn f(n) {{ {}f(n + 1){} }} f(0)",
            "[".repeat(60),
            "]".repeat(60)
        ),
        format!(
            "fn f(n) {{ {}f(n + 1){} }} f(0)",
            "if true {".repeat(60),
            "}".repeat(60)
        ),
        "fn f(n) { [n].map(|x| [x].map(|y| f(y + 1))) } f(0)".to_owned(),
    ];
    let run = move || {
        let engine = engine::new(&limits, &Arc::new(AtomicBool::new(false)));
        for script in &scripts {
            let error = engine.eval::<Dynamic>(script).unwrap_err().to_string();
            let start: String = script.chars().take(60).collect();
            assert!(
                error.contains("exceeds maximum complexity") || error.contains("Stack overflow"),
                "{start}: {error}"
            );
        }
    };
    thread::Builder::new()
        .stack_size(Limits::for_input(0).stack())
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

/// Rhai does not count an array again when an element is set.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_script_that_hoards_is_cut() {
    use super::memory::Limits;
    use super::{Job, Rhai, Run, Runtime};
    use tokio::time::{Duration, Instant};
    let limits = |each, all| Rhai {
        memory: Limits { each, all },
    };
    let text = "let a = []; a.pad(50_000, 0); let s = \"\"; s.pad(1_000_000, 'x');
        for i in 0..a.len() { a[i] = s + i; }";
    for (runtime, message) in [
        (
            limits(256 << 20, u64::MAX),
            "the script took more than 256 MiB of memory",
        ),
        (
            limits(u64::MAX, 256 << 20),
            "the scripts of this worker took more than 256 MiB of memory, this one the most",
        ),
    ] {
        let job = Job::from_fields("job-1", [("script".to_owned(), text.into())]);
        let deadline = Instant::now() + Duration::from_secs(60);
        let run = Run::new(Arc::new(job), deadline);
        let failure = runtime.run(run).await.result.unwrap_err();
        assert_eq!(failure.message, message);
    }
}

#[test]
fn the_version_is_that_of_the_lock_file() {
    let lock = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"rhai\"\nversion = \"{}\"", super::VERSION);
    assert!(lock.contains(&entry), "{entry}");
}
