//! Properties of all commands: streams, broken pipes, colours, secrets, help.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{Ground, bare, json, on_all_data};
use meshwork_test_servers::servers::RealServer;

/// The reader left, as a shell says it.
const NO_READER: i32 = 141;

on_all_data! {
    fn a_reader_that_leaves_is_no_error(ground: &Ground) {
        ground.file("echo.rhai", "INPUT");
        let files: Vec<_> = (0..300).map(|n| format!("f{n}")).collect();
        for name in &files {
            ground.file(name, "x".repeat(1000));
        }
        let mut args = vec!["run", "echo.rhai", "--json", "--each"];
        args.extend(files.iter().map(String::as_str));
        let mut child = ground
            .command(&args)
            .env("RUST_LOG", "off")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("{\"file\":\"f0\""), "{line}");
        // The pipe is closed from here on.
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(NO_READER), "{said}");
        assert!(!said.contains("error") && !said.contains("panic"), "{said}");
        assert_eq!(ground.run(&args).ok().jsons().len(), files.len(), "and nothing is lost");
    }

    fn a_full_disk_is_told(ground: &Ground) {
        ground.file("a.rhai", "1");
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
        let output = ground.command(&["run", "a.rhai"]).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("the output cannot be written"), "{said}");
    }
}

/// Help is output too.
#[test]
fn help_that_cannot_be_written_is_told() {
    let ground = Ground::url("redis://h");
    for args in [
        &["--help"][..],
        &["-h"],
        &["--version"],
        &["action", "call", "--help"],
        &["help", "run"],
    ] {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            return;
        };
        let output = ground.command(args).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(6), "{args:?}: {said}");
        assert!(
            said.contains("the output cannot be written"),
            "{args:?}: {said}"
        );
        let (reads, writes) = std::io::pipe().unwrap();
        drop(reads);
        let output = ground.command(args).stdout(writes).output().unwrap();
        assert_eq!(
            (output.status.code(), &*output.stderr),
            (Some(NO_READER), &b""[..]),
            "{args:?}"
        );
    }
}

#[test]
fn nothing_needs_a_colour() {
    let ground = Ground::url("redis://h");
    for args in [&["--help"][..], &["run", "--nonsense"]] {
        let coloured = |set: &[(&str, &str)]| {
            let output = ground
                .command(args)
                .envs(set.iter().copied())
                .output()
                .unwrap();
            let text = [output.stdout, output.stderr].concat();
            (
                String::from_utf8(text.clone()).unwrap().contains('\x1b'),
                text,
            )
        };
        let forced = ("CLICOLOR_FORCE", "1");
        let (plain, text) = coloured(&[]);
        assert!(!plain, "no terminal, no colour");
        assert!(coloured(&[forced]).0, "it would be coloured");
        let none = coloured(&[forced, ("NO_COLOR", "1")]);
        assert_eq!(none, (false, text), "the same words without any colour");
    }
}

#[test]
fn secrets_are_not_shown() {
    let Some(server) = RealServer::redis().password("geheim").start() else {
        return;
    };
    let url = server.url();
    let ground = Ground::url(url.clone());
    ground.file("a.rhai", "ENV.TOKEN");
    ground
        .run(&[
            "job",
            "submit",
            "a.rhai",
            "--id",
            "j",
            "--env",
            "TOKEN=versteckt",
        ])
        .ok();
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["job", "status", "j", "-vv"],
        &["job", "status", "j", "--json"],
        &["job", "list"],
        &["queue", "list", "-vv"],
    ] {
        let done = ground.run(args).ok();
        for secret in ["geheim", "versteckt"] {
            assert!(
                !done.stdout.contains(secret) && !done.stderr.contains(secret),
                "{args:?}: {done:#?}"
            );
        }
    }
    let done = ground.run(&["job", "list", "--redis", &url]).ok();
    assert!(
        done.stderr.contains("set REDIS_URL instead"),
        "{}",
        done.stderr
    );
    assert!(!done.stderr.contains("geheim"), "{}", done.stderr);
    let without = ground.run(&["job", "list"]).ok();
    assert_eq!(without.stderr, "");
}

#[test]
fn help_tells_the_exit_codes() {
    let ground = Ground::url("redis://h");
    let help = ground.run(&["--help"]).ok().stdout;
    for code in [0, 1, 2, 3, 4, 5, 6, 130, NO_READER] {
        assert!(help.contains(&format!("\n  {code} ")), "{code}: {help}");
    }
    for command in [
        "run",
        "worker",
        "job",
        "queue",
        "dead",
        "events",
        "completions",
    ] {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command}: {help}"
        );
    }
    ground.run(&["--version"]).ok();
    ground.run::<&str>(&[]).exits(2);
    ground.run(&["nonsense"]).exits(2);
}

