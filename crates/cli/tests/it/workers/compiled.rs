//! Scripts that a compiler makes programs of: V.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use meshwork_test_servers::servers::need_program;
use serde_json::Value;

use crate::common::{Done, Ground, Running, eventually, json};

/// A compiler that writes a shell script, counts its calls in a file, and refuses what names `nowhere`.
const COMPILER: &str = r#"#!/bin/sh
if [ "$1" = version ]; then
  echo "V $(cat "FOLDER/version")"
  exit
fi
echo compiled >> "FOLDER/calls"
while [ "$1" != -o ]; do shift; done
if grep -n nowhere "$3" > /dev/null; then
  echo "$3:2:9: error: undefined ident: \`nowhere\`" >&2
  exit 1
fi
{ echo '#!/bin/sh'; grep -v '^module' "$3"; } > "$2"
"#;

/// Runs the command with a compiler of V and a cache of its own.
fn run_v(ground: &Ground, args: &[&str], compiler: &Path) -> Done {
    let mut command = ground.command(&[&["run"], args].concat());
    command
        .env("MESHWORK_V", compiler)
        .env("MESHWORK_CACHE", ground.path("cache"));
    Running::start(command).ended()
}

fn compiler(ground: &Ground) -> PathBuf {
    let folder = ground.path("compiler");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("version"), "0.5.1 abc").unwrap();
    let path = folder.join("v");
    fs::write(
        &path,
        COMPILER.replace("FOLDER", &folder.display().to_string()),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn calls(ground: &Ground) -> usize {
    let calls = fs::read_to_string(ground.path("compiler/calls")).unwrap_or_default();
    calls.lines().count()
}

/// Returns the record of a failed run, which used one attempt.
fn failed(done: Done) -> Value {
    let record = done.exits(1).json();
    assert_eq!(record["attempts"], 1, "{record}");
    record
}

#[test]
fn a_program_is_compiled_once_for_a_source_and_a_compiler() {
    let ground = Ground::embedded().unwrap();
    let compiler = compiler(&ground);
    ground.file("a.v", "module main\nread -r line; echo \"$line from V\"\n");
    for _ in 0..2 {
        let done = run_v(&ground, &["a.v", "--input", "\"hello\""], &compiler);
        assert_eq!(done.ok().stdout, "\"hello\" from V\n");
    }
    assert_eq!(calls(&ground), 1);
    fs::write(ground.path("compiler/version"), "0.5.2 abc").unwrap();
    run_v(&ground, &["a.v", "--input", "\"hello\""], &compiler).ok();
    assert_eq!(calls(&ground), 2);
    ground.file("a.v", "module main\necho other\n");
    assert_eq!(run_v(&ground, &["a.v"], &compiler).ok().stdout, "other\n");
    assert_eq!(calls(&ground), 3);
}

#[test]
fn an_error_of_the_compiler_is_permanent_and_has_its_place() {
    let ground = Ground::embedded().unwrap();
    let compiler = compiler(&ground);
    ground.file("a.v", "module main\nprintln(nowhere)\n");
    let record = failed(run_v(
        &ground,
        &["a.v", "--retries", "3", "--json"],
        &compiler,
    ));
    let error = record["error"].as_str().unwrap();
    assert!(
        error.contains("undefined ident: `nowhere` (line 2, column 9)"),
        "{error}"
    );
}

#[test]
fn a_missing_compiler_is_named_and_nothing_is_run() {
    let ground = Ground::embedded().unwrap();
    ground.file("a.v", "println('hello')");
    let done = run_v(&ground, &["a.v", "--retries", "3"], Path::new("/nowhere/v"));
    let said = done.exits(1).stderr;
    assert!(said.contains("no V compiler: `/nowhere/v`"), "{said}");
    assert!(said.contains("No other worker listens"), "{said}");
    for job in ground.jobs() {
        assert_eq!(job["status"], "error", "{job}");
    }
    let mut command = ground.command(&["runtime", "show", "v", "--json"]);
    command.env("MESHWORK_V", "/nowhere/v");
    let shown = Running::start(command).ended().ok().json();
    assert_eq!(
        (&shown["type"], &shown["process"]),
        (&"v".into(), &true.into())
    );
    let missing = shown["missing"].as_str().unwrap();
    assert!(missing.contains("`/nowhere/v`"), "{missing}");
}

#[test]
fn a_compiler_that_disappears_fails_one_job_by_name_and_pauses_the_type() {
    let ground = Ground::embedded().unwrap();
    let compiler = compiler(&ground);
    let mut command = ground.command(&["worker", "--json", "--type", "v", "--concurrency", "1"]);
    command
        .env("MESHWORK_V", &compiler)
        .env("MESHWORK_CACHE", ground.path("cache"));
    let mut worker = Running::start(command);
    assert_eq!(json(&worker.line())["event"], "listening");
    ground.file("a.v", "module main\necho one\n");
    ground.run(&["job", "submit", "a.v", "--id", "a"]).ok();
    ground.run(&["job", "wait", "a"]).ok();
    fs::remove_file(&compiler).unwrap();
    let args = ["job", "submit", "a.v", "--id", "b", "--retries", "3"];
    ground.run(&args).ok();
    ground.run(&["job", "wait", "b"]).exits(1);
    let job = ground.run(&["job", "status", "b", "--json"]).ok().json();
    assert_eq!(job["attempts"], 1, "{job}");
    let error = job["error"].as_str().unwrap();
    assert!(error.contains("no V compiler: `"), "{error}");
    eventually("the list names the fault", || {
        let list = ground.run(&["worker", "list"]).ok().stdout;
        list.contains("paused: no V compiler").then_some(())
    });
    ground.run(&["job", "submit", "a.v", "--id", "c"]).ok();
    let job = ground.run(&["job", "status", "c", "--json"]).ok().json();
    assert_eq!(job["status"], "dispatched", "{job}");
    worker.stop();
}

#[test]
#[ignore = "needs the compiler of V, which no package manager has: run it with --ignored where there is one"]
fn the_real_compiler_compiles_and_names_places() {
    let Some(compiler) = need_program("the_real_compiler_compiles_and_names_places", "v") else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    ground.file("a.v", "import os\nprintln('${os.input(\"\")} from V')\n");
    let done = run_v(&ground, &["a.v", "--input", "hello"], &compiler);
    assert!(done.ok().stdout.contains("hello from V"));
    ground.file("b.v", "fn main() {\n    println(nowhere)\n}\n");
    let record = failed(run_v(
        &ground,
        &["b.v", "--retries", "3", "--json"],
        &compiler,
    ));
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("(line 2, column 13)"), "{error}");
}
