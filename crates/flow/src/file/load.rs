//! The files of a flow: its own, its scripts, and those of nested flows, all read within their bounds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use meshwork_model::flow::limits::{MAX_DEPTH, MAX_FILE, MAX_JOBS};
use meshwork_model::flow::{self, Plan};
use meshwork_model::job::limits::MAX_SCRIPT;

use super::fields::Faults;
use super::tree::{SyntaxError, Tree};
use super::work::Sources;
use super::{FlowTexts, read, toml, yaml};
use crate::expr;
use crate::fault::{FlowFault, FlowFaults};

/// Place of the files that a flow names.
#[derive(Clone, Copy)]
enum Files<'a> {
    /// The file system.
    Disk,
    /// The file system. Keeps the texts that it has read, by path.
    Kept(&'a RefCell<BTreeMap<PathBuf, String>>),
    /// Texts by path; no other file is read.
    Texts(&'a BTreeMap<String, String>),
}

impl Files<'_> {
    /// Returns the one path of a file, which has several.
    fn known(self, path: &Path) -> Result<PathBuf, String> {
        match self {
            Self::Disk | Self::Kept(_) => path.canonicalize().map_err(|error| error.to_string()),
            Self::Texts(_) => plain(path),
        }
    }

    /// The text of a file of at most so many bytes.
    fn read(self, path: &Path, most: usize) -> Result<String, String> {
        let texts = match self {
            Self::Disk => return bounded(path, most),
            Self::Kept(kept) => {
                let text = bounded(path, most)?;
                kept.borrow_mut().insert(path.to_owned(), text.clone());
                return Ok(text);
            }
            Self::Texts(texts) => texts,
        };
        let path = plain(path)?;
        let text = texts
            .iter()
            .find(|(name, _)| plain(Path::new(name)).is_ok_and(|name| name == path))
            .map(|(_, text)| text)
            .ok_or("its text is not given")?;
        match text.len() > most {
            true => Err(format!("larger than {most} bytes, which is the limit")),
            false => Ok(text.clone()),
        }
    }
}

/// Returns a relative path without `.` and `..`.
fn plain(path: &Path) -> Result<PathBuf, String> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => {
                return Err(
                    "the path leaves the folder of the flow: give a relative path".to_owned(),
                );
            }
        }
    }
    Ok(plain)
}

/// The files beside a flow's file, and what was read on the way to it.
struct Folder<'a> {
    files: Files<'a>,
    folder: PathBuf,
    /// The files that contain each other, the outermost first.
    within: Vec<PathBuf>,
    /// The jobs of all files so far.
    jobs: &'a mut usize,
    /// Faults of nested flows.
    faults: &'a mut Vec<FlowFault>,
}

impl Sources for Folder<'_> {
    fn script(&self, path: &str) -> Result<String, String> {
        let full = self.folder.join(path);
        let text = self.files.read(&full, MAX_SCRIPT);
        let text = text.map_err(|error| format!("the script {path}: {error}"))?;
        match text.trim().is_empty() {
            true => Err(format!(
                "the script {path} is empty: there is nothing to run"
            )),
            false => Ok(text),
        }
    }

    fn flow(&mut self, path: &str) -> Result<(String, Plan), String> {
        let full = self.folder.join(path);
        let known = self.files.known(&full);
        let known = known.map_err(|error| format!("the flow {path}: {error}"))?;
        if self.within.contains(&known) {
            return Err(format!(
                "the flow {path} contains this one: a flow cannot run itself"
            ));
        }
        if self.within.len() >= MAX_DEPTH {
            return Err(format!(
                "flows are nested more than {MAX_DEPTH} levels deep: make them flatter"
            ));
        }
        let text = self.files.read(&full, MAX_FILE);
        let text = text.map_err(|error| format!("the flow {path}: {error}"))?;
        let mut within = self.within.clone();
        within.push(known);
        let name = full.display().to_string();
        let of = (full.as_path(), self.files, within);
        let plan = plan_of(&name, &text, of, self.jobs, self.faults);
        let plan = plan.ok_or_else(|| format!("the flow {path} has faults of its own"))?;
        // The same text in another folder may name other scripts.
        let key = super::digest(&format!("{name}\n{text}"));
        Ok((key, plan))
    }
}

