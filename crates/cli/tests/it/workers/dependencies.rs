//! Python scripts with dependencies (PEP 723), and the interpreter of one worker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use meshwork_test_servers::servers::{Tool, need, need_for};

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
