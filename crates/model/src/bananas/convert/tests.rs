//! Conversion of records, both ways.

use super::*;

const GO: &str = r#"{"id":"1","name":"count","payload":{"n":12345678901234567890},"status":"pending","priority":"low","created_at":"2026-01-31T12:00:00Z","updated_at":"2026-01-31T12:00:00.5Z","attempts":1,"max_retries":3,"routing_key":"gpu"}"#;
const PYTHON: &str = r#"{"id": "1", "name": "count", "description": "some\u0000", "payload": {}, "status": "scheduled", "priority": "normal", "created_at": "c", "updated_at": "u", "attempts": 0, "max_retries": 3, "error": "", "routing_key": "", "scheduled_for": "s"}"#;

fn record(text: &str) -> Record {
    Record::read(text.as_bytes()).unwrap()
}

fn conversion(text: &str, place: &Bucket, time: &str) -> Result<Conversion, NotConvertible> {
    let keys = BananasKeys::default();
    record(text).conversion(&keys, "j1", (place, time), &HandlerKind::Function, 300)
}

fn exported_record(text: &str, origin: &Origin, stands: &Stands) -> (Bucket, String, String) {
    let keys = BananasKeys::default();
    let back = record(text).exported_record(&keys, stands, origin, "bananas:queue:low");
    (back.place, back.time, back.record.at(0))
}

fn list() -> Bucket {
    Bucket::List("bananas:route:gpu:queue:low".to_owned())
}

