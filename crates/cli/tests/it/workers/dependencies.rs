//! Python scripts with dependencies (PEP 723), and the interpreter of one worker.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use meshwork_test_servers::servers::{RealServer, Tool, need, need_for};

use crate::common::{Done, Ground, Running};

/// Makes a package without network.
const WHEEL: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/demo-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("demo.py", "answer = 42\n")
    wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    wheel.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n")
"#;

/// Returns the path of an interpreter without wrappers, which may need programs of the usual `PATH`.
fn python() -> Option<PathBuf> {
    let named = need(Tool::Python)?;
    let printed = Command::new(named)
        .args(["-c", "import sys; print(sys.executable, end='')"])
        .output()
        .unwrap();
    Some(String::from_utf8(printed.stdout).unwrap().into())
}

/// Runs a script with this `PATH`.
fn run(ground: &Ground, python: &Path, path: &str, args: &[&str]) -> Done {
    let mut command = ground.command(&[&["run"], args].concat());
    command
        .env("MESHWORK_PYTHON", python)
        .env("MESHWORK_CACHE", ground.path("cache"))
        .env("PATH", path);
    Running::start(command).ended()
}

#[test]
fn dependencies_are_installed_once_and_then_need_no_installer() {
    let test = "dependencies_are_installed_once_and_then_need_no_installer";
    let (Some(python), Some(uv)) = (python(), need_for(test, Tool::Uv)) else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    let made = Command::new(&python)
        .args(["-c", WHEEL])
        .arg(ground.path(""))
        .status();
    assert!(made.unwrap().success());
    let wheel = ground.path("demo-1.0-py3-none-any.whl");
    let block = format!(
        "# /// script\n# dependencies = [\"demo @ file://{}\"]\n# ///\n",
        wheel.display()
    );
    ground.file(
        "a.py",
        format!("{block}import demo\nresult = demo.answer\n"),
    );
    let folder = uv.parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    // The variables of a job do not reach the installer, whose work serves other jobs.
    let args = ["a.py", "--env", "UV_OFFLINE=nonsense"];
    assert_eq!(run(&ground, &python, &path, &args).ok().stdout, "42\n");
    // Another script with the same dependencies needs neither the package nor the installer.
    fs::remove_file(wheel).unwrap();
    ground.file(
        "b.py",
        format!("{block}import demo\nresult = demo.answer + 1\n"),
    );
    assert_eq!(
        run(&ground, &python, "/nowhere", &["b.py"]).ok().stdout,
        "43\n"
    );
}

#[test]
fn a_missing_installer_is_named_and_nothing_is_run() {
    let Some(python) = python() else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    let mark = ground.path("mark");
    let script =
        format!("# /// script\n# dependencies = [\"six\"]\n# ///\nopen({mark:?}, 'w').close()\n");
    ground.file("a.py", script);
    let args = ["a.py", "--retries", "3", "--json"];
    let job = run(&ground, &python, "/nowhere", &args).exits(1).json();
    assert_eq!(job["attempts"], 1, "{job}");
    let error = job["error"].as_str().unwrap();
    assert!(error.contains("there is no program `uv`"), "{error}");
    assert!(!mark.exists());
}

#[test]
fn a_worker_has_an_interpreter_of_its_own() {
    let Some(python) = python() else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    let python = python.to_str().unwrap();
    for (args, part) in [
        (["python", "/nowhere/python3"], "there is no such file"),
        (["exec", python], "add --type python"),
    ] {
        let args = ["worker", "--type", args[0], "--python", args[1]];
        let said = ground.run(&args).exits(2).stderr;
        assert!(said.contains("--python") && said.contains(part), "{said}");
    }
    let args = ["worker", "--json", "--type", "python", "--python", python];
    let mut command = ground.command(&args);
    command.env("MESHWORK_PYTHON", "/nowhere/python3");
    let mut worker = Running::start(command);
    worker.line();
    ground.file("a.py", "result = 6 * 7");
    ground.run(&["job", "submit", "a.py", "--id", "a"]).ok();
    ground.run(&["job", "wait", "a"]).ok();
    assert_eq!(ground.run(&["job", "result", "a"]).ok().stdout, "42\n");
    worker.stop();
}

