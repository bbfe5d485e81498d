//! The input of a script: what is piped to `meshwork run`, and `--input`.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;

use crate::common::{Done, Ground, Running, on_all_data};
use meshwork_test_servers::servers::{Tool, need};

/// Says its input, and how many characters that has.
const ECHO: &str = "`${INPUT.len()} ${INPUT}`";
/// The largest input, in bytes.
const MAX: usize = 16 * 1024 * 1024;

/// Runs the command with these bytes piped to it.
fn piped(ground: &Ground, args: &[&str], bytes: impl Into<Vec<u8>>) -> Done {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = bytes.into();
    // It may not read to the end.
    let writer = thread::spawn(move || drop(writer.write_all(&bytes)));
    let done = Running::with_stdin(ground.command(args), reader).ended();
    writer.join().unwrap();
    done
}

on_all_data! {
    fn what_is_piped_reaches_the_script(ground: &Ground) {
        ground.file("a.rhai", ECHO);
        assert_eq!(piped(ground, &["run", "a.rhai"], "hi\n").ok().stdout, "3 hi\n");
        let file = File::open(ground.file("in", "file")).unwrap();
        let done = Running::with_stdin(ground.command(&["run", "a.rhai"]), file).ended();
        assert_eq!(done.ok().stdout, "4 file\n");
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&ours).write_all(b"socket").unwrap();
        drop(ours);
        let done = Running::with_stdin(ground.command(&["run", "a.rhai"]), OwnedFd::from(theirs)).ended();
        assert_eq!(done.ok().stdout, "6 socket\n");
    }

    fn nothing_on_stdin_is_no_input(ground: &Ground) {
        ground.file("a.rhai", "INPUT == ()");
        assert_eq!(ground.run(&["run", "a.rhai"]).ok().stdout, "true\n");
        assert_eq!(piped(ground, &["run", "a.rhai"], "").ok().stdout, "true\n");
        let zero = File::open("/dev/zero").unwrap();
        let done = Running::with_stdin(ground.command(&["run", "a.rhai"]), zero).ended();
        assert_eq!(done.ok().stdout, "true\n");
    }

    fn a_pipe_that_stays_silent_holds_nothing_up(ground: &Ground) {
        ground.file("a.rhai", "INPUT == ()");
        let (reader, _writer) = std::io::pipe().unwrap();
        let done = Running::with_stdin(ground.command(&["run", "a.rhai"]), reader).ended().ok();
        assert_eq!(done.stdout, "true\n");
        assert!(done.stderr.contains("--input -"), "{}", done.stderr);
    }

    fn an_option_says_the_input(ground: &Ground) {
        ground.file("a.rhai", ECHO);
        ground.file("in", "of a file");
        for (input, output) in [("[1, 2]", "6 [1, 2]\n"), ("@in", "9 of a file\n"), ("-", "5 piped\n"), ("-1", "2 -1\n")] {
            let done = piped(ground, &["run", "a.rhai", "--input", input], "piped").ok();
            assert_eq!(done.stdout, output);
            let id = piped(ground, &["job", "submit", "a.rhai", "--input", input], "piped").ok().stdout;
            let shown = ground.run(&["job", "status", id.trim(), "--json"]).ok().json();
            assert_eq!(shown["status"], "dispatched", "{shown}");
        }
        let args = ["schedule", "add", "s", "--every", "1h", "a.rhai", "--input", "-"];
        piped(ground, &args, "abc").ok();
        let shown = ground.run(&["schedule", "show", "s", "--json"]).ok().json();
        assert_eq!(shown["job"]["input_bytes"], 3, "{shown}");
    }

    fn a_submitted_input_is_the_one_that_runs(ground: &Ground) {
        ground.file("a.rhai", ECHO);
        ground.file("in", "of a file");
        for (input, output) in [("{\"a\":1}", "7 {\"a\":1}"), ("@in", "9 of a file"), ("-", "5 piped")] {
            let args = ["job", "submit", "a.rhai", "--input", input, "--id", "j"];
            piped(ground, &args, "piped").ok();
            let worker = ground.worker(&["--type", "osis"]);
            let job = ground.run(&["job", "wait", "j", "--json"]).ok().json();
            assert_eq!(job["output"], output);
            worker.stop();
            ground.run(&["job", "delete", "j"]).ok();
        }
    }

    fn the_bound_is_named(ground: &Ground) {
        ground.file("a.rhai", "INPUT.len()");
        for args in [&["run", "a.rhai"][..], &["run", "a.rhai", "--input", "-"]] {
            let done = piped(ground, args, vec![b'x'; MAX + 1]).exits(2);
            assert!(done.stderr.contains("stdin") && done.stderr.contains("16777216"), "{}", done.stderr);
            assert_eq!((done.stdout.as_str(), ground.stored().as_str()), ("", ""));
        }
        assert_eq!(piped(ground, &["run", "a.rhai"], vec![b'x'; MAX]).ok().stdout, format!("{MAX}\n"));
    }

    fn stdin_of_a_python_script_is_what_was_piped(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        ground.file("a.py", "import sys\nprint(sys.stdin.buffer.read().hex())");
        assert_eq!(piped(ground, &["run", "a.py"], b"\xff\0".to_vec()).ok().stdout, "ff00\n");
        assert_eq!(piped(ground, &["run", "a.py"], "").ok().stdout, "\n");
    }
}
