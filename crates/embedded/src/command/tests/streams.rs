//! Streams: log entries, changes for WATCH, and snapshots.

use super::Bench;

/// Runs the commands and expects the effects of the last one.
fn check(commands: &[&str], effects: &[&str]) {
    let mut bench = Bench::new();
    let (last, before) = commands.split_last().unwrap();
    for command in before {
        bench.run(command).unwrap();
    }
    bench.take_effects();
    let _ = bench.run(last);
    assert_eq!(bench.take_effects(), effects, "{commands:?}");
}

const THREE: [&str; 4] = [
    "XADD s 1-1 f a",
    "XADD s 2-1 f b",
    "XADD s 3-1 f c",
    "XGROUP CREATE s g 0",
];

/// Does the same after [`THREE`] entries.
fn after_three(more: &[&str], effects: &[&str]) {
    check(&[&THREE[..], more].concat(), effects);
}

#[test]
fn ids_and_lengths_are_settled() {
    check(&["XADD s * f v"], &["XADD s 1800000000000-0 f v"]);
    check(&["XADD s NOMKSTREAM * f v"], &[]);
    check(&["XADD s 5-* f v"], &["XADD s 5-0 f v"]);
    check(&["XADD s 5-3 f v", "XADD s 5-* f v"], &["XADD s 5-4 f v"]);
    check(&["XADD s MAXLEN 5 1 f v"], &["XADD s 1-0 f v"]);
    after_three(&["XADD s MAXLEN 2 4 f v"], &["XADD s MAXLEN = 2 4-0 f v"]);
    after_three(&["XTRIM s MAXLEN ~ 1"], &[]);
    after_three(&["XTRIM s MINID 3"], &["XTRIM s MINID = 3-0"]);
    let hundred = vec!["XADD s 7-* f v"; 100];
    let all = [
        &["XADD s 5 f v"][..],
        &hundred,
        &["XTRIM s MAXLEN ~ 0 LIMIT 100"],
    ]
    .concat();
    check(&all, &["XTRIM s MAXLEN = 1"]);
    let all = [
        &["XADD s 5 f v"][..],
        &hundred,
        &["XTRIM s MINID ~ 8 LIMIT 100"],
    ]
    .concat();
    check(&all, &["XTRIM s MINID = 7-99"]);
}

#[test]
fn reading_in_a_group_is_what_it_did() {
    let read = "XREADGROUP GROUP g c COUNT 2 STREAMS s >";
    after_three(
        &[read],
        &[
            "XGROUP CREATECONSUMER s g c",
            "XCLAIM s g c 0 1-1 2-1 TIME 1800000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 2-1",
            "XGROUP SETID s g 2-1 ENTRIESREAD 2",
        ],
    );
    after_three(
        &["XREADGROUP GROUP g c NOACK STREAMS s >"],
        &[
            "XGROUP CREATECONSUMER s g c",
            "XGROUP SETID s g 3-1 ENTRIESREAD 3",
        ],
    );
    after_three(
        &[read, "XDEL s 2-1", "XREADGROUP GROUP g c STREAMS s 0"],
        &["XCLAIM s g c 0 1-1 TIME 1800000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 2-1"],
    );
    after_three(&[read, "XACK s g 1-1 1-1 9-9"], &["XACK s g 1-1 1-1 9-9"]);
    after_three(
        &[read, "XDEL s 1-1", "XAUTOCLAIM s g d 0 0"],
        &[
            "XCLAIM s g c 0 1-1 TIME 1800000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 2-1",
            "XCLAIM s g d 0 2-1 TIME 1800000000000 RETRYCOUNT 2 FORCE JUSTID LASTID 2-1",
        ],
    );
    after_three(
        &["XCLAIM s g c 0 1-1 FORCE TIME 5 RETRYCOUNT 3 LASTID 3-1"],
        &["XCLAIM s g c 0 1-1 TIME 5 RETRYCOUNT 3 FORCE JUSTID LASTID 3-1"],
    );
    after_three(
        &["XCLAIM s g c 0 1-1 LASTID 2-1"],
        &["XGROUP SETID s g 2-1 ENTRIESREAD -1"],
    );
}

