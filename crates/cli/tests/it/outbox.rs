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
        assert!(self.run(&["list"]).ok().stderr.contains("1 row waiting"));
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
        for words in ["set_aside=1", "`meshwork outbox relay` moves them"] {
            assert!(ended.stderr.contains(words), "{}", ended.stderr);
        }
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
        assert!(listed.stderr.contains("no row waits"), "{}", listed.stderr);
        self.run(&["retry", "bad"]).ok();
        assert!(self.run(&["list"]).ok().stderr.contains("1 row waiting"));
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

/// A fault of a program makes many bad rows. The relay says it once, with the first error.
#[test]
fn many_bad_rows_are_one_line() {
    let Some(tables) = Tables::sqlite("cli_many") else {
        return;
    };
    tables.run(&["migrate"]).ok();
    wait(
        tables.fill(
            "WITH RECURSIVE bad(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM bad WHERE n < 1000) \
         INSERT INTO cli_many_meshwork_outbox (id, job) SELECT 'bad-' || n, 'no job' FROM bad"
                .to_owned(),
        ),
    );
    let relay = Running::start(tables.command(&["relay"]));
    eventually("all rows are set aside", || {
        let listed = tables.run(&["list", "--limit", "1"]).ok().stderr;
        listed.contains("; 1000 set aside").then_some(())
    });
    let said = relay.stop().stderr;
    let lines: Vec<_> = said.lines().filter(|line| line.contains("bad-")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    for part in ["rows=1000", "set_aside=1000", "bad-1", "cannot be read"] {
        assert!(lines[0].contains(part), "{said}");
    }
    let words = ["doctor", "--json", "--database-url", "--schema", "cli_many"];
    let mut doctor = tables.ground.command(&words);
    doctor.env("DATABASE_URL", &tables.url);
    let found = Running::start(doctor).ended().jsons();
    let found: Vec<_> = found.iter().filter(|it| it["check"] == "outbox").collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0]["what"].as_str().unwrap().starts_with("SQLite 3."),
        "{found:?}"
    );
    assert!(
        found[1]["what"]
            .as_str()
            .unwrap()
            .starts_with("1000 rows set aside"),
        "{found:?}"
    );
}

#[test]
fn a_relay_starts_before_its_database() {
    let (Some(mut server), Some(ground)) = (RealPostgres::start_for("cli_start"), Ground::redis())
    else {
        return;
    };
    let tables = Tables {
        ground,
        url: server.url(),
        schema: "cli_start",
    };
    tables.run(&["migrate"]).ok();
    let doctor = |words: &[&str]| {
        let mut command = tables
            .ground
            .command(&[&["doctor", "--json", "--database-url"], words].concat());
        command.env("DATABASE_URL", &tables.url);
        let found = Running::start(command).ended().jsons();
        let of_outbox = found.into_iter().filter(|it| it["check"] == "outbox");
        of_outbox.collect::<Vec<_>>()
    };
    let found = doctor(&["--schema", "cli_start"]);
    assert_eq!(
        (found.len(), &found[0]["level"]),
        (1, &"ok".into()),
        "{found:?}"
    );
    let missing = doctor(&["--schema", "cli_none"]);
    assert!(
        missing[0]["what"]
            .as_str()
            .unwrap()
            .contains("meshwork outbox migrate"),
        "{missing:?}"
    );
    server.kill9();
    assert_eq!(doctor(&[])[0]["level"], "problem");
    let mut relay = Running::start(tables.command(&["relay", "--json"]));
    let said = relay.said();
    assert!(said.contains("the database is away"), "{said}");
    server.start_again();
    let id = wait(tables.fill("SELECT 1".to_owned()));
    assert_eq!(json(&relay.line())["event"], "ready");
    eventually("the job is stored", || {
        let jobs = tables.ground.jobs();
        jobs.iter()
            .any(|job| job["id"] == id.as_str())
            .then_some(())
    });
    relay.stop();
}

#[test]
fn rows_of_other_programs_are_checked() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let rows = ground.file(
        "rows.jsonl",
        "{\"id\":\"a\",\"job\":{\"type\":\"python\",\"script\":\"1\"}}\n\n\
         {\"id\":\"b\",\"job\":\"{\\\"type\\\":\\\"python\\\",\\\"script\\\":\\\"1\\\"}\"}\n\
         {\"id\":\"..\",\"job\":{\"type\":\"python\",\"script\":\"1\"}}\n\
         {\"id\":\"c\",\"job\":{\"type\":\"python\"}}\n\
         no row\n{\"id\":\"d\",\"jobs\":{}}\n",
    );
    let checked = ground
        .run(&["outbox", "check", rows.to_str().unwrap(), "--json"])
        .exits(1);
    let wrong = checked.jsons();
    let found: Vec<_> = wrong
        .iter()
        .map(|it| (it["line"].as_u64().unwrap(), it["error"].as_str().unwrap()))
        .collect();
    for ((line, error), (at, part)) in found.iter().zip([
        (4, "step of a path"),
        (5, "`script`"),
        (6, "expected"),
        (7, "`jobs`"),
    ]) {
        assert_eq!(*line, at, "{found:?}");
        assert!(error.contains(part), "{found:?}");
    }
    assert!(
        checked.stderr.contains("6 rows, 4 wrong"),
        "{}",
        checked.stderr
    );
    let good = ground.file(
        "good.jsonl",
        "{\"id\":\"a\",\"job\":{\"type\":\"python\",\"script\":\"1\"}}",
    );
    ground
        .run(&["outbox", "check", good.to_str().unwrap()])
        .ok();
}
