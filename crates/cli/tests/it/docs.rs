//! The pages for users, run as they stand. A block of code whose first lines name a file in a comment becomes that file;
//! a block `console` is run: each line after `$ ` by `sh`, and the lines below are what it prints, `…` standing for
//! anything. A worker whose command ends with `&` goes on to the end of the page. The server `redis://127.0.0.1:6379` is a fresh database.

use std::fs;
use std::path::Path;
use std::process::Command;

use meshwork_test_servers::fakes::mycelium::hosted::FakeMycelium;
use meshwork_test_servers::servers::{RealServer, Tool, find, need};

use crate::common::{Ground, Running};

/// A block of a page.
struct Block<'a> {
    language: &'a str,
    line: usize,
    text: String,
}

/// All blocks of code, in order.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let language = info.split(',').next().unwrap_or_default();
                let text = String::new();
                let line = at + 1;
                open = Some(Block {
                    language,
                    line,
                    text,
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    blocks
}

/// Returns a file of a page.
pub(crate) fn file_of(page: &str, name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let text = fs::read_to_string(root.unwrap().join(page)).unwrap();
    let found = blocks(&text).into_iter().map(|block| block.text);
    let mut found = found.filter(|text| file_name(text) == Some(name));
    found.next().unwrap()
}

/// The file that a block is, by the comment that begins it.
fn file_name(text: &str) -> Option<&str> {
    let mut lines = text.lines().take(2);
    let mut named = lines.find(|line| !line.starts_with("#!") && *line != "<?php")?;
    named = named
        .strip_prefix("# ")
        .or_else(|| named.strip_prefix("// "))?;
    (named.contains('.') && !named.contains(' ')).then_some(named)
}

/// The commands of a block, each with what it prints.
fn commands(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, prints))) => prints.push(line),
            (None, None) => panic!("a console block begins with `$ `: {line}"),
        }
    }
    commands
}

/// Returns true if a line matches that of the page, where `…` stands for anything.
fn is_as(line: &str, said: &str) -> bool {
    let mut parts = said.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut open = false;
    for part in parts {
        open = part.is_empty();
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    open || rest.is_empty()
}

/// `sh` with the command `meshwork` in its `PATH`, in the ground's folder and over its data.
fn shell(ground: &Ground, line: &str) -> Command {
    let meshwork = Path::new(env!("CARGO_BIN_EXE_meshwork"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", meshwork.parent().unwrap().display());
    let mut command = ground.command::<&str>(&[]);
    let with = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)));
    let with: Vec<_> = with.collect();
    let folder = command.get_current_dir().unwrap().to_owned();
    command = Command::new("/bin/sh");
    command.env_clear().current_dir(folder);
    for (name, value) in with {
        value.map(|value| command.env(name, value));
    }
    command.env("PATH", path).args(["-c", line]);
    clients(ground, &mut command);
    command
}

/// Shows the clients of other languages to a command.
fn clients(ground: &Ground, command: &mut Command) {
    let folder = |tool, levels| {
        let path = find(tool)?;
        Some(path.ancestors().nth(levels)?.to_owned())
    };
    let packages = [Tool::RedisPy, Tool::Cryptography].map(|tool| folder(tool, 2));
    let packages = std::env::join_paths(packages.into_iter().flatten()).unwrap();
    let found = [
        ("PYTHONPATH", Some(packages.into())),
        ("NODE_PATH", folder(Tool::Ioredis, 2)),
        ("GOPATH", folder(Tool::Redigo, 6)),
    ];
    for (name, path) in found {
        path.map(|path| command.env(name, path));
    }
    command.env("GO111MODULE", "off");
    command.env("GOCACHE", ground.path("go-cache"));
}

/// The client that a command needs.
fn client(command: &str) -> Option<Tool> {
    let needs = [
        ("redis-cli ", Tool::RedisCli),
        ("python3 enqueue.py", Tool::RedisPy),
        ("python3 send.py", Tool::Cryptography),
        ("node ", Tool::Ioredis),
        ("go run ", Tool::Redigo),
        ("php ", Tool::PhpRedis),
    ];
    let mut found = needs
        .into_iter()
        .filter(|(start, _)| command.starts_with(start));
    found.next().map(|(_, tool)| tool)
}

