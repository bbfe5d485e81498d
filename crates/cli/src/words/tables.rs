//! Words of other job systems, and what to use instead.

/// Difference between two options of workers, of which other systems have one.
pub(crate) const PROCESSES: &str =
    "--concurrency is the number of jobs at once; --processes limits the processes of each job";

/// Words of other systems for a command of the same noun, or of `job`.
pub(super) const VERBS: [(&[&str], &[&str]); 16] = [
    (&["ls", "all", "index"], &["list"]),
    (
        &[
            "rm", "del", "remove", "drop", "forget", "delete", "destroy", "erase",
        ],
        &["delete", "remove", "revoke"],
    ),
    (
        &["kill", "abort", "terminate", "revoke", "stop"],
        &["cancel", "stop"],
    ),
    (
        &[
            "get", "info", "inspect", "describe", "view", "details", "stat", "show", "status",
            "cat",
        ],
        &["show", "status", "stats"],
    ),
    (
        &[
            "add", "push", "create", "new", "submit", "put", "send", "dispatch", "schedule",
            "publish", "insert", "queue",
        ],
        &["enqueue", "add", "create"],
    ),
    (
        &["requeue", "rerun", "replay", "redo", "restart", "retry-all"],
        &["retry", "run"],
    ),
    (&["log", "tail"], &["logs"]),
    (
        &["output", "value", "return", "return-value"],
        &["result", "logs"],
    ),
    (
        &["clear", "flush", "empty", "clean", "delete"],
        &["purge", "delete"],
    ),
    (
        &["start", "trigger", "fire", "execute", "launch"],
        &["run", "run-now"],
    ),
    (
        &["len", "length", "size", "depth", "lag"],
        &["stats", "list"],
    ),
    (
        &["update", "edit", "change", "modify", "configure"],
        &["set", "add"],
    ),
    (&["enable", "unpause", "continue", "release"], &["resume"]),
    (
        &["disable", "suspend", "hold", "freeze"],
        &["pause", "quiet"],
    ),
    (&["lint", "validate", "verify", "test"], &["check"]),
    (&["restart", "shutdown", "end"], &["stop"]),
];

/// Words of other systems for a command of another noun. A text with a backtick is the whole hint.
pub(super) const ELSEWHERE: [(&[&str], &str); 29] = [
    (
        &[
            "start", "consume", "consumer", "listen", "work", "daemon", "up", "agent", "celery",
        ],
        "meshwork worker",
    ),
    (
        &[
            "serve", "server", "api", "http", "rest", "grpc", "listener", "backend",
        ],
        "meshwork supervisor",
    ),
    (
        &[
            "ui", "web", "gui", "panel", "board", "webui", "flower", "admin", "browser",
        ],
        "meshwork dashboard",
    ),
    (
        &["top", "monitor", "watch", "mon", "stat", "info"],
        "meshwork queue stats --watch",
    ),
    (&["depth", "length", "size"], "meshwork queue stats"),
    (
        &[
            "ping",
            "health",
            "check",
            "diagnose",
            "healthcheck",
            "healthz",
        ],
        "meshwork doctor",
    ),
    (
        &["dlq", "dead-letters", "deadletters", "morgue", "discarded"],
        "meshwork dead list",
    ),
    (&["failed", "failures", "errors"], "meshwork list --failed"),
    (&["running", "active"], "meshwork list --state running"),
    (
        &["queued", "pending", "waiting"],
        "meshwork list --state queued",
    ),
    (&["delayed", "scheduled"], "meshwork list --state delayed"),
    (
        &["crontab", "beat", "periodic", "scheduler"],
        "meshwork schedule list",
    ),
    (&["exec", "do"], "meshwork run"),
    (&["dump", "backup"], "meshwork export"),
    (&["load", "restore"], "meshwork import"),
    (&["lint", "validate", "verify"], "meshwork flow check"),
    (
        &["workflow", "workflows", "pipeline", "pipelines", "dags"],
        "meshwork flow list",
    ),
    (&["task", "tasks"], "meshwork job list"),
    (
        &[
            "login",
            "signin",
            "auth",
            "token",
            "tokens",
            "apikey",
            "credentials",
        ],
        "`meshwork key create` makes a key for the API; the command itself needs none",
    ),
    (&["user", "users"], "meshwork actor list"),
    (
        &["tenant", "tenants", "workspace", "project", "projects"],
        "meshwork context list",
    ),
    (&["node", "nodes", "peer"], "meshwork mesh peers"),
    (&["history", "timeline"], "meshwork events"),
    (
        &["completion", "complete", "autocomplete"],
        "meshwork completions",
    ),
    (&["version", "about"], "meshwork --version"),
    (&["man", "usage", "commands", "docs"], "meshwork --help"),
    (
        &["init", "setup", "install", "bootstrap"],
        "nothing has to be set up: `meshwork run SCRIPT` runs a job, and `meshwork doctor` checks a server",
    ),
    (
        &["add_child", "add-child", "child"],
        "`meshwork enqueue` adds a job; within a script, `add_child()` adds a child",
    ),
    (
        &["upgrade", "self-update"],
        "install the new version as the old one; `meshwork doctor` names the versions of all workers",
    ),
];

/// Options of other systems, and those to use.
pub(super) const OPTIONS: [(&[&str], &[&str], &str); 18] = [
    (
        &["n", "count", "max", "all", "last", "top"],
        &["limit", "concurrency"],
        "",
    ),
    (&["state"], &["status"], ""),
    (&["failed", "error-only"], &["status"], " failed"),
    (&["eta", "run-at", "schedule-at"], &["at"], ""),
    (&["countdown", "in", "wait-for", "d"], &["delay"], ""),
    (
        &["max-retries", "attempts", "max-attempts", "retry", "r"],
        &["retries"],
        "",
    ),
    (
        &[
            "c",
            "j",
            "jobs",
            "threads",
            "processes",
            "workers",
            "parallel",
        ],
        &["concurrency"],
        "",
    ),
    (&["queue", "queues", "q", "Q"], &["type", "group"], ""),
    (&["interval", "rate"], &["every", "rate"], ""),
    (
        &["args", "kwargs", "payload", "data", "params", "arg", "i"],
        &["input"],
        "",
    ),
    (&["output", "o", "out"], &["format", "json"], ""),
    (&["force", "f", "no-confirm", "confirm", "y"], &["yes"], ""),
    (&["follow", "tail"], &["follow", "watch"], ""),
    (&["expires", "ttl", "deadline"], &["start-timeout"], ""),
    (&["timezone", "zone"], &["tz"], ""),
    (&["p", "prio"], &["priority"], ""),
    (&["t"], &["type", "timeout"], ""),
    (&["e", "environment"], &["env"], ""),
];

/// Options of other systems for a command that does it in another way.
pub(super) const OTHER_WAYS: [(&[&str], &[&str], &str); 2] = [
    (
        &["export"],
        &["to", "target", "destination", "into"],
        "export to a file, and import it on the other side: `meshwork export FILE`, then `meshwork import FILE` with \
         REDIS_URL or MESHWORK_DATA of the other store",
    ),
    (
        &["import"],
        &["from", "source"],
        "export on the other side to a file, and import it here: `meshwork export FILE` with REDIS_URL or \
         MESHWORK_DATA of the other store, then `meshwork import FILE`",
    ),
];
