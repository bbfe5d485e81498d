//! Options of `job enqueue` that `--jsonl` would ignore: each of clap's table changes the jobs, or is refused.

use std::fs;
use std::path::Path;

use clap::{Args, Command, FromArgMatches};
use meshwork_model::job::NewJob;

use super::submit::Submit;
use crate::args::script::Script;

/// Options that say where the jobs and their script are.
const SOURCES: [&str; 4] = ["script", "args", "jsonl", "require_worker"];

/// A value for each option with one, after the options that it requires.
const VALUES: [(&str, &[&str]); 38] = [
    ("script_type", &["--type", "python"]),
    ("group", &["--group", "g"]),
    ("route", &["--route", "r"]),
    ("env", &["--env", "A=1"]),
    ("timeout", &["--timeout", "5"]),
    ("start_timeout", &["--start-timeout", "5s"]),
    ("retries", &["--retries", "3"]),
    ("backoff", &["--backoff", "2"]),
    ("priority", &["--priority", "high"]),
    ("tags", &["--tag", "t"]),
    ("depends_on", &["--depends-on", "a"]),
    (
        "on_failure",
        &["--depends-on", "a", "--on-failure", "continue"],
    ),
    (
        "prerequisite_timeout",
        &["--depends-on", "a", "--prerequisite-timeout", "9"],
    ),
    ("exclusive", &["--exclusive"]),
    ("check", &["--check"]),
    ("sandbox", &["--sandbox", "strict"]),
    ("limit_memory", &["--memory", "1G"]),
    ("limit_cpu", &["--cpu", "5s"]),
    ("limit_processes", &["--processes", "9"]),
    ("limit_files", &["--files", "99"]),
    ("limit_disk", &["--disk", "1M"]),
    ("limit_output", &["--output", "1M"]),
    ("traceparent", &["--traceparent", PARENT]),
    (
        "tracestate",
        &["--traceparent", PARENT, "--tracestate", "a=b"],
    ),
    ("instance", &["--instance", "i"]),
    ("fallback", &["--instance", "i", "--fallback", "type"]),
    ("input", &["--input", "1"]),
    ("caller_id", &["--caller-id", "c"]),
    ("context_id", &["--context-id", "c"]),
    ("log_path", &["--log-path", "l"]),
    ("at", &["--at", "2099-01-01"]),
    ("delay", &["--delay", "5s"]),
    ("key", &["--key", "k"]),
    ("unique", &["--unique", "u"]),
    ("unique_for", &["--unique", "u", "--unique-for", "5s"]),
    (
        "unique_until",
        &["--unique", "u", "--unique-until", "started"],
    ),
    (
        "on_duplicate",
        &["--unique", "u", "--on-duplicate", "refuse"],
    ),
    ("batch", &["--batch", "b"]),
];

/// Further values, of options that read files or end the command.
const MORE: [(&str, &[&str]); 8] = [
    ("tz", &["--at", "2099-01-01", "--tz", "Asia/Kathmandu"]),
    ("debounce", &["--debounce", "n=5s"]),
    ("throttle", &["--throttle", "n=5s"]),
    ("bindings", &["--bindings", "bindings.yaml"]),
    ("topic", &["--topic", "t"]),
    ("wait", &["--wait"]),
    ("payload", &["--type", "t", "--payload", "1"]),
    ("id", &["--id", "i"]),
];

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn table() -> Command {
    Submit::augment_args(Command::new("enqueue"))
}

/// Returns the job of a line with only an id, or the reason why the options are refused.
fn job(dir: &Path, options: &[String]) -> Result<NewJob, String> {
    let script = dir.join("a.rhai");
    let mut words = vec!["enqueue".to_owned(), script.display().to_string()];
    words.extend(["--jsonl".to_owned(), "-".to_owned()]);
    words.extend_from_slice(options);
    let matches = table().try_get_matches_from(words);
    let matches = matches.map_err(|error| error.to_string())?;
    let submit = Submit::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let script_type = matches.get_one("script_type").cloned();
    let script = Script::read(&script, script_type).map_err(|error| error.to_string())?;
    submit.all(Some(script)).job(br#"{"id":"x"}"#)
}

#[test]
fn no_option_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.rhai"), "1").unwrap();
    let bindings = dir.path().join("bindings.yaml");
    fs::write(&bindings, "bindings:\n  - {route: r, name: osis}\n").unwrap();
    let values: Vec<_> = VALUES.into_iter().chain(MORE).collect();
    let mut seen = 0;
    for option in table()
        .get_arguments()
        .filter(|it| it.get_long() != Some("help"))
    {
        let id = option.get_id().as_str();
        if SOURCES.contains(&id) {
            continue;
        }
        let value = values.iter().find(|(name, _)| *name == id);
        let (_, words) = value.unwrap_or_else(|| panic!("give a value for {id}"));
        let path = |word: &&str| match *word {
            "bindings.yaml" => bindings.display().to_string(),
            word => word.to_owned(),
        };
        let words: Vec<_> = words.iter().map(path).collect();
        let own = words.iter().rposition(|word| word.starts_with("--"));
        let (required, _) = words.split_at(own.unwrap_or_default());
        let (without, with) = (job(dir.path(), required), job(dir.path(), &words));
        let without = without.unwrap_or_else(|refusal| panic!("{id}: {refusal}"));
        assert!(
            with.is_err() || with.as_ref() != Ok(&without),
            "--jsonl ignores {id}"
        );
        seen += 1;
    }
    assert_eq!(seen, values.len(), "a value of an option that there is not");
}
