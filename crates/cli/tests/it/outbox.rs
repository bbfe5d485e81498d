//! `meshwork outbox`, on a real PostgreSQL and on files of SQLite.

use std::process::Command;

use meshwork::JobRequest;
use meshwork_outbox::sqlx::{AssertSqlSafe, PgPool, Pool, SqlitePool, raw_sql};
use meshwork_outbox::{Database, Outbox};
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

    /// An empty file of SQLite instead.
    fn sqlite(schema: &'static str) -> Option<Self> {
        let ground = Ground::redis()?;
        let url = format!("sqlite://{}", ground.file("app.db", "").display());
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

    async fn enqueue<D: Database>(&self, pool: &Pool<D>) -> String {
        let outbox = Outbox::in_schema(self.schema).unwrap();
        let request = JobRequest::new("osis".parse().unwrap(), "40 + 2");
        let mut tx = pool.begin().await.unwrap();
        let accepted = outbox.enqueue(&mut tx, request).await.unwrap();
        tx.commit().await.unwrap();
        accepted.id.to_string()
    }

    /// Runs this SQL, and then commits a job. Returns its id.
    async fn fill(&self, sql: String) -> String {
        let sql = raw_sql(AssertSqlSafe(sql));
        if self.url.starts_with("sqlite:") {
            let pool = SqlitePool::connect(&self.url).await.unwrap();
            sql.execute(&pool).await.unwrap();
            self.enqueue(&pool).await
        } else {
            let pool = PgPool::connect(&self.url).await.unwrap();
            sql.execute(&pool).await.unwrap();
            self.enqueue(&pool).await
        }
    }

    /// Prints the schema, runs it, and commits a job.
    fn use_printed_schema(&self) {
        let schema = self.run(&["schema"]).ok().stdout;
        wait(self.fill(schema));
        assert!(self.run(&["list"]).ok().stderr.contains("1 rows wait"));
    }

    fn move_and_list(&self, table: &str) {
        let missing = self.run(&["relay"]).exits(3);
        assert!(
            missing.stderr.contains("outbox migrate"),
            "{}",
            missing.stderr
        );
        self.run(&["migrate"]).ok();
        self.run(&["migrate"]).ok();
        let bad = format!("INSERT INTO {table} (id, job) VALUES ('bad', 'no job')");
        let id = wait(self.fill(bad));
        let mut relay = Running::start(self.command(&["relay", "--json"]));
        assert_eq!(json(&relay.line())["event"], "ready");
        eventually("the job is stored", || {
            let jobs = self.ground.jobs();
            jobs.iter()
                .any(|job| job["id"] == id.as_str())
                .then_some(())
        });
        relay.signal(Signal::TERM);
        let ended = relay.ended().ok();
        assert!(ended.stderr.contains("set aside"), "{}", ended.stderr);
        let listed = self.run(&["list", "--json"]).ok();
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
        self.run(&["retry", "bad"]).ok();
        assert!(self.run(&["list"]).ok().stderr.contains("1 rows wait"));
        self.run(&["delete", "bad"]).ok();
        self.run(&["delete", "bad"]).exits(5);
        self.run(&["retry", "--all"]).exits(2);
        self.run(&["retry", "--all", "--yes"]).ok();
    }
}

#[test]
fn a_relay_moves_rows_and_lists_refused_ones() {
    if let Some(tables) = Tables::new("cli_relay") {
        tables.move_and_list("cli_relay.meshwork_outbox");
    }
}

#[test]
fn a_relay_moves_rows_of_sqlite() {
    if let Some(tables) = Tables::sqlite("cli_relay") {
        tables.move_and_list("cli_relay_meshwork_outbox");
    }
}

#[test]
fn a_wrong_database_is_named() {
    let Some(tables) = Tables::sqlite("cli_wrong") else {
        return;
    };
    for (url, part) in [
        ("mysql://host/name", "neither postgres:// nor sqlite://"),
        ("/srv/app.db", "neither postgres:// nor sqlite://"),
        ("sqlite::memory:", "in memory"),
        ("sqlite://nowhere.db", "there is no file nowhere.db"),
        ("sqlite://a.db?mode=red", "is invalid"),
    ] {
        let words = ["outbox", "list", "--database", url];
        let refused = tables.ground.run(&words).exits(2);
        assert!(refused.stderr.contains(part), "{url}: {}", refused.stderr);
    }
    // A text file is no database, and stays.
    let text = tables
        .ground
        .file("text", "no database, but a text of some length");
    let url = format!("sqlite://{}", text.display());
    let words = ["outbox", "migrate", "--database", &url];
    let refused = tables.ground.run(&words).exits(3);
    assert!(
        refused.stderr.contains("file is not a database"),
        "{}",
        refused.stderr
    );
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
    tables.use_printed_schema();
    let bad = tables.ground.run(&["outbox", "schema", "--schema", "a\"b"]);
    assert!(bad.exits(2).stderr.contains("no name of a schema"));
    if let Some(tables) = Tables::sqlite("cli_schema") {
        tables.use_printed_schema();
    }
}
