//! Settings file of a worker for jobs of Bananas, in Bananas' format: YAML with the section `worker`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::protocol::bananas::MAX_CONCURRENCY;
use meshwork_model::route::routes::Routes;
use serde::Deserialize;

use crate::args::parsers;
use crate::args::yaml;
use crate::args::yaml::YamlError;
use crate::error::CommandError;

/// Folder beside the file with the scripts of handlers without a path.
const FOLDER: &str = "handlers";
/// Extensions of scripts, in the order of the search.
const ENDINGS: [&str; 2] = ["py", "rhai"];

/// Settings of the file; the command line and the environment override them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Config {
    pub(super) routes: Option<Routes>,
    /// Scripts by handler name.
    pub(super) handlers: BTreeMap<String, PathBuf>,
    pub(super) concurrency: Option<usize>,
    pub(super) job_timeout: Option<Duration>,
    pub(super) max_retries: Option<u32>,
}

/// Errors of settings files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("the settings {path}: {source}")]
    Unreadable { path: PathBuf, source: YamlError },
    #[error("the settings {path} are invalid: {why}")]
    Invalid { path: PathBuf, why: String },
    #[error(
        "the settings {path} name the handler {name}, and there is no {folder}/{name}.py or .rhai: write \
         `{name}: FILE`, or give --handler {name}=FILE"
    )]
    NoScript {
        path: PathBuf,
        name: String,
        folder: PathBuf,
    },
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    worker: Section,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default)]
    routing_keys: Vec<String>,
    #[serde(default)]
    handlers: Handlers,
    concurrency: Option<usize>,
    job_timeout: Option<String>,
    max_retries: Option<u32>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`handlers` is a list of names, or a map from names to files"
)]
enum Handlers {
    Names(Vec<String>),
    Files(BTreeMap<String, PathBuf>),
}

impl Default for Handlers {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl Config {
    /// Reads a file. `given` are the names of handlers with scripts on the command line.
    pub(super) fn read(path: &Path, given: &[&str]) -> Result<Self, ConfigError> {
        let document = yaml::read(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::of(document, path, given)
    }

    fn of(document: Document, path: &Path, given: &[&str]) -> Result<Self, ConfigError> {
        let invalid = |why: String| ConfigError::Invalid {
            path: path.to_owned(),
            why,
        };
        let section = document.worker;
        let routes = match section.routing_keys.join(",").as_str() {
            "" => None,
            keys => Some(keys.parse::<Routes>()),
        };
        let timeout = section
            .job_timeout
            .as_deref()
            .map(parsers::span)
            .transpose();
        let allowed = 1..=MAX_CONCURRENCY;
        if let Some(jobs) = section.concurrency.filter(|jobs| !allowed.contains(jobs)) {
            return Err(invalid(format!(
                "concurrency is {jobs}, not 1 to {MAX_CONCURRENCY}"
            )));
        }
        let beside = path.parent().unwrap_or(Path::new(""));
        let handlers = match section.handlers {
            Handlers::Files(files) => files
                .into_iter()
                .map(|(name, file)| (name, beside.join(file)))
                .collect(),
            Handlers::Names(names) => found(names, path, beside, given)?,
        };
        Ok(Self {
            routes: routes
                .transpose()
                .map_err(|error| invalid(error.to_string()))?,
            handlers,
            concurrency: section.concurrency,
            job_timeout: timeout.map_err(|why| invalid(format!("job_timeout: {why}")))?,
            max_retries: section.max_retries,
        })
    }
}

/// Finds the scripts of handlers without a path.
fn found(
    names: Vec<String>,
    path: &Path,
    beside: &Path,
    given: &[&str],
) -> Result<BTreeMap<String, PathBuf>, ConfigError> {
    let folder = beside.join(FOLDER);
    let mut found = BTreeMap::new();
    for name in names {
        if found.contains_key(&name) {
            let why = format!("`handlers` names {name} twice");
            let path = path.to_owned();
            return Err(ConfigError::Invalid { path, why });
        }
        let files = ENDINGS.map(|ending| folder.join(format!("{name}.{ending}")));
        match files.into_iter().find(|file| file.is_file()) {
            Some(file) => drop(found.insert(name, file)),
            None if given.contains(&name.as_str()) => {}
            None => {
                let path = path.to_owned();
                return Err(ConfigError::NoScript { path, name, folder });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        let path = Path::new("conf/worker.yaml");
        let document = yaml::parse(text).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        });
        let config = document.and_then(|document| Config::of(document, path, &["given"]));
        config.map_err(|error| error.to_string())
    }

    #[test]
    fn all_that_it_may_say() {
        let config = parse(
            "worker:\n  routing_keys: [\"gpu\", default]\n  handlers:\n    send_email: mail/send.py\n  \
             concurrency: 20\n  job_timeout: 90s\n  max_retries: 5\n",
        );
        let config = config.unwrap();
        assert_eq!(config.routes, "gpu,default".parse().ok());
        let file = &config.handlers["send_email"];
        assert_eq!(file, Path::new("conf/mail/send.py"));
        assert_eq!(
            (config.concurrency, config.max_retries),
            (Some(20), Some(5))
        );
        assert_eq!(config.job_timeout, Some(Duration::from_secs(90)));
    }

    #[test]
    fn a_name_alone_is_a_script_beside_it_or_on_the_command_line() {
        assert_eq!(
            parse("worker:\n  handlers:\n    - given\n"),
            Ok(Config::default())
        );
        let error = parse("worker:\n  handlers: [send_email]\n").unwrap_err();
        assert!(error.contains("conf/handlers/send_email.py"), "{error}");
    }

    #[test]
    fn what_it_may_not_say_is_refused_by_name() {
        for (text, named) in [
            ("", "worker.yaml"),
            ("worker: [", "worker.yaml"),
            ("worker:\n  routing_key: gpu\n", "routing_key"),
            ("worker: {}\nserver: {}\n", "server"),
            ("worker:\n  routing_keys: [team@alpha]\n", "team@alpha"),
            ("worker:\n  handlers: 7\n", "handlers"),
            ("worker:\n  concurrency: 0\n", "concurrency"),
            ("worker:\n  job_timeout: soon\n", "job_timeout"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
