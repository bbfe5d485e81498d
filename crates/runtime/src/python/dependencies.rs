//! Dependencies that a script declares in a block of PEP 723. `uv` installs them into an environment of the cache, in a process
//! of its own, with the network and the cache of the job's context. Then the script runs in its profile, and only reads the
//! environment. The installer of a script in `strict` gets names only ([`mod@requirement`]), and that of a child of such a script
//! does not run: the names would carry away what the parent has read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::sandbox::Profile;
use tokio_util::sync::CancellationToken;
use toml::de::{DeTable, DeValue};

use super::super::cache::{Cache, Entry, digest};
use super::super::process::{self, Executable, Inherited, NamedBy, NotStarted, Process};
use super::super::workdir::Folder;
use super::super::{Run, program};
use super::interpreter::Interpreter;
use super::requirement;

/// Program that installs packages.
const UV: &str = "uv";
/// Folder of the environment within its entry.
const ENVIRONMENT: &str = "environment";
/// Greatest number of dependencies of a script.
const MAX_DEPENDENCIES: usize = 1_000;
/// File of dependencies with hashes, in the work folder of the installer.
const REQUIREMENTS: &str = "requirements.txt";
/// Variable of the worker with the address of its index, which `uv` reads.
const INDEX: &str = "UV_DEFAULT_INDEX";
/// Settings of `[tool.uv]` that lead to other sources than the index.
const SOURCES: [&str; 7] = [
    "extra-index-url",
    "find-links",
    "index",
    "index-url",
    "no-index",
    "pip",
    "sources",
];
/// Bytes at the end of the installer's output in an error.
const LAST_WORDS: usize = 1_000;

/// Environments of scripts.
const ENVIRONMENTS: Cache = Cache {
    name: "python",
    bytes: 2 << 30,
    entries: 1_000,
};
/// Caches of the installer, from which environments get their packages: an entry for each context and profile.
const PACKAGES: Cache = Cache {
    name: "packages",
    bytes: 2 << 30,
    entries: 100,
};