/// Reads the flow of a file with its scripts and nested flows, and checks all but its expressions.
pub(super) fn load(path: &Path) -> Result<Plan, FlowFaults> {
    let name = path.display().to_string();
    let text = bounded(path, MAX_FILE).map_err(|message| whole(&name, message))?;
    parsed(&name, &text, Files::Disk)
}

/// Reads the texts of a flow: of its file, its scripts and its nested flows, which it checks as [`load`] does.
pub(super) fn texts(path: &Path) -> Result<FlowTexts, FlowFaults> {
    let name = path.display().to_string();
    let text = bounded(path, MAX_FILE).map_err(|message| whole(&name, message))?;
    let kept = RefCell::default();
    parsed(&name, &text, Files::Kept(&kept))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let named = |(path, text): (PathBuf, String)| {
        let path = path.strip_prefix(folder).unwrap_or(&path);
        (path.display().to_string(), text)
    };
    Ok(FlowTexts {
        name: path.file_name().unwrap_or_default().display().to_string(),
        text,
        files: kept.into_inner().into_iter().map(named).collect(),
    })
}

/// Same as [`load`], for texts: that of the flow, and those of the files that it names.
pub(super) fn parse(
    name: &str,
    text: &str,
    files: &BTreeMap<String, String>,
) -> Result<Plan, FlowFaults> {
    if text.len() > MAX_FILE {
        let message = format!("larger than {MAX_FILE} bytes, which is the limit");
        return Err(whole(name, message));
    }
    parsed(name, text, Files::Texts(files))
}

/// A fault of a whole file.
fn whole(name: &str, message: String) -> FlowFaults {
    let (file, at) = (Some(name.to_owned()), None);
    FlowFaults(vec![FlowFault { file, at, message }])
}

fn parsed(name: &str, text: &str, files: Files<'_>) -> Result<Plan, FlowFaults> {
    let path = Path::new(name);
    let known = files.known(path).map_err(|message| whole(name, message))?;
    let (mut jobs, mut faults) = (0, Vec::new());
    let of = (path, files, vec![known]);
    let plan = plan_of(name, text, of, &mut jobs, &mut faults);
    match plan {
        Some(plan) if faults.is_empty() => Ok(plan),
        _ => Err(FlowFaults(faults)),
    }
}

fn plan_of(
    name: &str,
    text: &str,
    (path, files, within): (&Path, Files<'_>, Vec<PathBuf>),
    jobs: &mut usize,
    faults: &mut Vec<FlowFault>,
) -> Option<Plan> {
    let mut found = Faults::default();
    let before = faults.len();
    let fault = |at, message| FlowFault {
        file: Some(name.to_owned()),
        at,
        message,
    };
    let tree = match tree(path, text) {
        Ok(tree) => tree,
        Err(SyntaxError { at, message }) => {
            faults.push(fault(at, message));
            return None;
        }
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut sources = Folder {
        files,
        folder,
        within,
        jobs,
        faults,
    };
    let plan = read::flow(tree, &mut sources, &mut found);
    *jobs = jobs.saturating_add(plan.jobs.len());
    if *jobs > MAX_JOBS {
        let message = format!("the flow has more than {MAX_JOBS} jobs, with those of nested flows");
        faults.push(fault(None, message));
        return None;
    }
    faults.extend(
        found
            .0
            .into_iter()
            .map(|(at, message)| fault(Some(at), message)),
    );
    if faults.len() == before {
        // Nested flows were checked as they were read.
        let own = flow::check(&plan).into_iter();
        faults.extend(own.map(|own| fault(own.at, own.to_string())));
    }
    if faults.len() == before {
        let own = expr::check(&plan).into_iter();
        faults.extend(own.map(|own| fault(own.at, own.message)));
    }
    (faults.len() == before).then_some(plan)
}

/// YAML, unless the name ends with `.toml`.
fn tree(path: &Path, text: &str) -> Result<Tree, SyntaxError> {
    match path.extension().is_some_and(|ending| ending == "toml") {
        true => toml::parse(text),
        false => yaml::parse(text),
    }
}

/// The text of a file of at most so many bytes.
fn bounded(path: &Path, most: usize) -> Result<String, String> {
    // Opened, a folder could still be mistaken for an empty file.
    if path.is_dir() {
        return Err("this is a folder, not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() > most {
        return Err(format!("larger than {most} bytes, which is the limit"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = error.utf8_error().valid_up_to();
        format!("no UTF-8 text: byte {} is wrong", before + 1)
    })
}
