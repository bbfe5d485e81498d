//! Signing in, and requests that come from elsewhere.

use serde_json::json;

use super::{Browser, FROM_HERE, command, key, texts};
use crate::api::{Server, bearer};
use crate::common::{Ground, eventually, on_all_data};

on_all_data! {
    fn a_key_opens_a_session(ground: &Ground) {
        let (root, viewer) = (key(ground, "root", "admin"), key(ground, "eyes", "viewer"));
        let server = Server::start(ground, &[]);
        let nobody = Browser::open(&server.api);
        assert_eq!(nobody.get("/ui/jobs?state=dead").leads_to(), "/ui/sign-in?next=%2Fui%2Fjobs%3Fstate%3Ddead");
        let wrong = nobody.post("/ui/sign-in", &[("key", "mwk_root.x")]);
        assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
        assert!(wrong.body.contains("wrong, expired or revoked"), "{}", wrong.body);
        let came = nobody.post("/ui/sign-in", &[("key", &viewer), ("next", "/ui/jobs?state=dead")]);
        assert_eq!(came.leads_to(), "/ui/jobs?state=dead");
        for elsewhere in ["//evil.example/", "https://evil.example/ui/", "/ui/\\evil", "/uix/", "/ui/\r\nx: y"] {
            let came = nobody.post("/ui/sign-in", &[("key", &viewer), ("next", elsewhere)]);
            assert_eq!(came.leads_to(), "/ui/", "{elsewhere}");
        }
        let browser = Browser::sign_in(&server.api, &viewer);
        let page = browser.get("/ui/");
        assert_eq!(page.status, 200, "{}", page.body);
        for (name, value) in [
            ("content-security-policy", "default-src 'none'; script-src 'self'; style-src 'self'"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("x-frame-options", "deny"),
            ("cache-control", "no-store"),
        ] {
            assert!(page.header(name).unwrap().starts_with(value), "{name}: {}", page.head);
        }
        let with_fetch = server.send("GET", "/ui/sign-in", FROM_HERE, "");
        assert_eq!(with_fetch.header("referrer-policy"), Some("no-referrer"));
        assert!(!page.body.contains("mwk_"));
        // A cookie opens pages, not the API.
        let cookie = format!("cookie: {}\r\n", browser.cookie);
        assert_eq!(server.send("GET", "/v1/system", &cookie, "").status, 401);
        // A key works without a session.
        assert_eq!(server.send("GET", "/ui/jobs", &bearer(&root), "").status, 200);
        let out = browser.post("/ui/sign-out", &[]);
        assert_eq!(out.leads_to(), "/ui/sign-in?next=%2Fui%2F");
        assert_eq!(browser.get("/ui/").status, 303);
        let revoked = Browser::sign_in(&server.api, &viewer);
        assert_eq!(revoked.get("/ui/").status, 200);
        ground.run(&["key", "revoke", "eyes"]).ok();
        eventually("its sessions end", || (revoked.get("/ui/").status == 303).then_some(()));
        server.stop();
    }

    fn behind_tls_the_cookie_is_of_the_host_alone(ground: &Ground) {
        let root = key(ground, "root", "admin");
        let server = Server::start(ground, &["--allow-host", "jobs.example"]);
        let nobody = Browser::open(&server.api);
        let headers = format!("{FROM_HERE}x-forwarded-proto: https\r\n");
        let came = nobody.post_with("/ui/sign-in", &[("key", &root)], &headers);
        assert!(came.cookie().starts_with("__Host-meshwork="), "{}", came.raw_head);
        let line = came.header("set-cookie").unwrap();
        assert!(line.contains("path=/; secure"), "{line}");
        server.stop();
    }

    fn browsers_are_led_from_the_root(ground: &Ground) {
        let server = Server::open(ground);
        let browser = Browser::open(&server.api);
        let root = |headers: &str| server.send("GET", "/", headers, "");
        assert_eq!(root("accept: text/html,application/xhtml+xml\r\n").leads_to(), "/ui/");
        let other = root("accept: application/json\r\n");
        assert_eq!((other.status, other.header("allow")), (405, Some("post")));
        assert_eq!(browser.get("/ui").leads_to(), "/ui/");
        assert_eq!(browser.get("/ui/nowhere").status, 404);
        assert_eq!(server.send("GET", "/v1/nowhere", "", "").header("content-type"), Some("application/problem+json"));
        assert_eq!(server.rpc("system.info", &json!({}), "")["result"]["scope"], "admin");
        server.stop();
    }

    fn a_change_from_elsewhere_is_refused(ground: &Ground) {
        let root = key(ground, "root", "admin");
        let server = Server::start(ground, &["--allow-origin", "https://app.example"]);
        let browser = Browser::sign_in(&server.api, &root);
        let made = server.rpc("job.create", &json!({"type": "osis", "script": "1", "id": "safe", "delay": "1h"}), &bearer(&root));
        assert_eq!(made["result"]["id"], "safe", "{made}");
        let form = [("id", "safe"), ("back", "/ui/")];
        let address = &server.address;
        let own = format!("origin: http://{address}\r\n");
        for headers in [
            String::new(),
            "sec-fetch-site: cross-site\r\n".to_owned(),
            "sec-fetch-site: same-site\r\n".to_owned(),
            "sec-fetch-site: none\r\n".to_owned(),
            "origin: null\r\n".to_owned(),
            "origin: https://evil.example\r\n".to_owned(),
            format!("origin: https://evil.example\r\n{FROM_HERE}"),
            format!("sec-fetch-site: cross-site\r\n{own}"),
            // A page that may call the API may not send forms.
            "origin: https://app.example\r\n".to_owned(),
        ] {
            for path in ["/ui/do/job.delete", "/ui/sign-out", "/ui/sign-in"] {
                let came = browser.post_with(path, &form, &headers);
                assert_eq!(came.status, 403, "{path} {headers}");
            }
        }
        let body = "id=safe";
        let length = body.len();
        let headers = browser.headers();
        let request = format!("POST /ui/do/job.delete HTTP/1.1\r\nhost: evil.example\r\n{headers}{FROM_HERE}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        let came = crate::common::http::came(crate::common::http::connect(address, &request));
        assert_eq!(came.status, 403, "{}", came.body);
        assert_eq!(browser.get("/ui/do/job.delete?id=safe").status, 405);
        // Without a session.
        assert_eq!(Browser::open(&server.api).post("/ui/do/job.delete", &form).leads_to(), "/ui/sign-in?next=%2Fui%2F");
        let job = server.rpc("job.get", &json!({"id": "safe"}), &bearer(&root));
        assert_eq!(job["result"]["status"], "dispatched", "{job}");
        let queue = [("queue", "osis"), ("back", "/ui/")];
        for headers in [FROM_HERE, &own, &format!("origin: null\r\n{FROM_HERE}")] {
            let came = browser.post_with("/ui/do/queue.resume", &queue, headers);
            assert_eq!(came.status, 303, "{headers}: {}", came.body);
        }
        server.stop();
    }

    fn the_link_of_the_command_opens_one_session(ground: &Ground) {
        ground.run(&["queue", "limit", "set", "osis", "--concurrency", "5", "--create"]).ok();
        let (running, api, token) = command(ground, &[]);
        let nobody = Browser::open(&api);
        assert_eq!(nobody.get("/ui/").status, 303);
        let browser = Browser::sign_in(&api, &token);
        let again = nobody.post("/ui/sign-in", &[("key", &token)]);
        assert_eq!(again.status, 401, "{}", again.body);
        assert!(texts(&browser.page("/ui/queues"), "h1").contains(&"Queues".to_owned()));
        // The API is not served here.
        assert_eq!(api.send("GET", "/v1/system", &browser.headers(), "").status, 404);
        assert_eq!(api.send("GET", "/", "accept: text/html\r\n", "").leads_to(), "/ui/");
        assert_eq!(browser.post("/ui/do/queue.pause", &[("queue", "osis"), ("back", "/ui/queues")]).leads_to(), "/ui/queues?done=queue.pause");
        running.stop();
        let (running, api, token) = command(ground, &["--read-only", "--prefix", "/tools/mw/"]);
        let came = Browser::open(&api).post("/tools/mw/ui/sign-in", &[("key", &token)]);
        let browser = Browser { cookie: came.cookie().to_owned(), api };
        let page = browser.page("/tools/mw/ui/queue?queue=osis");
        assert!(texts(&page, "button").iter().all(|text| !text.contains("Resume")));
        assert_eq!(browser.post("/tools/mw/ui/do/queue.resume", &[("queue", "osis")]).status, 403);
        running.stop();
        let listed = ground.run(&["queue", "limit", "show", "osis", "--json"]).ok().stdout;
        assert!(listed.contains("\"paused\":true"), "{listed}");
    }
}
