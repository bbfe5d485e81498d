//! Texts of others on pages: nothing of them runs, and hidden characters are seen.

use std::collections::BTreeSet;

use meshwork_model::job::field;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use scraper::Html;
use serde_json::json;

use super::{Browser, texts, values};
use crate::api::Server;
use crate::common::{Ground, claimed, on_all_data, wait};

const EVIL: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{7}end";
const SEEN: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>⟨U+202E⟩␇end";

/// Reads a page, of which nothing runs, and whose hidden characters are seen.
fn is_harmless(browser: &Browser, path: &str) -> Html {
    let came = browser.get(path);
    let page = Html::parse_document(&came.body);
    // A page has several texts of 16 KiB, and each of their characters may take some bytes.
    assert!(came.body.len() < 400_000, "{path}: {}", came.body.len());
    assert_eq!(
        values(&page, "script", "src").len(),
        texts(&page, "script").len(),
        "{path}"
    );
    assert!(
        texts(&page, "script").iter().all(String::is_empty),
        "{path}"
    );
    assert!(values(&page, "img", "src").is_empty(), "{path}");
    assert!(values(&page, "[onerror]", "onerror").is_empty(), "{path}");
    let is_ours = |href: &String| href.starts_with('/') || href.starts_with('#');
    assert!(values(&page, "a", "href").iter().all(is_ours), "{path}");
    // Hidden fields of forms have names as they are.
    let seen = [texts(&page, "body"), values(&page, "[title]", "title")]
        .concat()
        .concat();
    assert!(!seen.contains(['\u{202e}', '\u{7}', '\0']), "{path}");
    page
}

/// Writes each of these texts into all fields of a record, and into the lists that pages show.
const WRITE: &str = "
local text = ARGV[1] == 'bytes' and '<script>\\255\\254\\0' or ARGV[1]
for i = 3, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], text) end
redis.call('HSET', KEYS[1], 'status', 'error', 'id', ARGV[2])
for i = 2, 5 do redis.call('ZADD', KEYS[i], 32503680000000, ARGV[2]) end
redis.call('LPUSH', KEYS[6] .. string.sub(text, 1, 1000), ARGV[2])
redis.call('HSET', KEYS[7], 'record', text)
redis.call('ZADD', KEYS[8], 32503680000000, string.sub(text, 1, 1000))
local worker = {hostname = text, version = text, started_at = text, last_heartbeat = text, pid = 1}
redis.call('SET', KEYS[9] .. string.sub(text, 1, 500), cjson.encode(worker))
return 1";

/// Fields of a record that pages show.
const FIELDS: [&str; 28] = [
    field::ERROR,
    field::SCRIPT_TYPE,
    field::GROUP,
    field::INSTANCE,
    field::CALLER_ID,
    field::WORKER,
    field::QUEUE,
    field::PRIORITY,
    field::DEAD,
    field::PROGRESS,
    field::KEY,
    field::TAGS,
    field::UNIQUE,
    field::BATCH,
    field::PARENT,
    field::CREATED_AT,
    field::UPDATED_AT,
    field::ATTEMPT,
    field::RETRIES,
    field::OUTPUT,
    field::TRACEBACK,
    field::STDOUT,
    field::STDERR,
    field::ENV_VARS,
    field::RUN_AT,
    field::STARTED,
    field::CHILDREN,
    field::WORKER_ID,
];

/// Writes hostile texts into the records of jobs, of a schedule and of a worker.
fn write_records(ground: &Ground) {
    let (keys, mut plain) = (JobKeys::default(), ground.plain());
    let big = "x<b>".repeat(256 * 1024);
    for (id, text) in [
        ("evil", EVIL),
        ("<b>odd</b>", "bytes"),
        ("big", big.as_str()),
    ] {
        let names = [
            keys.job_hash_key(&JobId::foreign(id.to_owned())),
            keys.lease(),
            keys.delayed(),
            keys.dead(),
            keys.ended(),
            keys.work_prefix(),
            format!("{}{id}", keys.schedule_prefix()),
            keys.schedules(),
            format!("{}osis:g:", keys.presence_prefix()),
        ];
        let mut words = vec!["EVAL", WRITE, "9"];
        words.extend(names.iter().map(String::as_str));
        words.extend([text, id]);
        words.extend(FIELDS);
        assert_eq!(plain.ask::<i64>(&words).unwrap(), 1, "{id}");
    }
}

#[test]
fn foreign_records_and_names_are_shown_and_do_not_run() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let server = Server::open(&ground);
    write_records(&ground);
    let browser = Browser::open(&server.api);
    let mut open = vec![
        "/ui/".to_owned(),
        "/ui/search?q=script%3E&ended=1&queued=1".to_owned(),
    ];
    for page in [
        "queues",
        "workers",
        "dead",
        "dead?view=letters",
        "schedules",
        "flows",
        "jobs",
        "jobs?state=ended",
        "jobs?state=delayed",
        "jobs?state=queued",
        "jobs?state=dead",
    ] {
        open.push(format!("/ui/{page}"));
    }
    let (mut seen, mut shown) = (BTreeSet::new(), String::new());
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) || seen.len() > 120 {
            continue;
        }
        let page = is_harmless(&browser, &path);
        shown += &texts(&page, "main").concat();
        let links = values(&page, "main a[href]", "href");
        open.extend(links.into_iter().filter(|href| href.starts_with("/ui/")));
    }
    assert!(shown.contains("⟨U+202E⟩␇end"), "{seen:?}");
    for part in [
        "/ui/job?id=evil",
        "/ui/job?id=big",
        "/ui/queue?queue=",
        "/ui/dead?state=dead",
    ] {
        assert!(
            seen.iter().any(|path| path.starts_with(part)),
            "{part}: {seen:?}"
        );
    }
    server.stop();
}

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
            let page = is_harmless(&browser, path);
            assert!(!page.html().contains(['\u{202e}', '\u{7}', '\0']), "{path}");
        }
        let page = browser.page("/ui/job?id=evil");
        assert!(texts(&page, ".log").concat().contains(SEEN), "{:?}", texts(&page, ".log"));
        assert!(texts(&page, "pre").iter().any(|text| text.contains(SEEN)), "{:?}", texts(&page, "pre"));
        assert!(texts(&browser.page("/ui/job?id=big"), ".note").concat().contains("more bytes are not shown"));
        server.stop();
    }
}
