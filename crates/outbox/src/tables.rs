//! Names of the tables of an outbox.

/// Longest name of a schema, in bytes: the name of the channel of PostgreSQL contains it, and has at most 63.
const MAX_SCHEMA: usize = 40;

/// A name cannot be that of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a schema: 1 to 40 of a-z, 0-9 and _, not beginning with a digit")]
pub struct InvalidSchema(String);

/// The tables of a schema, or those without one.
#[derive(Debug)]
pub struct Tables {
    schema: Option<String>,
}

impl Tables {
    pub(crate) fn new(schema: Option<&str>) -> Result<Self, InvalidSchema> {
        if let Some(name) = schema.filter(|name| !is_schema(name)) {
            return Err(InvalidSchema(name.to_owned()));
        }
        let schema = schema.map(str::to_owned);
        Ok(Self { schema })
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Returns the name of the table of rows.
    pub(crate) fn outbox(&self, separator: char) -> String {
        self.named(separator, "meshwork_outbox")
    }

    /// Returns the name of the table of processed jobs.
    pub(crate) fn processed(&self, separator: char) -> String {
        self.named(separator, "meshwork_processed")
    }

    /// Returns the name of a table, after that of the schema and the separator of the database.
    fn named(&self, separator: char, table: &str) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}{separator}{table}"),
            None => table.to_owned(),
        }
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
        assert_eq!(tables.outbox('.'), "jobs_2.meshwork_outbox");
        assert_eq!(tables.processed('_'), "jobs_2_meshwork_processed");
        assert_eq!(Tables::new(None).unwrap().outbox('.'), "meshwork_outbox");
    }
}
