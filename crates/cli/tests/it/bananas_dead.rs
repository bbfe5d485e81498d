//! `meshwork bananas dead`: what failed for good is shown, run again and forgotten.

use crate::common::{Ground, json, on_all_data};

on_all_data! {
    fn a_dead_letter_is_shown_run_again_and_deleted(ground: &Ground) {
        ground.file("shot.rhai", r#"throw "no light""#);
        let worker = || ground.worker(&["--protocol", "bananas", "--handler", "shot=shot.rhai"]);
        let broken = worker();
        for id in ["one", "two", "three"] {
            let args = ["bananas", "submit", "shot", "--id", id, "--max-retries", "1", "--wait", "60"];
            ground.run(&args).exits(1);
        }
        broken.stop();
        let shown = ground.run(&["bananas", "dead", "show", "one"]).ok().stdout;
        assert!(shown.contains("no light") && shown.contains("\"failed\""), "{shown}");
        assert_eq!(ground.run(&["bananas", "dead", "show", "one", "--json"]).ok().json()["name"], "shot");
        ground.file("shot.rhai", "7");
        let mended = worker();
        let replayed = ground.run(&["bananas", "dead", "replay", "one", "two", "nobody"]).exits(1);
        assert_eq!(replayed.stdout, "one queued\ntwo queued\n");
        assert!(replayed.stderr.contains("nobody is no dead letter"), "{replayed:?}");
        for id in ["one", "two"] {
            assert_eq!(ground.run(&["bananas", "wait", id]).ok().stdout.trim(), "7");
        }
        assert_eq!(ground.run(&["bananas", "dead", "list", "--json"]).ok().json()["id"], "three");
        let deleted = ground.run(&["bananas", "dead", "delete", "three", "--json"]).ok().json();
        assert_eq!((&deleted["id"], &deleted["result"]), (&json("\"three\""), &json("\"deleted\"")));
        assert!(ground.run(&["bananas", "dead", "--json"]).ok().stdout.is_empty());
        ground.run(&["bananas", "get", "three"]).exits(5);
        let said = ground.run(&["bananas", "dead", "show", "three"]).exits(1).stderr;
        assert!(said.contains("meshwork dead --protocol bananas"), "{said}");
        mended.stop();
    }
}