/// An index on this host, with the package `demo`. It notes the paths of requests.
struct Index {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Index {
    fn with(wheel: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let notes = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = answer(&stream.unwrap(), &wheel, &notes);
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

/// Answers one request, and closes the connection.
fn answer(mut stream: &TcpStream, wheel: &[u8], notes: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut words = first.split(' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    notes.lock().unwrap().push(path.to_owned());
    let page = "<a href=\"/files/demo-1.0-py3-none-any.whl\">demo-1.0-py3-none-any.whl</a>";
    let (status, kind, body) = match path {
        "/simple/demo/" => ("200 OK", "text/html", page.as_bytes()),
        "/files/demo-1.0-py3-none-any.whl" => ("200 OK", "application/octet-stream", wheel),
        _ => ("404 Not Found", "text/plain", &b""[..]),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    match method {
        Some("HEAD") => Ok(()),
        _ => stream.write_all(body),
    }
}

/// Makes the package `demo`, and returns its content.
fn wheel(ground: &Ground, python: &Path) -> Vec<u8> {
    let made = Command::new(python)
        .args(["-c", WHEEL])
        .arg(ground.path(""))
        .status();
    assert!(made.unwrap().success());
    fs::read(ground.path("demo-1.0-py3-none-any.whl")).unwrap()
}

#[test]
fn strict_refuses_all_but_names_of_the_index_before_anything_runs() {
    let Some(python) = python() else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    let index = Index::with(Vec::new());
    let url = format!("{}/what-the-job-read/leak-1.0-py3-none-any.whl", index.url);
    for (block, named) in [
        (format!("dependencies = [\"leak @ {url}\"]"), &*url),
        (format!("dependencies = [\"{url}\"]"), &url),
        (
            "dependencies = [\"six\", \"./leak\"]".to_owned(),
            "`./leak`",
        ),
        (
            "dependencies = [\"/srv/leak-1.0-py3-none-any.whl\"]".to_owned(),
            "/srv/leak",
        ),
        (
            "dependencies = [\"leak @ git+https://localhost/x\"]".to_owned(),
            "git+https",
        ),
        (
            "dependencies = [\"--index-url=http://localhost/\"]".to_owned(),
            "--index-url",
        ),
        (
            format!(
                "dependencies = [\"six\"]\n# [tool.uv]\n# extra-index-url = [\"{}\"]",
                index.url
            ),
            "`extra-index-url` of `[tool.uv]`",
        ),
        (
            format!("dependencies = [\"six\"]\n# [tool.uv.sources]\n# six = {{ url = \"{url}\" }}"),
            "`sources` of `[tool.uv]`",
        ),
    ] {
        let mark = ground.path("mark");
        ground.file(
            "a.py",
            format!("# /// script\n# {block}\n# ///\nopen({mark:?}, 'w')\n"),
        );
        let args = ["a.py", "--sandbox", "strict", "--retries", "3", "--json"];
        // There is no installer, which would be named.
        let job = run(&ground, &python, "/nowhere", &args).exits(1).json();
        let error = job["error"].as_str().unwrap();
        assert!(
            error.contains("installs only packages of the worker's index"),
            "{error}"
        );
        assert!(error.contains(named) && error.contains("remove"), "{error}");
        assert_eq!(
            (&job["attempts"], &job["dead"]),
            (&1.into(), &"permanent".into())
        );
        assert!(!mark.exists());
    }
    assert_eq!(index.requests(), Vec::<String>::new());
}

/// A host with an installer, a cache and an index of its own.
struct Host {
    ground: Ground,
    python: PathBuf,
    path: String,
    index: Index,
    /// SHA-256 of the package.
    hash: String,
}

impl Host {
    fn new(test: &str) -> Option<Self> {
        let (python, uv) = (python()?, need_for(test, Tool::Uv)?);
        let ground = Ground::embedded()?;
        let wheel = wheel(&ground, &python);
        let hash = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest(), end='')";
        let hash = Command::new(&python)
            .args(["-c", hash])
            .arg(ground.path("demo-1.0-py3-none-any.whl"))
            .output()
            .unwrap();
        let path = std::env::var("PATH").unwrap();
        Some(Self {
            path: format!("{}:{path}", uv.parent().unwrap().display()),
            index: Index::with(wheel),
            hash: String::from_utf8(hash.stdout).unwrap(),
            ground,
            python,
        })
    }

    fn start(&self, args: &[&str]) -> Running {
        let mut command = self
            .ground
            .command(&[args, &["--sandbox", "strict"]].concat());
        command
            .env("MESHWORK_PYTHON", &self.python)
            .env("MESHWORK_CACHE", self.ground.path("cache"))
            .env("UV_DEFAULT_INDEX", format!("{}/simple", self.index.url))
            .env("PATH", &self.path);
        Running::start(command)
    }

    fn run(&self, script: &str) -> Done {
        self.start(&["run", script, "--retries", "0"]).ended()
    }

    /// Runs the parent, then its child by a worker. Returns the child's record.
    fn child(&self) -> serde_json::Value {
        let id = self.run("parent.py").ok().stdout;
        let mut worker = self.start(&["worker", "--json", "--type", "python"]);
        worker.line();
        self.ground.run(&["job", "wait", id.trim()]);
        worker.stop();
        let show = ["job", "show", id.trim(), "--json"];
        self.ground.run(&show).ok().json()
    }
}

/// Returns a script with a dependency.
fn script(dependency: &str) -> String {
    format!(
        "# /// script\n# dependencies = [\"{dependency}\"]\n# ///\nimport demo\nresult = demo.answer\n"
    )
}

#[test]
fn strict_installs_names_with_hashes_and_nothing_for_children() {
    let test = "strict_installs_names_with_hashes_and_nothing_for_children";
    let Some(host) = Host::new(test) else {
        return;
    };
    let child = serde_json::json!(script("demo"));
    let parent = format!("result = add_child({child}, type='python')");
    host.ground.file("parent.py", parent);
    // The child would tell the index a name.
    let refused = host.child();
    let error = refused["error"].as_str().unwrap();
    assert!(
        error.contains("a script in the sandbox profile `strict` added"),
        "{error}"
    );
    assert_eq!(host.index.requests(), Vec::<String>::new());

    let wrong = "ab".repeat(32);
    let file = |name: &str, dependency: &str| drop(host.ground.file(name, script(dependency)));
    file("wrong.py", &format!("demo==1.0 --hash=sha256:{wrong}"));
    let said = host.run("wrong.py").exits(1).stderr;
    assert!(
        said.contains("cannot be installed") && said.contains(&wrong),
        "{said}"
    );
    file(
        "right.py",
        &format!("demo==1.0 --hash=sha256:{}", host.hash),
    );
    assert_eq!(host.run("right.py").ok().stdout, "42\n");
    file("name.py", "demo");
    assert_eq!(host.run("name.py").ok().stdout, "42\n");
    let requests = host.index.requests();
    assert!(
        requests.iter().any(|path| path == "/simple/demo/"),
        "{requests:?}"
    );
    // Now the child needs no installer.
    assert_eq!(host.child()["output"], 42);
}

/// An installer. It is a fake, which installs nothing, and notes its cache.
const FAKE_UV: &str = "#!/bin/sh
[ \"$1\" = venv ] || exit 0
while [ $# -gt 1 ]; do
  [ \"$1\" = --python ] && python=$2
  [ \"$1\" = --cache-dir ] && echo \"$2\" >> FOLDER/caches
  shift
done
mkdir -p \"$1/bin\" && ln -s \"$python\" \"$1/bin/python\"
";

#[test]
fn contexts_share_no_cache() {
    let (Some(python), Some(server)) = (python(), RealServer::redis().start()) else {
        return;
    };
    let ground = Ground::url(server.url());
    fs::create_dir(ground.path("bin")).unwrap();
    let uv = FAKE_UV.replace("FOLDER", &ground.path("").display().to_string());
    let uv = ground.file("bin/uv", uv);
    fs::set_permissions(&uv, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    ground.file(
        "a.py",
        "# /// script\n# dependencies = [\"six\"]\n# ///\nresult = 1\n",
    );
    let path = format!(
        "{}:{}",
        ground.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    for context in ["7", "8"] {
        ground.run(&["context", "create", "--id", context]).ok();
        for profile in ["open", "open", "standard"] {
            let folder = ground.path("");
            let mut command = ground.command(&[
                "worker",
                "--json",
                "--type",
                "python",
                "--context",
                context,
                "--sandbox",
                profile,
                "--write",
                folder.to_str().unwrap(),
            ]);
            command
                .env("MESHWORK_PYTHON", &python)
                .env("MESHWORK_CACHE", ground.path("cache"))
                .env("PATH", &path);
            let mut worker = Running::start(command);
            worker.line();
            let id = ground
                .run(&["job", "enqueue", "a.py", "--context", context])
                .ok()
                .stdout;
            ground
                .run(&["job", "wait", id.trim(), "--context", context])
                .ok();
            worker.stop();
        }
    }
    let caches = fs::read_to_string(ground.path("caches")).unwrap();
    let mut caches: Vec<_> = caches.lines().collect();
    // Once for each context and profile.
    assert_eq!(caches.len(), 4, "{caches:?}");
    caches.sort_unstable();
    caches.dedup();
    assert_eq!(caches.len(), 4, "{caches:?}");
}
