//! The command with `--api`, beside the same command on the store.

mod calls;
mod contexts;
mod jobs;
mod messages;
mod others;
mod queues;

use std::path::PathBuf;

use serde_json::Value;

use super::Server;
use crate::common::{Done, Ground, Running, bare};

/// A supervisor, and keys in files that only its users have.
struct Far<'a> {
    ground: &'a Ground,
    server: Server,
}

impl<'a> Far<'a> {
    fn start(ground: &'a Ground) -> Self {
        Self::start_as(ground, &[])
    }

    /// With these words for each key.
    fn start_as(ground: &'a Ground, words: &[&str]) -> Self {
        for scope in ["admin", "user", "viewer"] {
            let create = ["key", "create", scope, "--scope", scope];
            let made = ground.run(&[&create, words].concat()).ok();
            ground.file(scope, made.stdout);
        }
        let server = Server::start(ground, &[]);
        Self { ground, server }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The file of a key.
    fn key(&self, scope: &str) -> PathBuf {
        self.ground.path(scope)
    }

    /// Starts the command, without any way to the store, with the key of a scope.
    fn begin(&self, scope: &str, args: &[&str]) -> Running {
        let mut command = bare(&self.ground.path("."));
        command.args(["--api", &self.url(), "--key-file", scope]);
        Running::start({
            command.args(args);
            command
        })
    }

    fn run(&self, scope: &str, args: &[&str]) -> Done {
        let key = std::fs::read_to_string(self.key(scope)).unwrap();
        let done = self.begin(scope, args).ended();
        let said = format!("{done:?}");
        assert!(!said.contains(key.trim()), "the key is printed: {args:?}");
        done
    }

    /// Runs the command as the admin.
    fn ok(&self, args: &[&str]) -> Done {
        self.run("admin", args).ok()
    }

    /// The rows of a list, which are the same on the store.
    fn same(&self, args: &[&str]) -> Vec<Value> {
        let args = [args, &["--json"]].concat();
        let (far, near) = (self.ok(&args).jsons(), self.ground.run(&args).ok().jsons());
        assert_eq!(far, near, "{args:?}");
        far
    }

    /// The key of a viewer may not change, a wrong key reads nothing, and without a server there is no answer.
    fn refuses(&self, change: &[&str]) {
        let refused = self.run("viewer", change).exits(1);
        let said = &refused.stderr;
        assert!(
            said.contains("needs the scope") && said.contains("scope viewer"),
            "{said}"
        );
        self.ground.file("wrong", "mwk_admin.AAAA\n");
        let refused = self.run("wrong", change).exits(1);
        assert!(
            refused.stderr.contains("key is wrong"),
            "{}",
            refused.stderr
        );
        let mut command = bare(&self.ground.path("."));
        command.args(["--api", "http://127.0.0.1:1"]).args(change);
        let away = Running::start(command).ended().exits(3);
        assert!(away.stderr.contains("127.0.0.1:1"), "{}", away.stderr);
    }

    /// The latest event of a job has this name, and is of the key of the admin.
    fn has_event(&self, job: &str, event: &str) {
        let events = self.ground.run(&["events", "--job", job, "--json"]).ok();
        let events = events.jsons();
        let last = events.last().unwrap();
        assert_eq!(
            (&last["event"], &last["by"]),
            (&event.into(), &"api:admin".into()),
            "{events:?}"
        );
    }

    fn stop(self) {
        self.server.stop();
    }
}
