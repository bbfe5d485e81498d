//! Tests of the way of lines and progress from a run to its reader.

use meshwork_model::job::limits::MAX_LOG;

use super::*;

/// Returns the lines of a batch, with `!` before lines of stderr.
fn said(batch: Batch) -> Vec<String> {
    let entry = |entry| match entry {
        Entry::Line {
            stream: Stream::Stderr,
            text,
        } => format!("!{text}"),
        Entry::Line { text, .. } => text.to_string(),
        Entry::Dropped(lines) => format!("({lines} dropped)"),
    };
    batch.entries.into_iter().map(entry).collect()
}

async fn all(mut drain: LogDrain) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(batch) = drain.next().await {
        lines.extend(said(batch));
    }
    lines
}

#[tokio::test]
async fn lines_come_out_as_they_went_in_however_they_are_cut() {
    for piece in [1, 2, 3, 100] {
        let sink = LogSink::default();
        let drain = sink.drain(100);
        let mut out = sink.writer(Stream::Stdout);
        let text = "one\ntwo\r\n\nlast \u{e4}".as_bytes();
        for piece in text.chunks(piece) {
            out.push(piece);
        }
        assert_eq!(out.finish(), text);
        sink.writer(Stream::Stderr).push(b"err\n");
        sink.close();
        assert_eq!(all(drain).await, ["one", "two", "", "last \u{e4}", "!err"]);
    }
}

#[tokio::test]
async fn a_line_is_there_before_the_next() {
    let sink = LogSink::default();
    let mut drain = sink.drain(10);
    let mut out = sink.writer(Stream::Stdout);
    out.push(b"first\nsec");
    assert_eq!(said(drain.next().await.unwrap()), ["first"]);
    out.push(b"ond\n");
    assert_eq!(said(drain.next().await.unwrap()), ["second"]);
}

#[tokio::test]
async fn a_line_without_its_end_is_shown_once() {
    let sink = LogSink::default();
    let drain = sink.drain(10);
    let mut out = sink.writer(Stream::Stdout);
    out.show();
    for (piece, behind) in [
        (&b"your name? "[..], true),
        (b"", false),
        (b"Bob\nand", true),
        (b"\n", false),
        (b"\n", false),
    ] {
        out.push(piece);
        assert_eq!(out.is_behind(), behind, "{piece:?}");
        out.show();
    }
    assert_eq!(out.finish(), b"your name? Bob\nand\n\n");
    sink.close();
    assert_eq!(all(drain).await, ["your name? ", "Bob", "and", ""]);
}

#[tokio::test]
async fn of_progress_over_carriage_returns_the_latest_is_shown() {
    for piece in [1, 2, 100] {
        let sink = LogSink::default();
        let drain = sink.drain(10);
        let mut out = sink.writer(Stream::Stdout);
        for piece in b"1 %\r22 %\r3 %\r".chunks(piece) {
            out.push(piece);
        }
        out.show();
        for piece in b"50 %\r100 %\r\nnext\r\n".chunks(piece) {
            out.push(piece);
        }
        assert_eq!(out.finish(), b"1 %\r22 %\r3 %\r50 %\r100 %\r\nnext\r\n");
        sink.close();
        assert_eq!(all(drain).await, ["3 %", "100 %", "next"]);
    }
}

#[tokio::test]
async fn long_lines_are_cut_and_say_so() {
    let sink = LogSink::default();
    let drain = sink.drain(10);
    let mut out = sink.writer(Stream::Stdout);
    let whole = "x".repeat(MAX_LINE);
    for text in [
        whole.clone(),
        "ä".repeat(MAX_LINE),
        "after\nno end".to_owned(),
    ] {
        out.push(text.as_bytes());
        out.push(b"\n");
    }
    out.push(&[0xff; MAX_LINE]);
    out.finish();
    sink.close();
    let lines = all(drain).await;
    assert_eq!(lines[0], whole);
    for cut in [1, 4] {
        let line = &lines[cut];
        assert!(line.len() <= MAX_LINE && line.ends_with(CUT), "{line}");
    }
    assert_eq!(&lines[2..4], ["after", "no end"]);
    assert_eq!(lines.len(), 5);
}

#[tokio::test]
async fn what_nobody_takes_is_dropped_from_the_front_and_counted() {
    let sink = LogSink::default();
    let (few, mut many) = (sink.drain(3), sink.drain(1000));
    let mut out = sink.writer(Stream::Stdout);
    for n in 0..500 {
        out.push(format!("{n}\n").as_bytes());
    }
    sink.close();
    assert_eq!(all(few).await, ["(497 dropped)", "497", "498", "499"]);
    assert_eq!(many.next().await.unwrap().entries.len(), 200);
    assert_eq!(all(many).await.len(), 300);
}

#[tokio::test]
async fn the_memory_of_a_drain_is_bounded() {
    let sink = LogSink::default();
    let drain = sink.drain(usize::MAX);
    let mut out = sink.writer(Stream::Stdout);
    let line = [vec![b'x'; MAX_LINE], b"\n".to_vec()].concat();
    for _ in 0..100 {
        out.push(&line);
    }
    assert_eq!(out.finish().len(), MAX_LOG);
    sink.close();
    let kept = all(drain).await;
    assert_eq!(kept[0], "(36 dropped)");
    assert_eq!(kept.len() - 1, drain::MAX_BYTES / MAX_LINE);
}

#[tokio::test]
async fn of_progress_the_latest_is_told() {
    let sink = LogSink::default();
    let mut drain = sink.drain(10);
    sink.progress(0.25, None);
    sink.progress(0.5, Some("half"));
    let batch = drain.next().await.unwrap();
    assert_eq!(batch.entries, []);
    assert_eq!(batch.progress, Some(Progress::new(0.5, Some("half"))));
    for (given, kept) in [(-1.0, 0.0), (7.0, 1.0), (f64::NAN, 0.0)] {
        assert_eq!(Progress::new(given, Some("")).fraction(), kept);
    }
    let long = Progress::new(1.0, Some(&"ä".repeat(MAX_MESSAGE)));
    assert_eq!(long.message().map(str::len), Some(MAX_MESSAGE));
}

#[tokio::test]
async fn no_secret_comes_out() {
    let sink = LogSink::new(Secrets::new(["two\nlines", "hunter22"]));
    let drain = sink.drain(10);
    let mut out = sink.writer(Stream::Stdout);
    for piece in ["a two", "\nli", "nes b hun", "ter22\n", "hunt"] {
        out.push(piece.as_bytes());
    }
    assert_eq!(out.finish(), b"a *** b ***\nhunt");
    sink.close();
    assert_eq!(all(drain).await, ["a *** b ***", "hunt"]);
    let sink = LogSink::new(Secrets::new(["hunter22"]));
    let mut drain = sink.drain(1);
    sink.progress(0.0, Some("with hunter22"));
    let batch = drain.next().await.unwrap().progress.unwrap();
    assert_eq!(batch.message(), Some("with ***"));
}

#[tokio::test]
async fn a_drain_ends_with_its_sink() {
    let sink = LogSink::default();
    let mut left = sink.drain(1);
    let clone = sink.clone();
    drop(sink);
    clone.progress(1.0, None);
    drop(clone);
    assert!(left.next().await.is_some());
    assert_eq!(left.next().await, None);
    let closed = LogSink::default();
    closed.close();
    closed.progress(1.0, None);
    assert_eq!(closed.drain(1).next().await, None);
}
