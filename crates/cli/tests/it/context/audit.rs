//! `meshwork context audit --to`: a file that has each entry once, whenever the command is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::{Ground, eventually, on_both};

fn change(ground: &Ground, how: &str) {
    let word = ["context", how, "7", "reader", "1"];
    ground.run(&word).ok();
}

#[test]
fn a_file_has_each_entry_once() {
    on_both(|ground| {
        ground.run(&["context", "create", "--id", "7"]).ok();
        let to_file = ["context", "audit", "7", "--to", "trail.jsonl"];
        let file = ground.path("trail.jsonl");
        ground.run(&to_file).ok();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        // A killed process left a part of its last line.
        change(ground, "grant");
        ground.run(&to_file).ok();
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, &whole[..whole.len() - 10]).unwrap();
        let follow = ground.start(&[&to_file[..], &["-f"]].concat());
        eventually("the line is complete again", || {
            (fs::read_to_string(&file).unwrap() == whole).then_some(())
        });
        let busy = ground.run(&to_file).exits(2).stderr;
        assert!(
            busy.contains("trail.jsonl is being written by another process"),
            "{busy}"
        );
        change(ground, "revoke");
        eventually("a new entry comes", || {
            let lines = fs::read_to_string(&file).unwrap();
            (lines.lines().count() > whole.lines().count()).then_some(())
        });
        follow.kill();

        ground.run(&to_file).ok();
        let listed = ground.run(&["context", "audit", "7", "--json"]).ok().stdout;
        assert_eq!(fs::read_to_string(&file).unwrap(), listed);
    });
}

#[test]
fn a_file_of_another_kind_stays_as_it_is() {
    on_both(|ground| {
        ground.run(&["context", "create", "--id", "7"]).ok();
        for text in [
            "hello",
            "hello\n",
            "{\"a\":1}",
            "{\"a\":1}\n",
            "{\"id\":\"x\"}\n",
        ] {
            let file = ground.file("other", text);
            let said = ground
                .run(&["context", "audit", "7", "--to", "other"])
                .exits(2)
                .stderr;
            assert!(
                said.contains("other contains something else than an audit trail"),
                "{said}"
            );
            assert_eq!(fs::read_to_string(file).unwrap(), text);
        }
        let said = ground
            .run(&["context", "audit", "7", "--to", "no/such/folder"])
            .exits(2)
            .stderr;
        assert!(said.contains("cannot write no/such/folder"), "{said}");
        let both = ["context", "audit", "7", "--to", "other", "--limit", "3"];
        ground.run(&both).exits(2);
    });
}
