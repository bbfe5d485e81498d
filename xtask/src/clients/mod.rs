//! Generated files of the clients in `clients`: types by published generators, and stubs of all methods. Their source is
//! `docs/openapi.json`.

mod document;
mod python;
mod typescript;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{Failure, ask};
use crate::tools::{self, ClientTools};
use crate::workspace::{Workspace, in_ci};
use document::Document;

/// Timeout of a generator.
const GENERATION: Duration = Duration::from_secs(120);

const DOCUMENT: &str = "docs/openapi.json";
const PYTHON: &str = "clients/python/src/meshwork_client";
const TYPESCRIPT: &str = "clients/typescript/src";

/// A generated file: its path and its text.
type Generated = (String, String);

/// Writes the generated files, or with `check` compares them.
pub(crate) fn clients(workspace: &Workspace, check: bool, install: bool) -> Result<(), Failure> {
    let mut files = stubs(workspace)?;
    let tools = tools::client_tools(workspace, install);
    if in_ci() && (tools.python.is_none() || tools.typescript.is_none()) {
        return Err(Failure::new("a generator is missing"));
    }
    files.extend(python_types(workspace, &tools)?);
    files.extend(typescript_types(workspace, &tools)?);
    if check {
        return compare(workspace, &files);
    }
    for (path, text) in &files {
        let written = fs::write(workspace.root.join(path), text);
        written.map_err(|error| Failure::new(format!("{path}: {error}")))?;
        eprintln!("{path}: written");
    }
    Ok(())
}

/// The stubs of all methods, which need no tools.
fn stubs(workspace: &Workspace) -> Result<Vec<Generated>, Failure> {
    let document = Document::read(&workspace.root.join(DOCUMENT))?;
    Ok(vec![
        (
            format!("{PYTHON}/methods.py"),
            python::methods(&document.methods),
        ),
        (
            format!("{TYPESCRIPT}/methods.ts"),
            typescript::methods(&document.methods),
        ),
    ])
}

fn compare(workspace: &Workspace, files: &[Generated]) -> Result<(), Failure> {
    let differs = |(path, text): &&Generated| {
        let there = fs::read_to_string(workspace.root.join(path));
        there.unwrap_or_default() != *text
    };
    let names = files.iter().filter(differs).map(|(path, _)| path.as_str());
    let names: Vec<_> = names.collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "not those of {DOCUMENT}: {}; run `cargo xtask clients`",
            names.join(", ")
        ))),
    }
}

fn python_types(workspace: &Workspace, tools: &ClientTools) -> Result<Option<Generated>, Failure> {
    let Some((python, packages)) = &tools.python else {
        return Ok(None);
    };
    let folder = workspace.target("clients");
    let (input, output) = (folder.join("openapi.json"), folder.join("types.py"));
    let document = Document::read(&workspace.root.join(DOCUMENT))?;
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&input, document.open().to_string()))
        .map_err(|error| Failure::new(error.to_string()))?;
    let mut command = Command::new(python);
    command.args(["-m", "datamodel_code_generator"]);
    command.args([
        "--input-file-type",
        "openapi",
        "--openapi-scopes",
        "schemas",
    ]);
    command.args(["--output-model-type", "typing.TypedDict"]);
    command.args(["--target-python-version", "3.11"]);
    command.args(["--use-standard-collections", "--use-union-operator"]);
    command.args(["--use-schema-description", "--use-field-description"]);
    command.args(["--formatters", "builtin"]);
    command.args(["--custom-file-header", python::HEADER]);
    command
        .arg("--input")
        .arg(&input)
        .arg("--output")
        .arg(&output);
    ask(command.env("PYTHONPATH", packages), GENERATION)?;
    Ok(Some((format!("{PYTHON}/types.py"), read(&output)?)))
}

fn typescript_types(
    workspace: &Workspace,
    tools: &ClientTools,
) -> Result<Option<Generated>, Failure> {
    let Some(packages) = &tools.typescript else {
        return Ok(None);
    };
    let mut command = Command::new("node");
    command
        .arg(packages.join("openapi-typescript/bin/cli.js"))
        // A parameter with a default may be left out.
        .arg("--default-non-nullable=false")
        .arg(workspace.root.join(DOCUMENT));
    let text = ask(&mut command, GENERATION)?;
    Ok(Some((format!("{TYPESCRIPT}/schema.ts"), text + "\n")))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stubs_are_those_of_the_document() {
        let workspace = Workspace::find().unwrap();
        let files = stubs(&workspace).unwrap();
        compare(&workspace, &files).unwrap();
    }
}
