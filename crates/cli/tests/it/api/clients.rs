//! The clients in `clients`: built as packages, installed in an empty folder, and tested against a server, with the examples
//! of docs/clients.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use meshwork_test_servers::servers::{Tool, need};

use super::Server;
use crate::common::{Ground, Running};

/// A language of a client.
struct Language {
    /// Folder of its sources in `clients`, and language of its blocks in the page.
    folder: &'static str,
    /// Ending of a program.
    ending: &'static str,
    /// Number of its examples.
    examples: usize,
}

const PYTHON: Language = Language {
    folder: "python",
    ending: "py",
    examples: 3,
};
const TYPESCRIPT: Language = Language {
    folder: "typescript",
    ending: "mjs",
    examples: 1,
};

/// Address of the server, and key, of the page.
const PAGE: (&str, &str) = ("127.0.0.1:3030", "mwk_…");

fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.nth(2).unwrap()
}

/// Longest silence of a compiler or a package manager, which share the host with all other tests.
const BUILDS: Duration = Duration::from_secs(300);

fn run(command: Command) -> String {
    let running = Running::start(command);
    running.ended_after_silence(BUILDS).ok().stdout
}

/// Returns an address that nobody has.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A command in a folder.
fn command(program: impl AsRef<Path>, folder: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(folder);
    command
}

/// Copies the sources of a client and the document of the API, because builds write beside them. Returns the copy and an empty
/// folder.
fn folders(ground: &Ground, language: &Language) -> (PathBuf, PathBuf) {
    let (source, empty) = (ground.path("source"), ground.path("empty"));
    let mut copy = Command::new("cp");
    copy.arg("-R")
        .arg(root().join("clients").join(language.folder));
    copy.arg(&source);
    run(copy);
    let document = root().join("docs/openapi.json");
    fs::copy(document, source.join("openapi.json")).unwrap();
    fs::create_dir(&empty).unwrap();
    (source, empty)
}

/// Returns the file in a folder with this ending.
fn built(folder: &Path, ending: &str) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let has = |path: &PathBuf| path.extension().is_some_and(|it| it == ending);
    paths.find(has).unwrap()
}

/// Returns the blocks of code of docs/clients.md in a language.
fn examples(language: &Language) -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let start = format!("```{}\n", language.folder);
    let blocks = page.split(&start).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// Runs the tests of a client, and the examples of the page. `program` returns the command that runs a file.
fn test(ground: &Ground, language: &Language, program: impl Fn(&Path) -> Command) {
    ground.run(&["context", "create"]).ok();
    ground
        .run(&["actor", "grant-node", "1", "--scope", "user"])
        .ok();
    let made = ground.run(&["key", "create", "client", "--scope", "user", "--actor", "1"]);
    let key = made.ok().stdout.trim().to_owned();
    let proxy = free_address();
    let server = Server::start(ground, &["--allow-host", &proxy]);
    let worker = ground.worker(&["--type", "osis", "--type", "python"]);
    let of_flows = ground.worker(&["--context", "1", "--type", "osis"]);
    let ending = language.ending;
    let live = root().join(format!("clients/{}/tests/live.{ending}", language.folder));
    let live = fs::read_to_string(live).unwrap();
    let file = ground.file(&format!("empty/live.{ending}"), live);
    let mut command = program(&file);
    command.args([&server.address, &proxy, &key]);
    assert_eq!(run(command), "all parts hold\n");
    let examples = examples(language);
    assert_eq!(examples.len(), language.examples);
    for (at, example) in examples.iter().enumerate() {
        let text = example
            .replace(PAGE.0, &server.address)
            .replace(PAGE.1, &key);
        let file = ground.file(&format!("empty/example-{at}.{ending}"), text);
        let printed = run(program(&file));
        // Each example says what it prints.
        let said = example
            .lines()
            .filter_map(|line| line.split_once("prints: "));
        let said: String = said.map(|(_, text)| format!("{text}\n")).collect();
        assert_eq!(printed, said, "{example}");
    }
    of_flows.stop();
    worker.stop();
    server.stop();
}