#[test]
fn completions_need_no_data() {
    let ground = Ground::url("redis://nobody.invalid");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ground.run(&["completions", shell]).ok().stdout;
        assert!(
            script.contains("each") && script.contains("meshwork"),
            "{shell}"
        );
    }
    ground.run(&["completions", "csh"]).exits(2);
}

#[test]
fn an_empty_variable_is_no_server() {
    let ground = Ground::embedded().unwrap();
    let mut command = ground.command(&["job", "list", "--json"]);
    let output = command.env("REDIS_URL", "").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(ground.path("data/appendonly.aof").exists());
}

#[test]
fn without_any_setting_the_data_is_at_home() {
    let ground = Ground::url("");
    let output = bare(&ground.path(""))
        .args(["job", "list"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(ground.path(".local/share/meshwork/appendonly.aof").exists());
    let elsewhere = ground.path("xdg");
    let mut command = bare(&ground.path(""));
    let output = command
        .env("XDG_DATA_HOME", &elsewhere)
        .args(["job", "list"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(elsewhere.join("meshwork/appendonly.aof").exists());
}

#[test]
fn tls_needs_its_files() {
    let Some(server) = RealServer::redis().tls().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "1");
    let files = server.tls_files().unwrap();
    let [ca, cert, key] =
        [&files.ca, &files.client_cert, &files.client_key].map(|p| p.to_str().unwrap());
    ground
        .run(&[
            "run",
            "a.rhai",
            "--tls-ca",
            ca,
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ])
        .ok();
    let mut command = ground.command(&["run", "a.rhai"]);
    let command = command
        .env("REDIS_TLS_CA", ca)
        .env("REDIS_TLS_CERT", cert)
        .env("REDIS_TLS_KEY", key);
    assert!(command.output().unwrap().status.success());
    ground.run(&["run", "a.rhai", "--tls-ca", ca]).exits(3);
}

on_all_data! {
    fn secrets_of_the_environment_are_not_shown(ground: &Ground) {
        ground.file("a.rhai", r#"print("with " + ENV["DB_PASSWORD"]); throw "no " + ENV["DB_PASSWORD"]"#);
        let args = ["--env", "DB_PASSWORD=hunter22", "--env", "CITY=Ghent"];
        let failed = ground.run(&[&["run", "a.rhai", "--json"][..], &args].concat()).exits(1);
        let job = failed.json();
        assert_eq!(job["env"], json(r#"{"CITY": "Ghent", "DB_PASSWORD": "***"}"#));
        assert_eq!(job["stdout"], "with ***\n");
        let id = job["id"].as_str().unwrap().to_owned();
        for args in [&["status"][..], &["status", "--json"], &["logs"], &["logs", "--json"], &["wait"]] {
            let done = ground.run(&[&["job", args[0], &id], &args[1..]].concat());
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(said.contains("***") && !said.contains("hunter"), "{args:?}: {said}");
        }
        for noun in ["job", "dead"] {
            for args in [&[noun, "list"][..], &[noun, "list", "--json"]] {
                let listed = ground.run(args).ok().stdout;
                assert!(listed.contains("no ***") && !listed.contains("hunter"), "{args:?}: {listed}");
            }
        }
    }

    fn a_variable_of_this_environment_is_handed_on(ground: &Ground) {
        ground.file("a.rhai", r#"ENV["CITY"]"#);
        let mut command = ground.command(&["run", "a.rhai", "--env", "CITY"]);
        let output = command.env("CITY", "Ghent").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "Ghent\n");
    }

    fn a_script_is_checked_on_request(ground: &Ground) {
        ground.file("bad.rhai", "let x = 1;\nlet y = = 2;");
        let before = ground.stored();
        for command in [&["job", "submit", "bad.rhai", "--check"][..], &["run", "bad.rhai", "--check"]] {
            let done = ground.run(command).exits(2);
            assert!(done.stderr.contains("Unexpected '=' (line 2, column 9)"), "{}", done.stderr);
        }
        assert_eq!(ground.stored(), before);
        ground.file("good.rhai", "40 + 2");
        assert_eq!(ground.run(&["run", "good.rhai", "--check"]).ok().stdout, "42\n");
        ground.file("a.v", "fn main() {}");
        let done = ground.run(&["job", "submit", "a.v", "--check"]).exits(2);
        assert!(done.stderr.contains("only when it compiles it"), "{}", done.stderr);
    }
}
