//! `rpc`, `key`, and the options of the API.

use serde_json::json;

use super::Far;
use crate::common::{Ground, Running, bare, on_all_data};

on_all_data! {
    fn rpc(ground: &Ground) {
        let far = Far::start(ground);
        let job = r#"{"type":"osis","script":"1","id":"a","delay":"1h"}"#;
        assert_eq!(far.ok(&["rpc", "job.create", job, "--json"]).json()["id"], "a");
        far.has_event("a", "enqueue");
        let read = far.same(&["rpc", "job.get", r#"{"id":"a"}"#]);
        assert_eq!(read[0]["state"], "delayed");
        far.refuses(&["rpc", "job.create", job]);
        // Errors have the exit codes and the remedies of the store.
        for (args, code) in [
            (["rpc", "job.get", r#"{"id":"none"}"#], 5),
            (["rpc", "job.get", r#"{"id":7}"#], 2),
            (["rpc", "job.gte", "{}"], 2),
            (["rpc", "job.get", "7"], 2),
        ] {
            let (there, here) = (far.run("admin", &args).exits(code), ground.run(&args).exits(code));
            let first = |text: &str| text.lines().next().unwrap().to_owned();
            assert_eq!(first(&there.stderr), first(&here.stderr), "{args:?}");
        }
        far.stop();
    }

    fn keys(ground: &Ground) {
        let far = Far::start(ground);
        far.ok(&["key", "create", "new", "--scope", "viewer"]);
        let names: Vec<_> = far.same(&["key", "list"]).iter().map(|key| key["name"].clone()).collect();
        assert_eq!(names, ["admin", "new", "user", "viewer"]);
        far.ok(&["key", "rotate", "new"]);
        far.ok(&["key", "revoke", "new"]);
        assert_eq!(far.same(&["key", "list"]).len(), 3);
        far.refuses(&["key", "revoke", "viewer"]);
        let needs = far.run("admin", &["key", "create", "of", "--context", "1"]).exits(2);
        assert!(needs.stderr.contains("--actor"), "{}", needs.stderr);
        far.stop();
    }

    fn the_options(ground: &Ground) {
        let far = Far::start(ground);
        let url = far.url();
        let run = |args: &[&str]| {
            let mut command = bare(&ground.path("."));
            command.args(args);
            Running::start(command).ended()
        };
        let info = ["rpc", "system.info"];
        // The environment names an API, too; a store on the command line comes before it.
        let mut command = bare(&ground.path("."));
        command.env("MESHWORK_API", &url).env("MESHWORK_API_KEY_FILE", "viewer").args(info);
        let info_by_environment = Running::start(command).ended().ok();
        assert!(info_by_environment.stdout.contains(r#""scope":"viewer""#), "{info_by_environment:?}");
        for (args, code, said) in [
            (vec!["--api", &url], 1, "--key-file"),
            (vec!["--api", &url, "--key-file", "none"], 2, "the key file none cannot be read"),
            (vec!["--api", &url, "--key-file", "."], 2, "cannot be read"),
            (vec!["--api", "127.0.0.1"], 2, "--api: write http://HOST:PORT"),
            (vec!["--api", "http://a:b@c"], 2, "--key-file"),
            (vec!["--api", "http://host.invalid"], 3, "cannot reach the API at http://host.invalid"),
            (vec!["--api", "unix:///none/api"], 3, "cannot reach the API at unix:///none/api"),
            (vec!["--api", &url, "--redis", "redis://127.0.0.1:1"], 2, "--api"),
        ] {
            let done = run(&[&args[..], &info].concat()).exits(code);
            assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
        }
        let below = format!("{url}/v1");
        let done = run(&["--api", &below, "rpc", "system.info"]).exits(2);
        assert!(done.stderr.contains("there is nothing here"), "{}", done.stderr);
        ground.file("empty", "\n");
        let done = run(&["--api", &url, "--key-file", "empty", "rpc", "system.info"]).exits(2);
        assert!(done.stderr.contains("the key file empty has no key"), "{}", done.stderr);
        // A command that cannot work by the API says what to do, and one that needs no store works.
        let done = run(&["--api", &url, "worker", "--type", "osis"]).exits(2);
        assert!(done.stderr.contains("`meshwork worker` does not work with --api"), "{}", done.stderr);
        run(&["--api", &url, "job", "schema"]).ok();
        far.stop();
    }

    fn a_socket_needs_no_key(ground: &Ground) {
        let path = ground.path("api.sock");
        let mut running = ground.start(&["supervisor", "--json", "--socket", path.to_str().unwrap()]);
        running.line();
        let mut command = bare(&ground.path("."));
        let url = format!("unix://{}", path.display());
        command.args(["--api", &url, "rpc", "system.info", "--json"]);
        let info = Running::start(command).ended().ok().json();
        assert_eq!(info["scope"], json!("admin"));
        running.stop();
    }
}