#[test]
fn the_python_client_is_installed_and_works() {
    let (Some(python), Some(packages)) = (need(Tool::Python), need(Tool::PythonSdk)) else {
        return;
    };
    let packages = packages.ancestors().nth(2).unwrap();
    let ground = Ground::embedded().unwrap();
    let (source, empty) = folders(&ground, &PYTHON);
    let mut build = command(&python, &source);
    build.args(["-m", "hatchling", "build", "-t", "wheel"]);
    build.env("PYTHONPATH", packages);
    run(build);
    let wheel = built(&source.join("dist"), "whl");
    let mut install = command(&python, &empty);
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]);
    install.args([
        "--disable-pip-version-check",
        "--root-user-action",
        "ignore",
    ]);
    install.arg("--target").arg("site").arg(wheel);
    run(install);
    let path = format!("{}:{}", empty.join("site").display(), packages.display());
    test(&ground, &PYTHON, |file| {
        let mut command = command(&python, &empty);
        command.arg(file).env("PYTHONPATH", &path);
        command
    });
}

/// Runs npm without the network. `modules` has the compiler, which the client's build looks for.
fn npm(folder: &Path, modules: &Path, args: &[&str]) {
    let mut npm = command("npm", folder);
    npm.args(args);
    npm.args(["--silent", "--offline", "--no-audit", "--no-fund"]);
    npm.env("NODE_PATH", modules);
    run(npm);
}

/// Returns the folder of TypeScript, if it is there, and the folder of packages around it.
fn compiler() -> Option<(PathBuf, PathBuf)> {
    let package = need(Tool::TypescriptSdk)?;
    let folders: Vec<_> = package.ancestors().skip(1).take(2).collect();
    Some((folders[0].to_owned(), folders[1].to_owned()))
}

#[test]
fn the_typescript_client_is_installed_and_works() {
    let Some((_, modules)) = compiler() else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    let (source, empty) = folders(&ground, &TYPESCRIPT);
    let mut build = command("node", &source);
    build.arg("build.mjs").env("NODE_PATH", &modules);
    run(build);
    npm(&source, &modules, &["pack", "--ignore-scripts"]);
    let package = built(&source, "tgz");
    npm(&empty, &modules, &["install", package.to_str().unwrap()]);
    test(&ground, &TYPESCRIPT, |file| {
        let mut command = command("node", &empty);
        command.arg(file);
        command
    });
}

#[test]
fn the_folder_of_the_typescript_client_can_be_installed_and_required() {
    let Some((typescript, modules)) = compiler() else {
        return;
    };
    let ground = Ground::embedded().unwrap();
    let (source, empty) = folders(&ground, &TYPESCRIPT);
    npm(&empty, &modules, &["install", source.to_str().unwrap()]);
    let used = "const mesh: Meshwork = new Meshwork('http://127.0.0.1:1', { key: 'k' });\n\
                // @ts-expect-error: a method is no number\nconst wrong: number = mesh.run;\nvoid wrong;\n\
                console.log(typeof JobFailed);\n";
    let mut names = Vec::new();
    for ending in ["mts", "cts"] {
        let name = format!("used.{ending}");
        let text = format!("import {{ JobFailed, Meshwork }} from 'meshwork-client';\n{used}");
        ground.file(&format!("empty/{name}"), text);
        names.push(name);
    }
    let mut compile = command("node", &empty);
    compile.arg(typescript.join("bin/tsc"));
    compile.args(["--strict", "--module", "NodeNext", "--target", "ES2022"]);
    run({
        compile.args(&names);
        compile
    });
    for program in ["used.mjs", "used.cjs"] {
        let mut node = command("node", &empty);
        node.arg(program);
        assert_eq!(run(node), "function\n", "{program}");
    }
}
