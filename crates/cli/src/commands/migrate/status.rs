//! `meshwork migrate status`.

use meshwork_broker::{Found, Survey, TypeSurvey, Waiting};
use meshwork_model::name::ScriptType;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Table, note};

/// Show the progress of migrations, and the remains on old lists
#[derive(Debug, clap::Args)]
pub(crate) struct StatusOf {
    /// Only this type
    #[arg(long = "type", value_name = "TYPE")]
    script_type: Option<ScriptType>,
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    types: Vec<OfType<'a>>,
    unroutable: usize,
    watched: usize,
    /// Null if the server denies access to the list of clients.
    listeners: Option<Vec<Listener<'a>>>,
}

#[derive(Debug, Serialize)]
struct OfType<'a> {
    #[serde(rename = "type")]
    script_type: &'a str,
    phase: &'a str,
    list: Option<&'a str>,
    age_s: Option<f64>,
    canonical: usize,
    old: Vec<Old<'a>>,
    marked: usize,
    adrift: usize,
    running_elsewhere: usize,
}

#[derive(Debug, Serialize)]
struct Old<'a> {
    list: &'a str,
    waiting: usize,
    copies: usize,
}

#[derive(Debug, Serialize)]
struct Listener<'a> {
    addr: &'a str,
    name: &'a str,
    command: &'a str,
}

fn of_type(of: &TypeSurvey) -> OfType<'_> {
    let set = of.migration.as_ref();
    OfType {
        script_type: &of.script_type,
        phase: set.map_or("off", |set| set.phase.as_str()),
        list: set.map(|set| set.list.as_str()),
        age_s: set.map(|set| set.age.as_secs_f64()),
        canonical: of.canonical,
        old: of
            .old
            .iter()
            .map(|old| Old {
                list: &old.list,
                waiting: old.waiting,
                copies: old.copies,
            })
            .collect(),
        marked: of.marked.count,
        adrift: of.adrift.count,
        running_elsewhere: of.running.count,
    }
}

impl StatusOf {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let mut survey = client.broker().survey().await?;
        if let Some(only) = &self.script_type {
            survey.types.retain(|of| of.script_type == only.as_str());
        }
        if context.out.is_json() {
            context.out.json(&shown(&survey))?;
        } else {
            context.out.table(table(&survey))?;
            notes(&survey);
        }
        Ok(Exit::DONE)
    }
}

fn shown(survey: &Survey) -> Shown<'_> {
    Shown {
        types: survey.types.iter().map(of_type).collect(),
        unroutable: survey.unroutable.count,
        watched: survey.watched,
        listeners: survey.listeners.as_ref().map(|all| {
            let one = all.iter().map(|waiting| Listener {
                addr: &waiting.addr,
                name: &waiting.name,
                command: &waiting.command,
            });
            one.collect()
        }),
    }
}

/// Returns a row for each old list of each type.
fn table(survey: &Survey) -> Table {
    let names = [
        "type",
        "phase",
        "canonical",
        "marked",
        "adrift",
        "elsewhere",
    ];
    let columns = names.map(|name| match name {
        "type" | "phase" => Column::text(name),
        _ => Column::number(name),
    });
    let old = [
        Column::number("waiting"),
        Column::number("copies"),
        Column::text("old list"),
    ];
    // What waits in the old list decides about the next phase.
    let optional = &["elsewhere", "adrift", "copies", "marked", "canonical"];
    let mut table = Table::new(columns.into_iter().chain(old)).optional(optional);
    for of in &survey.types {
        let shown = of_type(of);
        let numbers = [
            shown.canonical,
            shown.marked,
            shown.adrift,
            shown.running_elsewhere,
        ];
        let first: Vec<_> = [shown.script_type, shown.phase]
            .map(str::to_owned)
            .into_iter()
            .chain(numbers.map(|number| number.to_string()))
            .collect();
        if of.old.is_empty() {
            let none = [String::new(), String::new(), String::new()];
            table.row(first.iter().cloned().chain(none));
        }
        for (at, old) in of.old.iter().enumerate() {
            let own = [
                old.waiting.to_string(),
                old.copies.to_string(),
                old.list.clone(),
            ];
            let again = first.iter().map(|cell| match at {
                0 => cell.clone(),
                _ => String::new(),
            });
            table.row(again.chain(own));
        }
    }
    table
}

fn notes(survey: &Survey) {
    if let Found {
        count,
        first: Some(first),
    } = &survey.unroutable
    {
        note(format_args!(
            "{count} open jobs of other clients (such as {first}) have no type and no worker that implies one: \
             they are not rescued"
        ));
    }
    match &survey.listeners {
        None => {
            note("other clients that wait on lists are unknown: the user may not run CLIENT LIST");
        }
        Some(all) => {
            for Waiting {
                addr,
                name,
                command,
            } in all
            {
                note(format_args!(
                    "client {addr} `{name}` waits on a list ({command}); the server does not say which one"
                ));
            }
        }
    }
}
