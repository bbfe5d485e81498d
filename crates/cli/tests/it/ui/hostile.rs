//! Texts of others on pages: nothing of them runs, and hidden characters are seen.

use serde_json::json;

use super::{Browser, texts, values};
use crate::api::Server;
use crate::common::{Ground, claimed, on_all_data, wait};

const EVIL: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{7}end";
const SEEN: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>⟨U+202E⟩␇end";

on_all_data! {
    fn texts_of_a_job_are_shown_and_do_not_run(ground: &Ground) {
        let server = Server::open(ground);
        let big = "x<b>".repeat(225 * 1024);
        for (id, script) in [("evil", EVIL), ("big", big.as_str())] {
            let (status, made) = server.rest("POST", "/v1/jobs", &json!({
                "type": "osis", "script": script, "id": id, "input": script.get(..1000).unwrap_or(script), "tags": ["<b>"],
                "key": "<i>k</i>", "env": {"NAME": EVIL.replace('\0', "")}, "retries": 0,
            }));
            if status == 400 {
                // The limits of a field refuse it: the script alone is hostile then.
                let body = json!({"type": "osis", "script": script, "id": id});
                let (status, again) = server.rest("POST", "/v1/jobs", &body);
                assert_eq!(status, 201, "{made} {again}");
            }
            let worker = ground.broker();
            let taken = claimed(&worker);
            let line = [EVIL.as_bytes(), b"\xff\xfe"].concat();
            wait(worker.log(&taken, &[("stderr", &line), ("<b>", b"odd")], None)).unwrap();
            wait(worker.complete(&taken, script.as_bytes(), line.as_slice(), b"")).unwrap();
        }
        let browser = Browser::open(&server.api);
        for path in ["/ui/job?id=evil", "/ui/job?id=big", "/ui/jobs?state=ended", "/ui/", "/ui/search?q=%22%3E%3Cscript%3E", "/ui/jobs?state=ended&tag=%22%3E%3Cscript%3E",
            "/ui/job?id=%3Cscript%3E%E2%80%AE", "/ui/jobs?state=%3Cscript%3E", "/ui/queue?queue=%3Cscript%3E", "/ui/confirm?method=job.delete&id=%3Cscript%3E&back=javascript:alert(1)", "/ui/%3Cscript%3E"] {
            let came = browser.get(path);
            let page = scraper::Html::parse_document(&came.body);
            assert!(came.body.len() < 200_000, "{path}: {}", came.body.len());
            assert_eq!(values(&page, "script", "src").len(), texts(&page, "script").len(), "{path}");
            assert!(texts(&page, "script").iter().all(String::is_empty), "{path}");
            assert!(values(&page, "img", "src").is_empty() && values(&page, "[onerror]", "onerror").is_empty(), "{path}");
            assert!(values(&page, "a", "href").iter().all(|href| href.starts_with('/') || href.starts_with('#')), "{path}");
            assert!(!came.body.contains(['\u{202e}', '\u{7}', '\0']), "{path}");
        }
        let page = browser.page("/ui/job?id=evil");
        assert!(texts(&page, ".log").concat().contains(SEEN), "{:?}", texts(&page, ".log"));
        assert!(texts(&page, "pre").iter().any(|text| text.contains(SEEN)), "{:?}", texts(&page, "pre"));
        assert!(texts(&browser.page("/ui/job?id=big"), ".note").concat().contains("more bytes are not shown"));
        server.stop();
    }
}
