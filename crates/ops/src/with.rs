//! Parameters that several operations have beside their own: the place, the page, and the wait. serde's `flatten` would
//! lose the names of wrong fields, and the text of numbers.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use meshwork_model::param::Span;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::OpError;
use crate::params::{self, Page};
use crate::scope::Place;

/// Fields beside those of other parameters. All of them may be missing.
pub trait Beside: Default {
    /// Their names.
    const NAMES: &'static [&'static str];
    /// End of the name of parameters that have them, in the documents of the API.
    const SUFFIX: &'static str = "";

    /// Reads the value of a field.
    ///
    /// # Errors
    /// It is wrong.
    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Parameters with some beside them.
#[derive(Debug, Clone, Default)]
pub struct With<B, T> {
    /// Those beside them.
    pub beside: B,
    /// The parameters.
    pub own: T,
}

impl<B, T> Deref for With<B, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.own
    }
}

impl Beside for Place {
    const NAMES: &'static [&'static str] = &["context", "spread"];

    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "context" => self.context = map.next_value()?,
            _ => self.spread = map.next_value()?,
        }
        Ok(())
    }
}

/// Page of a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, rename = "PageParams")]
pub struct Paging {
    /// Greatest number of items, 1 to 1000. Default: 100. A page may have fewer, although more follow.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl Paging {
    /// Returns the greatest number of items.
    ///
    /// # Errors
    /// It is not possible.
    pub fn limit(&self) -> Result<usize, OpError> {
        params::limit(self.limit)
    }

    /// Returns the number of items before the page.
    ///
    /// # Errors
    /// No page gave the cursor.
    pub fn offset(&self) -> Result<usize, OpError> {
        params::offset(self.cursor.as_deref())
    }

    /// Returns a page of a list that is read whole.
    ///
    /// # Errors
    /// A field is wrong.
    pub fn page<T>(&self, all: impl IntoIterator<Item = T>) -> Result<Page<T>, OpError> {
        params::page(all, self.cursor.as_deref(), self.limit()?)
    }
}

impl Beside for Paging {
    const NAMES: &'static [&'static str] = &["limit", "cursor"];

    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "limit" => self.limit = map.next_value()?,
            _ => self.cursor = map.next_value()?,
        }
        Ok(())
    }
}

/// Wait for the end of a job.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Wait {
    /// Time to wait for the end of the job, at most 5 minutes.
    pub wait: Option<Span>,
}

impl Beside for Wait {
    const NAMES: &'static [&'static str] = &["wait"];
    const SUFFIX: &'static str = "WithWait";

    fn read<'de, A: MapAccess<'de>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        self.wait = map.next_value()?;
        Ok(())
    }
}

impl<'de, B: Beside, T: Deserialize<'de>> Deserialize<'de> for With<B, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Both(PhantomData))
    }
}

struct Both<B, T>(PhantomData<(B, T)>);

impl<'de, B: Beside, T: Deserialize<'de>> Visitor<'de> for Both<B, T> {
    type Value = With<B, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<With<B, T>, A::Error> {
        let mut beside = B::default();
        let rest = Rest {
            map,
            beside: &mut beside,
        };
        let own = T::deserialize(MapAccessDeserializer::new(rest)).map_err(named::<B, A::Error>)?;
        Ok(With { beside, own })
    }
}

/// Adds the names of the fields beside to the error of an unknown one.
fn named<B: Beside, E: Error>(error: E) -> E {
    let text = error.to_string();
    let words = text.rsplit_once(" at line ").map_or(&*text, |it| it.0);
    match words.starts_with("unknown field") {
        true => E::custom(format!("{words}, `{}`", B::NAMES.join("`, `"))),
        false => error,
    }
}

/// A map without the fields beside, which are read meanwhile.
struct Rest<'a, A, B> {
    map: A,
    beside: &'a mut B,
}

impl<'de, A: MapAccess<'de>, B: Beside> MapAccess<'de> for Rest<'_, A, B> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key::<String>()? {
            if !B::NAMES.contains(&name.as_str()) {
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            self.beside.read(&name, &mut self.map)?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(feature = "schema")]
impl<B: Beside + JsonSchema, T: JsonSchema> JsonSchema for With<B, T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}{}", T::schema_name(), B::SUFFIX).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let mut beside = B::json_schema(generator);
        let of = |schema: &mut Schema| schema.ensure_object().remove("properties");
        if let Some(serde_json::Value::Object(more)) = of(&mut beside) {
            let own = schema.ensure_object().entry("properties");
            if let serde_json::Value::Object(own) = own.or_insert_with(|| serde_json::json!({})) {
                own.extend(more);
            }
        }
        schema
    }
}