/// Makes an environment, and installs packages into it. The first arguments are `uv`, its cache, the environment, the
/// worker's Python, and the version that the script requires, or nothing. Packages are wheels: building one from its
/// source would run code with the rights of the installer.
const INSTALL: &str = r#"
uv=$1 cache=$2 environment=$3 python=$4 required=$5
shift 5
PATH=${python%/*}:$PATH
"$uv" venv -q --no-config --no-python-downloads --cache-dir "$cache" --python "${required:-$python}" "$environment" || exit
[ $# = 0 ] && exit
exec "$uv" pip install -q --no-config --no-build --link-mode hardlink --cache-dir "$cache" --python "$environment/bin/python" "$@"
"#;

/// Error of a child whose parent was strict.
const CHILD: &str = "a job that a script in the sandbox profile `strict` added installs no packages, since their names could \
    carry away what that script has read: run a job with the same block `# /// script` (PEP 723) in this context first, without \
    a parent";

/// Block of PEP 723.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metadata {
    dependencies: Vec<String>,
    requires_python: Option<String>,
    /// A setting of `[tool.uv]` for other sources. Only `strict` refuses it: the installer does not read it.
    source: Option<String>,
}

/// Environment of a script. It stays in the cache while this exists.
#[derive(Debug)]
pub(super) struct Environment {
    /// Its interpreter.
    pub(super) interpreter: Interpreter,
    _entry: Entry,
}

/// Returns the environment for the dependencies of the script; `None` without any.
pub(super) async fn environment(
    run: &Run,
    interpreter: &Interpreter,
    dropped: &CancellationToken,
) -> Result<Option<Environment>, Failure> {
    let permanent = |why: String| Failure::new(FailureKind::Permanent, why);
    let Some(metadata) = metadata(&run.job.script).map_err(permanent)? else {
        return Ok(None);
    };
    if run.confinement.profile == Profile::Strict {
        metadata.check_strict().map_err(permanent)?;
    }
    if metadata.dependencies.is_empty() && metadata.requires_python.is_none() {
        return Ok(None);
    }
    let name = metadata.digest(interpreter, run);
    let mut entry = ENVIRONMENTS.entry_for(name, run, dropped).await?;
    if !entry.is_complete() {
        let parent = run.job.sandbox().ok().and_then(|sandbox| sandbox.parent);
        if parent == Some(Profile::Strict) && !metadata.dependencies.is_empty() {
            return Err(permanent(CHILD.to_owned()));
        }
        let Some(uv) = program::find(UV) else {
            return Err(permanent(format!(
                "the script declares dependencies (PEP 723), and there is no program `{UV}` on this worker: install uv, or \
                 remove the block `# /// script`"
            )));
        };
        let installed = install(&metadata, interpreter, &uv, &entry, (run, dropped));
        Box::pin(installed).await?;
        let complete = process::blocking(move || entry.complete(ENVIRONMENTS)).await;
        entry = complete.map_err(|error| process::cannot("use the cache", &error))?;
    }
    let environment = entry.path.join(ENVIRONMENT);
    let mut files = interpreter.files.clone();
    files.push(environment.clone());
    let path = environment.join("bin/python");
    // Another Python than that of the worker may be the one that the script requires.
    let real = path.canonicalize().ok();
    files.extend(real.and_then(|real| Some(real.parent()?.parent()?.to_owned())));
    Ok(Some(Environment {
        interpreter: Interpreter {
            path,
            files,
            version: interpreter.version.clone(),
        },
        _entry: entry,
    }))
}

impl Metadata {
    /// Refuses what does not name a package of the index.
    fn check_strict(&self) -> Result<(), String> {
        let refused = |what: String| {
            format!(
                "the sandbox profile `strict` installs only packages of the worker's index, by their names: remove {what} from the \
                 block `# /// script` (PEP 723), or let a worker run the job in `standard`"
            )
        };
        if let Some(source) = &self.source {
            return Err(refused(format!("`{source}` of `[tool.uv]`")));
        }
        let other = self
            .dependencies
            .iter()
            .find(|one| !requirement::is_name(one));
        other.map_or(Ok(()), |other| {
            Err(refused(format!("the dependency `{other}`")))
        })
    }

    /// Returns the file of the dependencies, if one has a hash.
    fn file(&self) -> Option<Vec<u8>> {
        let has_hash = self
            .dependencies
            .iter()
            .any(|one| requirement::has_hash(one));
        has_hash.then(|| self.dependencies.join("\n").into_bytes())
    }

    /// Returns the name of its environment, which jobs of one context and profile share.
    fn digest(&self, interpreter: &Interpreter, run: &Run) -> String {
        let python = self.requires_python.clone().unwrap_or_default();
        let path = interpreter.path.to_string_lossy();
        let index = std::env::var(INDEX).unwrap_or_default();
        let mut parts = vec![
            run.tenant.as_bytes(),
            run.confinement.profile.as_str().as_bytes(),
            index.as_bytes(),
            python.as_bytes(),
            path.as_bytes(),
            interpreter.version.as_bytes(),
        ];
        parts.extend(self.dependencies.iter().map(String::as_bytes));
        digest(&parts)
    }
}

/// Installs the dependencies into an entry.
async fn install(
    metadata: &Metadata,
    interpreter: &Interpreter,
    uv: &Path,
    entry: &Entry,
    (run, dropped): (&Run, &CancellationToken),
) -> Result<(), Failure> {
    // What an installer has written for one context does not reach another.
    let profile = run.confinement.profile.as_str();
    let name = digest(&[run.tenant.as_bytes(), profile.as_bytes()]);
    let mut packages = PACKAGES.entry_for(name, run, dropped).await?;
    if !packages.is_complete() {
        // Its content is the installer's.
        let complete = process::blocking(move || packages.complete(PACKAGES)).await;
        packages = complete.map_err(|error| process::cannot("use the cache", &error))?;
    }
    let args = arguments(metadata, interpreter, (uv, &packages.path), entry);
    let writable = [entry.path.clone(), packages.path.clone()];
    let file = metadata.file();
    let installed = run_installer((run, dropped), file, &args, (uv, interpreter, writable)).await;
    drop(packages);
    // Without it the cache is too large until the next installation.
    let _ = process::blocking(|| PACKAGES.trim()).await;
    installed
}

/// Runs the installer. A strict run has no network, so this process has a profile of its own.
async fn run_installer(
    (run, dropped): (&Run, &CancellationToken),
    requirements: Option<Vec<u8>>,
    args: &[OsString],
    (uv, interpreter, writable): (&Path, &Interpreter, [PathBuf; 2]),
) -> Result<(), Failure> {
    let laid_out = process::blocking(move || {
        let file = requirements.as_deref().map(|lines| (REQUIREMENTS, lines));
        let folder = Folder::with(file)?;
        let input = process::stdin(folder.root(), None)?;
        Ok((folder, input))
    });
    let unready = |error| NotStarted::of_system("lay out the environment", &error);
    let (folder, input) = laid_out.await.map_err(unready)?;
    let mut installing = run.beside();
    let confinement = &mut installing.confinement;
    confinement.profile = confinement.profile.min(Profile::Standard);
    confinement.write.extend(writable);
    let mut files = interpreter.files.clone();
    files.push(uv.to_owned());
    let orders = process::orders(&installing, &files).await?;
    let program = Executable {
        path: Path::new("/bin/sh"),
        args,
        named_by: NamedBy::Worker,
    };
    let inherited = Inherited {
        input: input.into(),
        environment: process::own_environment(&folder, variables())?,
        calls: None,
    };
    let process = Process::start(program, &installing, &folder, inherited, &orders)?;
    let end = process.wait(&installing, dropped).await;
    let ended = process.end(end).await?;
    let report = process::blocking(move || {
        let report = ended.report(|status, _| match status.success() {
            true => Ok(Vec::new()),
            false => Err(process::failed(status)),
        });
        drop(folder);
        Ok(report)
    });
    let report = report
        .await
        .map_err(|error| process::cannot("remove a folder", &error))?;
    let described = |failure: Failure| match failure.kind {
        FailureKind::Script => {
            let last = &report.stderr[report.stderr.len().saturating_sub(LAST_WORDS)..];
            let last = String::from_utf8_lossy(last);
            let what = "the dependencies of the script cannot be installed";
            Failure::new(FailureKind::Script, format!("{what}: {}", last.trim()))
        }
        _ => failure,
    };
    report.result.map(drop).map_err(described)
}

/// Returns the variables of the installer: the worker's index, and the certificates of the host, as for all its programs. Both
/// of these say so, to old and new versions.
fn variables() -> impl Iterator<Item = (&'static str, OsString)> {
    let certificates = ["UV_NATIVE_TLS", "UV_SYSTEM_CERTS"].map(|name| (name, "true".into()));
    let index = std::env::var_os(INDEX).map(|index| (INDEX, index));
    certificates.into_iter().chain(index)
}

/// Returns the arguments of the shell.
fn arguments(
    metadata: &Metadata,
    interpreter: &Interpreter,
    (uv, packages): (&Path, &Path),
    entry: &Entry,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = ["-c", INSTALL, "install"].map(OsString::from).into();
    let environment = entry.path.join(ENVIRONMENT);
    for path in [
        uv,
        packages,
        environment.as_path(),
        interpreter.path.as_path(),
    ] {
        args.push(path.into());
    }
    args.push(metadata.requires_python.clone().unwrap_or_default().into());
    match metadata.file() {
        Some(_) => args.extend(["-r", REQUIREMENTS].map(OsString::from)),
        None if metadata.dependencies.is_empty() => {}
        None => {
            args.push("--".into());
            args.extend(metadata.dependencies.iter().map(OsString::from));
        }
    }
    args
}

/// Returns the content of the block, if it requires anything.
fn metadata(script: &[u8]) -> Result<Option<Metadata>, String> {
    let text = String::from_utf8_lossy(script);
    // A byte order mark is no part of the first line.
    let Some(block) = block(text.trim_start_matches('\u{feff}'))? else {
        return Ok(None);
    };
    let fault = |why: String| format!("the block `# /// script` (PEP 723) cannot be read: {why}");
    let table = DeTable::parse(&block).map_err(|error| fault(error.message().to_owned()))?;
    let table = table.into_inner();
    let mut metadata = Metadata::default();
    if let Some(value) = table.get("requires-python") {
        let DeValue::String(text) = value.get_ref() else {
            return Err(fault("`requires-python` is no text".to_owned()));
        };
        if !is_versions(text) {
            return Err(fault("`requires-python` is no list of versions".to_owned()));
        }
        metadata.requires_python = Some(text.to_string());
    }
    if let Some(value) = table.get("dependencies") {
        let DeValue::Array(items) = value.get_ref() else {
            return Err(fault("`dependencies` is no list".to_owned()));
        };
        for item in items.iter() {
            let DeValue::String(text) = item.get_ref() else {
                return Err(fault("a dependency is no text".to_owned()));
            };
            metadata.dependencies.push(text.to_string());
        }
    }
    if let Some(DeValue::Table(tool)) = table.get("tool").map(|value| value.get_ref())
        && let Some(DeValue::Table(uv)) = tool.get("uv").map(|value| value.get_ref())
    {
        let source = SOURCES.into_iter().find(|name| uv.contains_key(*name));
        metadata.source = source.map(str::to_owned);
    }
    if metadata.file().is_some()
        && let Some(other) = metadata
            .dependencies
            .iter()
            .find(|one| !requirement::is_name(one))
    {
        return Err(fault(format!(
            "a dependency has a hash, so all have to be names of packages, and `{other}` is none"
        )));
    }
    match metadata.dependencies.len() {
        0..=MAX_DEPENDENCIES => Ok((metadata != Metadata::default()).then_some(metadata)),
        many => Err(fault(format!(
            "{many} dependencies, the limit is {MAX_DEPENDENCIES}"
        ))),
    }
}

/// Returns true for versions as in `>=3.10, <4`. A path would be run by the installer.
fn is_versions(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "<>=!~.,* ".contains(c);
    text.starts_with(['<', '>', '=', '!', '~']) && text.chars().all(is_part)
}

/// Returns the lines of the block, without their comment signs. There may be one.
fn block(text: &str) -> Result<Option<String>, String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match (&mut open, line.trim_end()) {
            (None, "# /// script") => open = Some(String::new()),
            (None, _) => {}
            (Some(_), "# ///") => blocks.extend(open.take()),
            (Some(block), "#") => block.push('\n'),
            (Some(block), line) => match line.strip_prefix("# ") {
                Some(content) => {
                    block.push_str(content);
                    block.push('\n');
                }
                // Without an end it is no block.
                None => open = None,
            },
        }
    }
    match blocks.len() {
        0 | 1 => Ok(blocks.pop()),
        many => Err(format!(
            "the script has {many} blocks `# /// script` (PEP 723): keep one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"import x
# /// script
# requires-python = ">=3.8"
# dependencies = [
#   "six==1.16.0",
#
# ]
# ///
result = 1
"#;

    #[test]
    fn a_byte_order_mark_hides_no_block() {
        let marked = SCRIPT.replace("import x\n", "\u{feff}");
        assert_eq!(metadata(marked.as_bytes()), metadata(SCRIPT.as_bytes()));
    }

    #[test]
    fn the_block_of_a_script_is_read() {
        let expected = Metadata {
            dependencies: vec!["six==1.16.0".to_owned()],
            requires_python: Some(">=3.8".to_owned()),
            source: None,
        };
        assert_eq!(metadata(SCRIPT.as_bytes()), Ok(Some(expected)));
    }

    #[test]
    fn a_script_that_requires_nothing_needs_no_environment() {
        for text in [
            "result = 1",
            "# /// script\n# ///\n",
            "# /// script\n# dependencies = []\n# ///\n",
            "# /// script\n# dependencies = [\"six\"]\nresult = 1\n# ///\n",
            "# /// other\n# dependencies = [\"six\"]\n# ///\n",
        ] {
            assert_eq!(metadata(text.as_bytes()), Ok(None), "{text}");
        }
    }

    #[test]
    fn faults_of_a_block_are_named() {
        for (text, part) in [
            (
                "# /// script\n# dependencies = 1\n# ///\n",
                "`dependencies` is no list",
            ),
            (
                "# /// script\n# dependencies = [1]\n# ///\n",
                "a dependency is no text",
            ),
            (
                "# /// script\n# requires-python = 3\n# ///\n",
                "`requires-python` is no text",
            ),
            (
                "# /// script\n# requires-python = \"/tmp/python\"\n# ///\n",
                "no list of versions",
            ),
            ("# /// script\n# dependencies = [\n# ///\n", "PEP 723"),
            ("# /// script\n# ///\n# /// script\n# ///\n", "2 blocks"),
        ] {
            let error = metadata(text.as_bytes()).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
