//! Values of a job in JSON that have a form of their own: priority, input, names with durations, and sandbox.

use std::fmt::Display;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::param::{Size, Span, Word};
use crate::route::Priority;
use crate::sandbox::{Limit, Profile, SandboxSettings};

/// A priority as a word or a number.
#[derive(Debug, Clone, Copy)]
pub struct PriorityWord(pub Priority);

/// Input of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputValue(pub Vec<u8>);

/// A name with a duration, as `save=5s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSpan {
    /// The name.
    pub name: String,
    /// The duration.
    pub span: Span,
}

/// Requested sandbox of a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct SandboxSpec(pub SandboxSettings);

/// A sandbox with limits.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, rename = "SandboxLimits")]
struct SandboxFields {
    /// `open`, `standard` or `strict`.
    profile: Option<Word<Profile>>,
    /// Limit of the memory of all processes.
    memory: Option<Size>,
    /// Limit of the processor time of all processes.
    cpu: Option<Span>,
    /// Limit of the number of processes and threads at once.
    processes: Option<u64>,
    /// Limit of the number of open files of each process.
    files: Option<u64>,
    /// Limit of the size of the work folder.
    disk: Option<Size>,
    /// Limit of the output, stdout and stderr together.
    output: Option<Size>,
}

impl std::str::FromStr for NamedSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
        let (name, span) = parts.ok_or("write NAME=DURATION, as save=5s")?;
        let span = span.parse::<Span>().map_err(|error| error.to_string())?;
        Ok(Self {
            name: name.to_owned(),
            span,
        })
    }
}

impl<'de> Deserialize<'de> for PriorityWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Given;
        impl Given {
            fn read<E: Error>(text: impl Display) -> Result<PriorityWord, E> {
                let read = text.to_string().parse().map(PriorityWord);
                read.map_err(E::custom)
            }
        }
        impl Visitor<'_> for Given {
            type Value = PriorityWord;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("high, normal or low, or 0, 1 or 2")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PriorityWord, E> {
                Self::read(text)
            }

            fn visit_u64<E: Error>(self, level: u64) -> Result<PriorityWord, E> {
                Self::read(level)
            }
        }
        deserializer.deserialize_any(Given)
    }
}

impl<'de> Deserialize<'de> for InputValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(match value.get().starts_with('"') {
            true => serde_json::from_str::<String>(value.get())
                .map_err(D::Error::custom)?
                .into(),
            false => value.get().as_bytes().to_vec(),
        }))
    }
}

impl<'de> Deserialize<'de> for SandboxSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Given;
        impl<'de> Visitor<'de> for Given {
            type Value = SandboxSpec;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a profile, or an object with a profile and limits")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SandboxSpec, E> {
                let profile = text.parse().map_err(E::custom)?;
                Ok(SandboxSpec(SandboxSettings::profile(profile)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SandboxSpec, A::Error> {
                let given = SandboxFields::deserialize(MapAccessDeserializer::new(map))?;
                let profile = given.profile.map(|it| it.0);
                let mut settings = SandboxSettings {
                    profile,
                    ..SandboxSettings::default()
                };
                for (limit, value) in [
                    (Limit::Memory, given.memory.map(|it| it.0)),
                    (Limit::Cpu, given.cpu.map(Span::millis)),
                    (Limit::Processes, given.processes),
                    (Limit::Files, given.files),
                    (Limit::Disk, given.disk.map(|it| it.0)),
                    (Limit::Output, given.output.map(|it| it.0)),
                ] {
                    settings.limits.set(limit, value);
                }
                settings.check().map_err(A::Error::custom)?;
                Ok(SandboxSpec(settings))
            }
        }
        deserializer.deserialize_any(Given)
    }
}

#[cfg(feature = "schema")]
impl super::JobSpec {
    /// Returns the JSON Schema.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

#[cfg(feature = "schema")]
mod schema {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{PriorityWord, SandboxFields, SandboxSpec};

    impl JsonSchema for PriorityWord {
        fn schema_name() -> Cow<'static, str> {
            "JobPriority".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            // Generators of clients take no enum of two types.
            json_schema!({"anyOf": [
                {"type": "string", "enum": ["high", "normal", "low"]},
                {"type": "integer", "minimum": 0, "maximum": 2},
            ]})
        }
    }

    impl JsonSchema for SandboxSpec {
        fn schema_name() -> Cow<'static, str> {
            "SandboxSpec".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let limits = generator.subschema_for::<SandboxFields>();
            json_schema!({"anyOf": [{"type": "string"}, limits]})
        }
    }
}
