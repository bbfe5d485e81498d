//! Variables of a job act only in its own processes, inside of the sandbox: in every runtime, profile and kind of host.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use meshwork::runtime::{Confinement, Runtime, builtin, interpreter, sandbox_host};
use meshwork_model::job::Job;
use meshwork_model::sandbox::Profile;
use meshwork_test_servers::servers::need_program;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::LAUNCHED;
use super::super::support::{PATIENCE, job, output, run_of, within};
use super::escape::{ENVIRONMENT, WITHOUT_NAMESPACES};
use super::{NOBODY, is_root, need_python, run_again};

/// Library that appends a line to a file for each process that loads it.
const LIBRARY: &str = include_str!("observer.c");

/// A compiler of V. It is a fake, since no package manager has the real one.
const FAKE_V: &str = "#!/bin/sh
if [ \"$1\" = version ]; then echo 'V 0.5.1 abc'; exit; fi
while [ \"$1\" != -o ]; do shift; done
printf '#!/bin/sh\\necho 1\\n' > \"$2\"
";

/// An installer. It is a fake, which installs nothing, and needs no index.
const FAKE_UV: &str = "#!/bin/sh
[ \"$1\" = venv ] || exit 0
while [ $# -gt 1 ]; do [ \"$1\" = --python ] && python=$2; shift; done
mkdir -p \"$1/bin\" && ln -s \"$python\" \"$1/bin/python\"
";

/// Variables that the dynamic linker, the C library, interpreters, tools and this program read, without those that
/// [`variables_for`] gives a meaning.
const READ: &str = "
LD_BIND_NOW LD_BIND_NOT LD_DYNAMIC_WEAK LD_HWCAP_MASK LD_LIBRARY_PATH LD_ORIGIN_PATH LD_POINTER_GUARD LD_PROFILE
LD_PROFILE_OUTPUT LD_PREFER_MAP_32BIT_EXEC LD_USE_LOAD_BIAS LD_WARN LDD_ARGV0 GLIBC_TUNABLES MALLOC_ARENA_MAX MALLOC_CHECK_
MALLOC_PERTURB_ MALLOC_TOP_PAD_ MALLOC_TRACE GCONV_PATH GETCONF_DIR LOCPATH LOCALDOMAIN NLSPATH RES_OPTIONS
RESOLV_HOST_CONF RESOLV_ADD_TRIM_DOMAINS HOSTALIASES TZ TZDIR LANGUAGE LC_ALL NIS_PATH
PYTHONBREAKPOINT PYTHONCASEOK PYTHONDEVMODE PYTHONDUMPREFS PYTHONEXECUTABLE PYTHONFAULTHANDLER PYTHONHASHSEED PYTHONHOME
PYTHONINSPECT PYTHONIOENCODING PYTHONMALLOC PYTHONPATH PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX PYTHONSTARTUP
PYTHONTRACEMALLOC PYTHONUSERBASE PYTHONWARNINGS NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_REPL_EXTERNAL_MODULE
PERL5OPT PERL5LIB PERL5DB PERLLIB PERLIO RUBYOPT RUBYLIB RUBYPATH GEM_HOME GEM_PATH BUNDLE_GEMFILE LUA_INIT LUA_PATH PHPRC
PHP_INI_SCAN_DIR R_PROFILE JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH DOTNET_STARTUP_HOOKS
BASH_ENV ENV BASHOPTS SHELLOPTS BASH_XTRACEFD CDPATH FPATH GLOBIGNORE IFS PS4 PROMPT_COMMAND ZDOTDIR POSIXLY_CORRECT
GIT_EXEC_PATH GIT_SSH_COMMAND GIT_CONFIG_GLOBAL CURL_HOME NETRC EDITOR PAGER LESSOPEN SSL_CERT_FILE SSL_CERT_DIR
OPENSSL_CONF OPENSSL_MODULES http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_CONFIG_FILE UV_PYTHON UV_OFFLINE UV_CACHE_DIR
PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE VIRTUAL_ENV CONDA_PREFIX VFLAGS VROOT VEXE CC CFLAGS CPATH LIBRARY_PATH
COMPILER_PATH TCC HOME TMPDIR TMP TEMP XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME USER LOGNAME SHELL
RUST_LOG RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_MIN_STACK TOKIO_WORKER_THREADS LLVM_PROFILE_FILE REDIS_URL MESHWORK_DATA
MESHWORK_CACHE MESHWORK_PYTHON MESHWORK_V MESHWORK_SANDBOX MESHWORK_HANDOVER MESHWORK_CALLS MESHWORK_CALLS_SOCKET
MESHWORK_INPUTS MESHWORK_JOB MESHWORK_SLOT CALLER_ID CONTEXT_ID JOB_ID
";

/// Folder that the processes of one test share.
struct Shared(PathBuf);

impl Shared {
    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes the files, for every user.
    fn make(&self, compiler: &Path) {
        let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for folder in ["", "read", "fakes", "write", "caches"] {
            fs::create_dir_all(self.at(folder)).unwrap();
            open(&self.at(folder), 0o777).unwrap();
        }
        for (name, text) in [
            ("fakes/v", FAKE_V),
            ("fakes/uv", FAKE_UV),
            ("write/log", ""),
        ] {
            fs::write(self.at(name), text).unwrap();
            open(&self.at(name), 0o777).unwrap();
        }
        fs::write(self.at("library.c"), LIBRARY).unwrap();
        for tag in ["preload", "audit"] {
            let mut command = Command::new(compiler);
            command.args(["-shared", "-fPIC", "-o"]);
            command.arg(self.library(tag)).arg(self.at("library.c"));
            command.arg(format!("-DTAG=\"{tag}\""));
            command.arg(format!("-DLOG=\"{}\"", self.at("write/log").display()));
            assert!(command.status().unwrap().success());
        }
    }

    fn library(&self, tag: &str) -> PathBuf {
        self.at(&format!("read/{tag}.so"))
    }

    /// Returns the lines of the libraries, and the files of the dynamic linker, since the last call.
    fn traces(&self) -> (Vec<String>, Vec<String>) {
        let log = fs::read_to_string(self.at("write/log")).unwrap();
        fs::write(self.at("write/log"), "").unwrap();
        let mut debug = Vec::new();
        for entry in fs::read_dir(self.at("write")).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("debug") {
                debug.push(fs::read_to_string(entry.path()).unwrap());
                fs::remove_file(entry.path()).unwrap();
            }
        }
        (log.lines().map(str::to_owned).collect(), debug)
    }
}

/// Returns the variables of a job: each that something reads, and those that leave a trace.
fn variables_for(shared: &Shared) -> serde_json::Value {
    // Interpreters run with it: none of them is the name of a file or an option that exists.
    let mut all: serde_json::Map<_, _> = READ
        .split_whitespace()
        .map(|name| (name.to_owned(), "".into()))
        .collect();
    for (name, value) in [
        ("LD_PRELOAD", shared.library("preload")),
        ("LD_AUDIT", shared.library("audit")),
        ("LD_DEBUG_OUTPUT", shared.at("write/debug")),
        ("LD_DEBUG", "files".into()),
    ] {
        all.insert(name.to_owned(), value.to_str().unwrap().into());
    }
    all.into()
}

/// A kind of job.
struct Kind {
    name: &'static str,
    runtime: Arc<dyn Runtime>,
    script: &'static str,
}

fn kinds() -> Vec<Kind> {
    let kind = |name, script_type: &str, script| Kind {
        name,
        runtime: builtin(script_type).unwrap(),
        script,
    };
    let configured = interpreter(&"shell".parse().unwrap(), "sh {script}").unwrap();
    vec![
        kind("python", "python", "result = 1"),
        kind(
            "dependencies",
            "python",
            "# /// script\n# dependencies = [\"six\"]\n# ///\nresult = 1",
        ),
        kind("script", "exec", "#!/bin/sh\necho 1"),
        kind("program", "exec", r#"{"program": "echo", "args": ["1"]}"#),
        kind("v", "v", "println('1')"),
        #[cfg(feature = "sal")]
        kind("sal", "sal", "1"),
        Kind {
            name: "configured",
            runtime: configured,
            script: "echo 1",
        },
    ]
}

/// Returns what variables of the job did outside of its own confined processes.
async fn try_kind(shared: &Shared, kind: &Kind, profile: Profile) -> Vec<String> {
    let env = variables_for(shared).to_string();
    let fields = [("script", kind.script), ("env_vars", &env)];
    let (mut run, _stop) = run_of(job(&fields.map(|(n, v)| (n, v.as_bytes()))), PATIENCE);
    run.confinement = confinement(shared, profile);
    let report = within(kind.runtime.run(run)).await;
    let what = format!("{} in {profile}", kind.name);
    assert_eq!(output(&report).trim(), "1", "{what}");
    let (lines, debug) = shared.traces();
    let loads = |tag: &str| lines.iter().any(|line| line.starts_with(tag));
    assert!(loads("preload") && loads("audit"), "{what}: {lines:?}");
    assert!(!debug.is_empty(), "{what}");
    let is_outside = |line: &&String| {
        let helpers = ["__sandbox launch", "__sandbox confine", "/fakes/"];
        let is_confined = profile == Profile::Open || line.contains(" confined ");
        !is_confined || helpers.iter().any(|helper| line.contains(helper))
    };
    let mut wrong: Vec<_> = lines.iter().filter(is_outside).cloned().collect();
    let this = std::env::args().next().unwrap();
    let by_this = debug.iter().filter(|text| text.contains(&this)).count();
    if by_this != usize::from(kind.name == "sal") {
        wrong.push(format!("the linker wrote {by_this} files for {this}"));
    }
    let named = |line: &String| format!("{what}: {line}");
    wrong.iter().map(named).collect()
}

fn confinement(shared: &Shared, profile: Profile) -> Confinement {
    let mut confinement = Confinement::of(profile);
    confinement.read.push(shared.at("read"));
    confinement.read.push(shared.at("fakes"));
    confinement.write.push(shared.at("write"));
    confinement
}

/// Runs in processes that the test below starts.
#[tokio::test]
#[ignore = "started by another test"]
async fn kinds_and_profiles() {
    let shared = Shared(std::env::var(ENVIRONMENT).unwrap().into());
    let host = sandbox_host().await.unwrap();
    let mut wrong = Vec::new();
    for kind in kinds() {
        for profile in Profile::ALL {
            if host.allows(profile).is_ok() {
                wrong.extend(try_kind(&shared, &kind, profile).await);
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{host:?}");
}

#[test]
fn variables_of_a_job_act_only_in_its_confined_processes() {
    let test = "variables_of_a_job_act_only_in_its_confined_processes";
    if !LAUNCHED || need_python().is_none() {
        return;
    }
    let Some(compiler) = need_program(test, "cc") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let shared = Shared(folder.path().canonicalize().unwrap());
    shared.make(&compiler);
    let path = std::env::var("PATH").unwrap();
    let hosts = [
        (&[][..], None),
        (&[][..], Some(NOBODY)),
        (&WITHOUT_NAMESPACES[..], None),
        (&WITHOUT_NAMESPACES[..], Some(NOBODY)),
    ];
    // Only root can be both.
    let hosts = if is_root() { &hosts[..] } else { &hosts[..1] };
    for (number, (around, user)) in hosts.iter().enumerate() {
        let fakes = shared.at("fakes");
        let variables = [
            format!("PATH={}:{path}", fakes.display()),
            format!("MESHWORK_V={}/v", fakes.display()),
            format!("MESHWORK_CACHE={}/{number}", shared.at("caches").display()),
        ];
        let mut words = vec!["env"];
        words.extend(variables.iter().map(String::as_str));
        words.extend(around.iter());
        let folder = shared.0.to_str().unwrap();
        run_again(
            "confined::environment::kinds_and_profiles",
            &words,
            *user,
            folder,
        );
    }
}

/// Variables of the launchers below a process whose arguments have a word.
fn launchers(parent: u32, word: &str) -> Vec<Vec<u8>> {
    let read = |pid: u32, file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
        {
            let words = String::from_utf8_lossy(&read(child, "cmdline")).replace('\0', " ");
            let is_launcher =
                words.contains(" __sandbox launch ") || words.contains(" __sandbox confine ");
            if is_launcher && words.contains(word) {
                found.push(read(child, "environ"));
                found.extend(launchers(child, word));
            }
        }
    }
    found
}

#[tokio::test]
async fn launchers_have_no_variables() {
    // The variables of processes that deny access can be read by root.
    if !LAUNCHED || !is_root() {
        return;
    }
    for (profile, number) in [(Profile::Open, 1), (Profile::Strict, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let shared = Shared(folder.path().canonicalize().unwrap());
        let [here, there] = ["here", "there"].map(|name| shared.at(name));
        for pipe in [&here, &there] {
            mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        let script = "#!/bin/sh\necho >\"$1\"; read x <\"$2\"";
        let script = serde_json::json!({ "script": script, "args": [here, there] }).to_string();
        let env = serde_json::json!({ "LD_BIND_NOW": "1", "A": "b" }).to_string();
        let fields = [("script", script.as_str()), ("env_vars", &env)];
        let job: Job = job(&fields.map(|(n, v)| (n, v.as_bytes())));
        let (mut run, _stop) = run_of(job, PATIENCE);
        run.confinement = Confinement::of(profile);
        run.confinement.write.push(shared.0.clone());
        let running = tokio::spawn(async move { builtin("exec").unwrap().run(run).await });
        // A thread of the runtime would hold up the end of a test whose job does not open the pipe.
        let (tell, found) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            fs::read(&here).unwrap();
            let found = launchers(std::process::id(), here.to_str().unwrap());
            fs::write(there, "\n").unwrap();
            tell.send(found).unwrap();
        });
        let found = within(found).await.unwrap();
        within(running).await.unwrap().result.unwrap();
        assert_eq!(found, vec![Vec::<u8>::new(); number], "{profile}");
    }
}
