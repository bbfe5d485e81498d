//! The file of a flow: YAML 1.2 (core schema) or TOML, read into a plan with the place of everything in it.
//!
//! [`load()`] reads it, with the scripts and nested flows that it names. YAML is read from the parser's events, so that
//! each value has its place, and what surprises is refused: [`yaml`].

mod closing;
mod fields;
mod load;
mod matrix;
mod read;
mod toml;
mod tree;
mod words;
mod work;
mod yaml;

#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use meshwork_model::flow::Plan;
use sha2::{Digest, Sha256};

use crate::fault::FlowFaults;

/// The JSON Schema of a flow's file.
pub const SCHEMA: &str = include_str!("schema.json");

/// Reads and checks the flow of a file, with the scripts and nested flows that it names, relative to the file.
///
/// # Errors
///
/// All faults that were found, each with its place.
pub fn load(path: &Path) -> Result<Plan, FlowFaults> {
    load::load(path)
}

/// Reads and checks a flow from texts: that of its file, and those of the scripts and nested flows that it names, by path
/// relative to the file. It reads no file. `name` is the file's name in faults: a flow is TOML if it ends with `.toml`, else
/// YAML.
///
/// # Errors
///
/// All faults that were found, each with its place.
pub fn parse(name: &str, text: &str, files: &BTreeMap<String, String>) -> Result<Plan, FlowFaults> {
    load::parse(name, text, files)
}

/// The texts of a flow, as [`parse`] takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowTexts {
    /// Name of its file, without folders.
    pub name: String,
    /// Text of its file.
    pub text: String,
    /// Texts of the scripts and nested flows that it names, by path relative to the file.
    pub files: BTreeMap<String, String>,
}

/// Reads the texts of a flow, and checks them as [`load()`] does.
///
/// # Errors
///
/// All faults that were found, each with its place.
pub fn texts(path: &Path) -> Result<FlowTexts, FlowFaults> {
    load::texts(path)
}

/// The SHA-256 of a text, in hexadecimal digits.
pub fn digest(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}