#[test]
fn what_changes_nothing_leaves_nothing() {
    for command in [
        "XDEL s 9-9",
        "XADD s 1-1 f v",
        "XTRIM s MAXLEN 3",
        "XACK s g 1-1",
        "XGROUP CREATE s g 0",
        "XGROUP DESTROY s nope",
        "XGROUP DELCONSUMER s g nope",
        "XREADGROUP GROUP nope c STREAMS s >",
        "XCLAIM s g c 0 1-1",
        "XAUTOCLAIM s g c 0 0",
        "XSETID s 1-1",
        "XREAD STREAMS s 0",
    ] {
        after_three(&[command], &[]);
    }
}

#[test]
fn only_changes_of_the_entries_are_changes_for_watch() {
    for (write, changes) in [
        ("XADD s 9 f v", true),
        ("XDEL s 1-1", true),
        ("XTRIM s MAXLEN 1", true),
        ("XTRIM s MAXLEN 10", false),
        ("XSETID s 9", false),
        ("XGROUP CREATE s h 0", false),
        ("XGROUP DESTROY s g", false),
        ("XREADGROUP GROUP g c STREAMS s >", false),
    ] {
        let mut bench = Bench::new();
        for command in THREE {
            bench.run(command).unwrap();
        }
        let before = bench.store.watch(0, &"s".into());
        bench.run(write).unwrap();
        let after = bench.store.version(0, b"s").unwrap();
        assert_eq!(before != after, changes, "{write}");
    }
}

#[test]
fn a_snapshot_tells_all_of_a_stream() {
    let mut bench = Bench::new();
    for command in [
        &THREE[..],
        &["XREADGROUP GROUP g c STREAMS s >", "XDEL s 2-1"],
    ]
    .concat()
    {
        bench.run(command).unwrap();
    }
    for command in [
        "XGROUP CREATECONSUMER s g d",
        "XADD e 5 f v",
        "XDEL e 5",
        "XSETID e 3-0",
    ] {
        bench.run(command).unwrap();
    }
    let lines: Vec<_> = bench
        .store
        .snapshot()
        .map(|effect| super::line(&effect))
        .collect();
    assert_eq!(
        lines,
        [
            "XADD s 1-1 f a",
            "XADD s 3-1 f c",
            "XSETID s 3-1 ENTRIESADDED 3 MAXDELETEDID 2-1",
            "XGROUP CREATE s g 3-1 ENTRIESREAD 3",
            "XGROUP CREATECONSUMER s g c",
            "XGROUP CREATECONSUMER s g d",
            "XCLAIM s g c 0 1-1 3-1 TIME 1800000000000 RETRYCOUNT 1 FORCE JUSTID",
            "XADD e MAXLEN 0 0-1 x y",
            "XSETID e 5-0 ENTRIESADDED 1 MAXDELETEDID 5-0",
            "XSETID e 3-0",
        ]
    );
}

#[test]
fn a_snapshot_keeps_what_was_when_it_was_taken() {
    let mut bench = Bench::new();
    for number in 1..=250 {
        bench.run(&format!("XADD s {number} f v")).unwrap();
    }
    bench.run("XGROUP CREATE s g 0").unwrap();
    let before = bench.content();
    let frozen = bench.store.frozen();
    for command in [
        "XADD s 999 f v",
        "XDEL s 7 120",
        "XREADGROUP GROUP g c STREAMS s >",
        "XTRIM s MAXLEN 3",
    ] {
        bench.run(command).unwrap();
    }
    let mut lines: Vec<_> = frozen
        .snapshot()
        .map(|effect| super::line(&effect))
        .collect();
    lines.sort();
    assert_eq!(lines, before);
}

