//! `meshwork action gateway` under attack: invented names, and tokens. What it shares with other servers is in `hostile`.

use std::thread;

use crate::common::http::{JSON, gateway, post, service};
use crate::common::{Ground, on_all_data};

const TOKEN: &str = "authorization: Bearer sesame\r\n";
const COUNT: &str = "/actions/demo/batch/count";
const ITEMS: &str = "{\"items\":[]}";

on_all_data! {
    fn an_invented_service_leaves_no_key(ground: &Ground) {
        for dialect in ["streams", "lists"] {
            // The embedded engine is in the process that starts first.
            let (gateway, address) = gateway(ground, &["--dialect", dialect], Some("sesame"));
            let service = service(ground, dialect);
            // The keys of the gateway itself are there, and nobody else makes some.
            assert_eq!(post(&address, COUNT, &format!("{JSON}{TOKEN}"), ITEMS).status, 200);
            service.stop();
            let before = ground.keys();
            thread::scope(|scope| {
                for part in 0..8 {
                    let address = &address;
                    scope.spawn(move || {
                        for number in (0..1_000).filter(|it| it % 8 == part) {
                            let path = format!("/actions/invented-{number}/run");
                            let came = post(address, &path, &format!("{JSON}{TOKEN}"), "{}");
                            assert_eq!((came.status, came.code().as_str()), (404, "UNKNOWN_SERVICE"), "{path}");
                        }
                    });
                }
            });
            let new: Vec<_> = ground.keys().into_iter().filter(|key| !before.contains(key)).collect();
            let first = new.first().map(|key| String::from_utf8_lossy(key));
            assert!(new.is_empty(), "{} keys before, {} new ones, such as {first:?}", before.len(), new.len());
            gateway.stop();
        }
    }

    fn a_token_or_the_word_is_needed_to_start(ground: &Ground) {
        let said = ground.run(&["action", "gateway", "--addr", "127.0.0.1:0"]).exits(2).stderr;
        for word in ["MESHWORK_GATEWAY_TOKEN", "--token-file", "--insecure-no-auth"] {
            assert!(said.contains(word), "{said}");
        }
        ground.file("token", "sesame\n");
        ground.file("empty", "\n");
        ground.file("two", "open sesame\n");
        for words in [
            &["--token-file", "empty"][..],
            &["--token-file", "two"],
            &["--token-file", "absent"],
            &["--token-file", "token", "--insecure-no-auth"],
        ] {
            let args = [&["action", "gateway", "--addr", "127.0.0.1:0"], words].concat();
            let said = ground.run(&args).exits(2).stderr;
            assert!(!said.contains("sesame"), "{said}");
        }
        let both = ["action", "gateway", "--addr", "127.0.0.1:0", "--insecure-no-auth"];
        let mut both = ground.command(&both);
        both.env("MESHWORK_GATEWAY_TOKEN", "sesame");
        crate::common::Running::start(both).ended().exits(2);
    }

    fn a_token_comes_from_a_file(ground: &Ground) {
        ground.file("token", "sesame\n");
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--token-file", "token"], Some(""));
        assert_eq!(post(&address, COUNT, JSON, ITEMS).status, 401);
        assert_eq!(post(&address, COUNT, &format!("{JSON}{TOKEN}"), ITEMS).status, 200);
        gateway.stop();
        service.stop();
    }
}
