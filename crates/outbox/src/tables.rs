//! Tables of the outbox and their statements.

use std::fmt::Write;

/// Longest name of a schema, in bytes: the name of the channel contains it, and has at most 63.
const MAX_SCHEMA: usize = 40;

/// A name cannot be that of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a schema: 1 to 40 of a-z, 0-9 and _, not beginning with a digit")]
pub struct InvalidSchema(String);

/// Names of the tables, and the statements.
#[derive(Debug)]
pub(crate) struct Tables {
    schema: Option<String>,
    pub(crate) outbox: String,
    pub(crate) processed: String,
    /// Channel of notifications about new rows.
    pub(crate) channel: String,
    pub(crate) insert: String,
    pub(crate) insert_silently: String,
    pub(crate) claim: String,
    pub(crate) lock: String,
    pub(crate) delete: String,
    pub(crate) refuse: String,
    pub(crate) backlog: String,
    pub(crate) list: String,
    pub(crate) retry: String,
    pub(crate) process: String,
    pub(crate) prune: String,
}

impl Tables {
    /// Returns the tables of a schema, or those of the search path.
    pub(crate) fn new(schema: Option<&str>) -> Result<Self, InvalidSchema> {
        if let Some(name) = schema.filter(|name| !is_schema(name)) {
            return Err(InvalidSchema(name.to_owned()));
        }
        let qualified = |table: &str| match schema {
            Some(schema) => format!("{schema}.{table}"),
            None => table.to_owned(),
        };
        let (outbox, processed) = (
            qualified("meshwork_outbox"),
            qualified("meshwork_processed"),
        );
        let new =
            format!("INSERT INTO {outbox} (id, job) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING");
        Ok(Self {
            channel: match schema {
                Some(schema) => format!("meshwork_outbox_{schema}"),
                None => "meshwork_outbox".to_owned(),
            },
            insert: format!(
                "WITH new AS ({new} RETURNING 1) SELECT count(*), pg_notify($3, '')::text FROM new"
            ),
            insert_silently: format!("WITH new AS ({new} RETURNING 1) SELECT count(*) FROM new"),
            claim: format!(
                "WITH due AS (SELECT id, attempted_ms FROM {outbox} WHERE due_at <= now() \
                 ORDER BY due_at, seq LIMIT $1 FOR UPDATE SKIP LOCKED) \
                 UPDATE {outbox} AS o SET claims = o.claims + 1, attempted_ms = coalesce(o.attempted_ms, $2) \
                 FROM due WHERE o.id = due.id \
                 RETURNING o.seq, o.id, o.claims, o.attempts, octet_length(o.job)::bigint AS bytes, \
                 due.attempted_ms AS earlier_ms"
            ),
            lock: format!(
                "SELECT o.id, o.job FROM {outbox} AS o JOIN unnest($1::text[], $2::int[]) AS claimed(id, claims) \
                 ON o.id = claimed.id AND o.claims = claimed.claims FOR UPDATE OF o SKIP LOCKED"
            ),
            delete: format!("DELETE FROM {outbox} WHERE id = ANY($1)"),
            refuse: format!(
                "UPDATE {outbox} AS o SET error = refused.error, attempts = o.attempts + 1, \
                 attempted_ms = CASE WHEN refused.uncertain THEN o.attempted_ms END, \
                 due_at = CASE WHEN refused.pause_ms IS NULL THEN 'infinity' \
                 ELSE now() + refused.pause_ms * interval '1 millisecond' END \
                 FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bool[]) \
                 AS refused(id, error, pause_ms, uncertain) WHERE o.id = refused.id"
            ),
            backlog: format!(
                "SELECT (SELECT count(*) FROM (SELECT FROM {outbox} WHERE due_at < 'infinity' LIMIT $1) AS w) \
                 AS waiting, (SELECT count(*) FROM (SELECT FROM {outbox} WHERE due_at = 'infinity' LIMIT $1) AS e) \
                 AS set_aside, (SELECT (1000 * extract(epoch FROM clock_timestamp() - created_at))::bigint \
                 FROM {outbox} WHERE due_at < 'infinity' ORDER BY due_at, seq LIMIT 1) AS oldest_ms"
            ),
            list: format!(
                "SELECT seq, id, job, attempts, error, due_at = 'infinity' AS set_aside, \
                 (1000 * extract(epoch FROM created_at))::bigint AS created_ms \
                 FROM {outbox} WHERE error IS NOT NULL AND seq > $1 ORDER BY seq LIMIT $2"
            ),
            retry: format!(
                "UPDATE {outbox} SET due_at = now(), error = NULL, attempted_ms = NULL \
                 WHERE error IS NOT NULL AND ($1::text[] IS NULL OR id = ANY($1))"
            ),
            process: format!(
                "INSERT INTO {processed} (id) VALUES ($1) ON CONFLICT (id) DO NOTHING"
            ),
            prune: format!(
                "DELETE FROM {processed} WHERE id IN (SELECT id FROM {processed} \
                 WHERE processed_at < now() - $1 * interval '1 millisecond' LIMIT $2)"
            ),
            schema: schema.map(str::to_owned),
            outbox,
            processed,
        })
    }

    /// Returns the statements that create the tables, each of which can be repeated.
    pub(crate) fn create(&self) -> String {
        let Self {
            outbox, processed, ..
        } = self;
        let mut sql = String::new();
        if let Some(schema) = &self.schema {
            // A string takes every write.
            let _ = writeln!(sql, "CREATE SCHEMA IF NOT EXISTS {schema};");
        }
        let _ = write!(
            sql,
            "CREATE TABLE IF NOT EXISTS {outbox} (
    id text PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    job text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    claims int NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    attempted_ms bigint,
    error text
);
CREATE INDEX IF NOT EXISTS meshwork_outbox_due ON {outbox} (due_at, seq);
CREATE INDEX IF NOT EXISTS meshwork_outbox_errors ON {outbox} (seq) WHERE error IS NOT NULL;
CREATE TABLE IF NOT EXISTS {processed} (
    id text PRIMARY KEY,
    processed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS meshwork_processed_at ON {processed} (processed_at);
"
        );
        sql
    }
}

fn is_schema(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=MAX_SCHEMA).contains(&name.len())
        && name.chars().all(fits)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_cannot_carry_sql() {
        for bad in ["", "1a", "A", "a.b", "a\"b", "a b", "ä", &"a".repeat(41)] {
            assert_eq!(
                Tables::new(Some(bad)).err(),
                Some(InvalidSchema(bad.to_owned()))
            );
        }
        let tables = Tables::new(Some("jobs_2")).unwrap();
        assert_eq!(tables.outbox, "jobs_2.meshwork_outbox");
        assert!(
            tables
                .create()
                .starts_with("CREATE SCHEMA IF NOT EXISTS jobs_2;")
        );
    }
}