/// The shortest value of a field `f` after these entries that starts a new node, as in redis-server 7.0.15.
#[test]
fn nodes_are_full_when_they_are_full_in_redis() {
    let letters = |count| format!("XADD s 1-1 f {}", "v".repeat(count));
    let (short, long, longer) = (letters(63), letters(64), letters(126));
    for (entries, shortest) in [
        (&["XADD s 1-1 f v"][..], 4066),
        (&[&short], 4004),
        (&[&long], 4002),
        (&[&longer], 3939),
        (&["XADD s 1-1 f 127"], 4067),
        (&["XADD s 1-1 f 128"], 4066),
        (&["XADD s 1-1 f -4096"], 4066),
        (&["XADD s 1-1 f 4096"], 4065),
        (&["XADD s 1-1 f 32768"], 4064),
        (&["XADD s 1-1 f 8388608"], 4063),
        (&["XADD s 1-1 f 2147483648"], 4059),
        (&["XADD s 1-1 f 007"], 4064),
        (&["XADD s 1-1 f v g w h x"], 4054),
        (
            &[
                "XADD s 1-1 f v g w",
                "XADD s 1-2 f v g 12345",
                "XADD s 1-3 g v f w",
            ],
            4023,
        ),
        (
            &[
                "XADD s 5-9 f v",
                "XADD s 6-1 f v",
                "XADD s 200-1 f v",
                "XADD s 8400000-1 f v",
            ],
            4025,
        ),
        (
            &["XADD s 5-9 f v", "XADD s 5-9000000000000000000 f v"],
            4047,
        ),
    ] {
        for (length, nodes) in [(shortest - 1, 1), (shortest, 2)] {
            let mut bench = Bench::new();
            for entry in entries {
                bench.run(entry).unwrap();
            }
            let last = format!("XADD s 9000000000000000000-9 f {}", "x".repeat(length));
            bench.run(&last).unwrap();
            let info = bench.reply("XINFO STREAM s");
            let expected = format!("radix-tree-keys :{nodes} ");
            assert!(
                info.contains(&expected),
                "{entries:?} and {length}: {info:.90}"
            );
        }
    }
}

#[test]
fn an_entry_gets_older_until_it_is_claimed() {
    let mut bench = Bench::new();
    for number in 1..=12 {
        bench.run(&format!("XADD s {number}-1 f v")).unwrap();
    }
    bench.run("XGROUP CREATE s g 0").unwrap();
    bench.run("XREADGROUP GROUP g c STREAMS s >").unwrap();
    bench.now_ms += 500;
    assert_eq!(bench.reply("XPENDING s g IDLE 501 - + 10"), "*0");
    assert_eq!(
        bench.reply("XPENDING s g IDLE 500 - + 1"),
        "*1 *4 $3 1-1 $1 c :500 :1"
    );
    let idle = |ms: &str| format!("*1 *6 $4 name $1 c $7 pending :12 $4 idle :{ms}");
    assert_eq!(bench.reply("XINFO CONSUMERS s g"), idle("500"));
    // Ten entries are examined for each one that may be claimed.
    assert_eq!(
        bench.reply("XAUTOCLAIM s g d 501 0 COUNT 1"),
        "*3 $4 11-1 *0 *0"
    );
    assert_eq!(bench.reply("XAUTOCLAIM s g d 501 11"), "*3 $3 0-0 *0 *0");
    assert_eq!(bench.reply("XCLAIM s g d 501 1-1"), "*0");
    assert_eq!(bench.reply("XINFO CONSUMERS s g"), idle("500"));
    assert_eq!(bench.reply("XREADGROUP GROUP g c STREAMS s >"), "*-1");
    assert_eq!(
        bench.reply("XINFO CONSUMERS s g"),
        idle("500"),
        "nothing was delivered"
    );
    bench
        .run("XREADGROUP GROUP g c COUNT 1 STREAMS s 0")
        .unwrap();
    assert_eq!(bench.reply("XINFO CONSUMERS s g"), idle("0"));
    assert_eq!(
        bench.reply("XPENDING s g - + 2"),
        "*2 *4 $3 1-1 $1 c :0 :2 *4 $3 2-1 $1 c :500 :1"
    );
    assert_eq!(
        bench.reply("XAUTOCLAIM s g d 500 0 COUNT 1 JUSTID"),
        "*3 $3 3-1 *1 $3 2-1 *0"
    );
    assert_eq!(
        bench.reply("XPENDING s g 2-1 2-1 1"),
        "*1 *4 $3 2-1 $1 d :0 :1"
    );
}