/// The address of the API that a page names.
const API: &str = "127.0.0.1:3030";

/// Returns an address that nobody has.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

/// The server that a page names, and the one that is there.
const SERVER: &str = "redis://127.0.0.1:6379";

fn url(ground: &Ground) -> String {
    let command = ground.command::<&str>(&[]);
    let mut with = command.get_envs();
    let (_, url) = with.find(|(name, _)| *name == "REDIS_URL").unwrap();
    url.unwrap().to_str().unwrap().to_owned()
}

/// Runs a page.
fn run(page: &str) {
    run_with(page, &[]);
}

/// Runs a page, with these texts in the place of others.
fn run_with(page: &str, replaced: &[(&str, String)]) {
    if need(Tool::Python).is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let text = fs::read_to_string(root.join(page)).unwrap();
    let text = replaced
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to));
    let ground = Ground::embedded().unwrap();
    let server = Ground::redis();
    let url = server.as_ref().map(url);
    let api = free_address();
    let mut in_background = Vec::new();
    let mut ran = 0;
    for block in blocks(&text) {
        if block.language != "console" {
            if let Some(name) = file_name(&block.text) {
                let here = url.as_deref().unwrap_or(SERVER);
                ground.file(name, block.text.replace(SERVER, here));
            }
            continue;
        }
        for (command, prints) in commands(&block.text) {
            let place = format!("{page}:{}: {command}", block.line);
            let command = match &url {
                Some(url) => command.replace(SERVER, url),
                None if command.contains(SERVER) => continue,
                None => command,
            };
            let command = command.replace(API, &api);
            if client(&command).is_some_and(|tool| need(tool).is_none()) {
                // The rest of the block needs what it does.
                break;
            }
            if let Some(command) = command.strip_suffix('&') {
                // The shell becomes the command, so that it ends with the page.
                let mut running = Running::start(shell(&ground, &format!("exec {command}")));
                let ready = ["listening to", "API at", "serving messages"];
                let is_ready = |line: &str| ready.iter().any(|word| line.contains(word));
                while running.says().is_some_and(|line| !is_ready(&line)) {}
                in_background.push(running);
                continue;
            }
            let done = Running::start(shell(&ground, &command)).ended();
            let lines: Vec<_> = done.stdout.lines().collect();
            let is_said = lines.len() == prints.len()
                && lines
                    .iter()
                    .zip(&prints)
                    .all(|(line, said)| is_as(line, said));
            assert!(is_said, "{place}\nprints {lines:#?}\n{}", done.stderr);
            ran += 1;
        }
    }
    assert!(ran > 0, "{page} has no command");
}

#[test]
fn a_page_says_what_is_printed() {
    assert!(is_as("a b c", "a … c") && is_as("abc", "…") && is_as("abc", "ab…"));
    assert!(!is_as("a b", "a …c") && !is_as("abc", "ab") && !is_as("ab", "abc"));
    assert_eq!(file_name("#!/bin/sh\n# a.sh\n"), Some("a.sh"));
    assert_eq!(file_name("<?php\n// a.php\n"), Some("a.php"));
    assert_eq!(file_name("import x\n"), None);
}

#[test]
fn scripts() {
    run("docs/scripts.md");
}

#[test]
fn embedded_to_redis() {
    run("docs/embedded-to-redis.md");
}

#[test]
fn api() {
    run("docs/api.md");
}

#[test]
fn mesh() {
    let servers = [RealServer::redis().start(), RealServer::redis().start()];
    let [Some(alice), Some(bob)] = servers else {
        return;
    };
    let first = FakeMycelium::start(&[]);
    let second = FakeMycelium::start(&[first.link()]);
    let replaced = [
        ("redis://127.0.0.1:6379", alice.url()),
        ("redis://127.0.0.1:6380", bob.url()),
        ("http://127.0.0.1:8990", first.url()),
        ("http://127.0.0.1:8991", second.url()),
    ];
    run_with("docs/mesh.md", &replaced);
}