#[test]
fn a_job_is_what_its_record_says() {
    let is = conversion(GO, &list(), "").unwrap();
    let job = &is.job;
    assert_eq!(job.route.script_type.as_str(), "count");
    assert_eq!(job.route.group.as_ref().unwrap().as_str(), "gpu");
    assert_eq!(job.route.priority, Priority::Low);
    assert_eq!(
        (job.script.as_str(), job.retries),
        (record(GO).payload(), 2)
    );
    assert_eq!(
        (job.timeout, job.caller_id.as_str()),
        (300, "bananas/count")
    );
    assert_eq!((is.attempts, is.written_ms), (1, Some(1_769_860_800_500)));
    assert_eq!(is.record, GO);
    let names = is.fields().into_iter().map(|(name, _)| name);
    let expected = [
        "mw_bananas",
        "mw_record",
        "mw_places",
        "mw_with",
        "mw_attempt",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

#[test]
fn a_script_finds_the_payload_as_its_input() {
    let runs = HandlerKind::Script {
        script_type: "python".parse().unwrap(),
        text: "1".to_owned(),
    };
    let keys = BananasKeys::default();
    let is = record(PYTHON).conversion(&keys, "j1", (&Bucket::Later, "2.0005"), &runs, 7);
    let job = is.unwrap().job;
    assert_eq!(
        (job.script.as_str(), job.input),
        ("1", Some(b"{}".to_vec()))
    );
    assert_eq!((job.route.group, job.when), (None, Some(When::At(2_001))));
    assert_eq!(job.context_id, "some");
}

#[test]
fn what_cannot_be_ours_says_why() {
    let keys = BananasKeys::default();
    let of = |id: &str, text: &str| {
        let is = record(text).conversion(&keys, id, (&list(), ""), &HandlerKind::Function, 300);
        is.unwrap_err().to_string()
    };
    assert!(of("", GO).contains("id is empty"));
    assert!(of("a b", GO).contains("a b"));
    assert!(of("j1", &GO.replace("\"count\"", "\"a:b\"")).contains("a:b"));
    assert!(of("j1", &GO.replace("s\":3", "s\":200")).contains("199 retries"));
}

#[test]
fn the_list_says_the_route_unless_all_routes_stand_on_it() {
    let keys = BananasKeys::default();
    let way = |list: &str| Bucket::List(list.to_owned()).way(&keys, &record(GO));
    let (gpu, email) = ("gpu".parse().unwrap(), "email".parse().unwrap());
    assert_eq!(way("bananas:queue:high"), (gpu, Priority::High));
    assert_eq!(way("bananas:route:email:queue:low"), (email, Priority::Low));
}

#[test]
fn the_places_are_those_of_the_fields() {
    for text in [GO, PYTHON] {
        let places = conversion(text, &list(), "").unwrap().places;
        let mut said = Vec::new();
        for line in places.lines() {
            let [from, to, field, before] = *line.splitn(4, ' ').collect::<Vec<_>>() else {
                panic!("{line}");
            };
            let span = from.parse().unwrap()..to.parse().unwrap();
            said.push((field, text[span].to_owned(), before));
        }
        let expected = match text == GO {
            true => vec![
                ("status", "\"pending\"", ""),
                ("updated_at", "\"2026-01-31T12:00:00.5Z\"", ""),
                ("attempts", "1", ""),
                ("error", "", ",\"error\":"),
            ],
            false => vec![
                ("status", "\"scheduled\"", ""),
                ("updated_at", "\"u\"", ""),
                ("attempts", "0", ""),
                ("error", "\"\"", ""),
                ("scheduled_for", ", \"scheduled_for\": \"s\"", ""),
            ],
        };
        let said: Vec<_> = said
            .iter()
            .map(|(f, is, b)| (*f, is.as_str(), *b))
            .collect();
        assert_eq!(said, expected);
    }
}

#[test]
fn an_origin_is_read_as_it_is_written() {
    for (place, time) in [(list(), ""), (Bucket::Later, "1.5"), (Bucket::Dead, "")] {
        let origin = conversion(PYTHON, &place, time).unwrap().origin;
        assert_eq!(origin.to_string().parse(), Ok(origin));
    }
    assert!("a b c".parse::<Origin>().is_err());
}

#[test]
fn what_has_not_changed_comes_back_as_it_was() {
    let from_list = conversion(GO, &list(), "").unwrap().origin;
    let stands = Stands {
        attempts: 1,
        ..Stands::default()
    };
    let expected = (list(), String::new(), GO.to_owned());
    assert_eq!(exported_record(GO, &from_list, &stands), expected);
    let later = conversion(PYTHON, &Bucket::Later, "2.0005").unwrap().origin;
    let stands = Stands {
        due_ms: Some(2_001),
        ..Stands::default()
    };
    let expected = (Bucket::Later, "2.0005".to_owned(), PYTHON.to_owned());
    assert_eq!(exported_record(PYTHON, &later, &stands), expected);
    let dead = GO.replace("pending", "failed");
    let origin = conversion(&dead, &Bucket::Dead, "").unwrap().origin;
    let stands = Stands {
        attempts: 1,
        dead: true,
        ..Stands::default()
    };
    let expected = (Bucket::Dead, String::new(), dead.clone());
    assert_eq!(exported_record(&dead, &origin, &stands), expected);
}

#[test]
fn what_has_changed_is_all_that_does() {
    let origin = conversion(GO, &list(), "").unwrap().origin;
    let again = Stands {
        attempts: 2,
        error: Some("boom".to_owned()),
        due_ms: Some(9_000),
        dead: false,
    };
    let (place, time, text) = exported_record(GO, &origin, &again);
    assert_eq!((place, time.as_str()), (Bucket::Later, "9"));
    let expected = GO
        .replace("12:00:00.5Z", "00:00:00.000000Z")
        .replace("2026-01-31T00:00:00.000000Z", "1970-01-01T00:00:00.000000Z")
        .replace("\"attempts\":1", "\"attempts\":2")
        .replace(
            "s\":3",
            "s\":3,\"error\":\"boom\",\"scheduled_for\":\"1970-01-01T00:00:09.000000Z\"",
        );
    assert_eq!(text, expected);
    let dead = Stands {
        due_ms: None,
        dead: true,
        ..again
    };
    let (place, _, text) = exported_record(GO, &origin, &dead);
    assert!(place == Bucket::Dead && text.contains("\"failed\"") && text.contains("boom"));
}

#[test]
fn what_came_due_or_is_to_run_again_waits_on_its_list() {
    let origin = conversion(PYTHON, &Bucket::Later, "2").unwrap().origin;
    let (place, _, text) = exported_record(PYTHON, &origin, &Stands::default());
    assert_eq!(place, Bucket::List("bananas:queue:low".to_owned()));
    assert_eq!(text, PYTHON.replace(", \"scheduled_for\": \"s\"", ""));
    let dead = GO.replace("pending", "failed");
    let origin = conversion(&dead, &Bucket::Dead, "").unwrap().origin;
    let (place, _, text) = exported_record(&dead, &origin, &Stands::default());
    assert_eq!(place, Bucket::List("bananas:queue:low".to_owned()));
    assert!(text.contains("\"pending\"") && text.contains("\"attempts\":0"));
}
