//! `meshwork outbox`, on a real PostgreSQL.

use std::process::Command;

use meshwork::JobRequest;
use meshwork_outbox::Outbox;
use meshwork_outbox::sqlx::{AssertSqlSafe, PgPool, raw_sql};
use meshwork_test_servers::servers::RealPostgres;
use rustix::process::Signal;

use crate::common::{Done, Ground, Running, eventually, json, wait};

/// A store, and an outbox in a schema of its own.
struct Tables {
    ground: Ground,
    url: String,
    schema: &'static str,
}

impl Tables {
    fn new(schema: &'static str) -> Option<Self> {
        let url = RealPostgres::shared_for(schema)?.url();
        let ground = Ground::redis()?;
        Some(Self {
            ground,
            url,
            schema,
        })
    }

    /// The command `meshwork outbox`, whose environment names the database.
    fn command(&self, words: &[&str]) -> Command {
        let words = [&["outbox"], words, &["--schema", self.schema]].concat();
        let mut command = self.ground.command(&words);
        command.env("DATABASE_URL", &self.url);
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        Running::start(self.command(words)).ended()
    }

    async fn insert(&self, pool: &PgPool) -> String {
        let outbox = Outbox::in_schema(self.schema).unwrap();
        let request = JobRequest::new("osis".parse().unwrap(), "40 + 2");
        let mut tx = pool.begin().await.unwrap();
        let accepted = outbox.enqueue(&mut tx, request).await.unwrap();
        tx.commit().await.unwrap();
        accepted.id.to_string()
    }
}

#[test]
fn a_relay_moves_rows_and_lists_refused_ones() {
    let Some(tables) = Tables::new("cli_relay") else {
        return;
    };
    let missing = tables.run(&["relay"]).exits(3);
    assert!(
        missing.stderr.contains("outbox migrate"),
        "{}",
        missing.stderr
    );
    tables.run(&["migrate"]).ok();
    tables.run(&["migrate"]).ok();
    let id = wait(async {
        let pool = PgPool::connect(&tables.url).await.unwrap();
        let bad = "INSERT INTO cli_relay.meshwork_outbox (id, job) VALUES ('bad', 'no job')";
        raw_sql(bad).execute(&pool).await.unwrap();
        tables.insert(&pool).await
    });
    let mut relay = Running::start(tables.command(&["relay", "--json"]));
    assert_eq!(json(&relay.line())["event"], "ready");
    eventually("the job is stored", || {
        let jobs = tables.ground.jobs();
        jobs.iter()
            .any(|job| job["id"] == id.as_str())
            .then_some(())
    });
    relay.signal(Signal::TERM);
    let ended = relay.ended().ok();
    assert!(ended.stderr.contains("set aside"), "{}", ended.stderr);
    let listed = tables.run(&["list", "--json"]).ok();
    let row = &listed.jsons()[0];
    assert_eq!(
        (&row["id"], &row["state"]),
        (&"bad".into(), &"set aside".into())
    );
    assert!(
        row["error"].as_str().unwrap().contains("cannot be read"),
        "{row}"
    );
    assert!(listed.stderr.contains("0 rows wait"), "{}", listed.stderr);
    tables.run(&["retry", "bad"]).ok();
    assert!(tables.run(&["list"]).ok().stderr.contains("1 rows wait"));
    tables.run(&["delete", "bad"]).ok();
    tables.run(&["delete", "bad"]).exits(5);
    tables.run(&["retry", "--all"]).exits(2);
    tables.run(&["retry", "--all", "--yes"]).ok();
}

#[test]
fn passwords_stay_off_the_command_line() {
    let Some(tables) = Tables::new("cli_secret") else {
        return;
    };
    tables.run(&["migrate"]).ok();
    let words = ["outbox", "list", "--schema", "cli_secret"];
    let refused = [&words[..], &["--database", &tables.url]].concat();
    let refused = tables.ground.run(&refused).exits(2);
    assert!(
        refused.stderr.contains("DATABASE_URL"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("sesame"), "{}", refused.stderr);
    let file = tables.ground.file("url", format!("{}\n", tables.url));
    let by_file = [&words[..], &["--database-file", file.to_str().unwrap()]].concat();
    tables.ground.run(&by_file).ok();
    let without = tables.url.replace(":sesame", "");
    let mut command = tables
        .ground
        .command(&[&words[..], &["--database", &without]].concat());
    command.env("PGPASSWORD", "sesame");
    Running::start(command).ended().ok();
    let none = tables.ground.run(&words).exits(2);
    assert!(
        none.stderr.contains("no database is named"),
        "{}",
        none.stderr
    );
    let wrong = tables.url.replace("sesame", "geheim");
    let mut command = tables.ground.command(&words);
    command.env("DATABASE_URL", wrong);
    let wrong = Running::start(command).ended().exits(3);
    assert!(!wrong.stderr.contains("geheim"), "{}", wrong.stderr);
}

#[test]
fn the_printed_schema_is_what_migrate_runs() {
    let Some(tables) = Tables::new("cli_schema") else {
        return;
    };
    let schema = Running::start(tables.command(&["schema"]))
        .ended()
        .ok()
        .stdout;
    let pool = wait(async {
        let pool = PgPool::connect(&tables.url).await.unwrap();
        raw_sql(AssertSqlSafe(schema)).execute(&pool).await.unwrap();
        pool
    });
    wait(tables.insert(&pool));
    assert!(tables.run(&["list"]).ok().stderr.contains("1 rows wait"));
    let bad = tables.ground.run(&["outbox", "schema", "--schema", "a\"b"]);
    assert!(bad.exits(2).stderr.contains("no name of a schema"));
}