#[test]
fn any_language() {
    run("docs/any-language.md");
}

/// A Python developer gets from nothing to a result in fewer than ten commands.
#[test]
fn python_needs_few_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let page = fs::read_to_string(root.join("docs/any-language.md")).unwrap();
    let blocks = blocks(&page);
    let shells = blocks
        .iter()
        .filter(|block| ["sh", "console"].contains(&block.language));
    let mut typed = Vec::new();
    for line in shells.flat_map(|block| block.text.lines()) {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        typed.push(line);
        if line == "python3 enqueue.py" {
            break;
        }
    }
    assert_eq!(typed.last(), Some(&"python3 enqueue.py"), "{typed:#?}");
    assert!(typed.len() < 10, "{typed:#?}");
}

#[test]
fn quickstart() {
    run("docs/quickstart.md");
}

#[test]
fn sandbox() {
    run("docs/sandbox.md");
}

#[test]
fn runtimes() {
    run("docs/runtimes.md");
}

#[test]
fn coming_from() {
    run("docs/coming-from.md");
}

#[test]
fn install() {
    run("docs/install.md");
}

/// The unit of the worker runs the binary that install.md and the image put there, with options of this version.
#[test]
fn the_unit_runs_the_installed_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let unit = read("deploy/systemd/meshwork-worker.service");
    let mut lines = unit.lines();
    let start = lines
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let (program, arguments) = start.split_once(' ').unwrap();
    let page = read("docs/install.md");
    assert!(page.contains(&format!("`{program}`")), "{program}");
    assert!(page.contains(&format!("/target/dist/meshwork {program}\n")));
    assert!(arguments.contains("--shutdown-timeout"), "{arguments}");
    let ground = Ground::embedded().unwrap();
    let done = shell(&ground, &format!("meshwork {arguments} --help"));
    Running::start(done).ended().ok();
}

/// Returns the commands of `meshwork` in a page, without placeholders: those of blocks, and those within a sentence.
fn quoted(page: &str) -> Vec<String> {
    let within = page.split('`').skip(1).step_by(2);
    let blocks = page.lines().filter_map(|line| line.strip_prefix("$ "));
    let parts = blocks.chain(within).flat_map(|line| {
        let line = line.split(" # ").next().unwrap_or_default();
        let line = line.split(" 2>").next().unwrap_or_default();
        line.split(['|', ';', '&', '>', '\n']).map(str::trim)
    });
    let is_placeholder = |word: &str| {
        let capitals = word.bytes().filter(u8::is_ascii_uppercase).count();
        capitals > 1 && !word.contains('=') && !word.chars().any(|c| c.is_ascii_lowercase())
    };
    let is_whole = |part: &&str| {
        part.starts_with("meshwork ")
            // A file that the page does not have.
            && !part.contains("routing.yaml")
            && !part.contains(['…', '$', '<', '(', '[', '*', '{', '\\'])
            && !part.split_whitespace().any(is_placeholder)
    };
    parts.filter(is_whole).map(str::to_owned).collect()
}

/// Each command is one that this version understands, with its options and their values.
#[test]
fn each_quoted_command_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let root = root.expect("the crate is in the repository");
    let mut pages = vec![root.join("README.md")];
    let docs = fs::read_dir(root.join("docs")).expect("it is there");
    pages.extend(docs.filter_map(|entry| Some(entry.ok()?.path())));
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages {
        let text = fs::read_to_string(&page).expect("it can be read");
        for command in quoted(&text) {
            // The option prints the help if all before it is understood.
            let (ours, theirs) = command.split_once(" -- ").unwrap_or((&command, ""));
            let theirs = if theirs.is_empty() {
                theirs.to_owned()
            } else {
                format!(" -- {theirs}")
            };
            let done = shell(&ground, &format!("{ours} --help{theirs}")).output();
            let done = done.expect("sh runs");
            seen += 1;
            if !done.status.success() {
                let said = String::from_utf8_lossy(&done.stderr).into_owned();
                wrong.push(format!("{}: {command}: {said}", page.display()));
            }
        }
    }
    assert!(seen > 100, "only {seen} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
