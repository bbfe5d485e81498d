//! The parser of requests: every cut, every limit, every error.

use proptest::prelude::*;

use super::*;
use crate::resp::encode_command;

fn parse(text: &[u8]) -> Result<Option<Vec<Bytes>>, ProtocolError> {
    RequestParser::default().next(&mut BytesMut::from(text))
}

fn words(text: &str) -> Result<Option<Vec<Bytes>>, ProtocolError> {
    parse(format!("{text}\r\n").as_bytes())
}

fn command(args: &[&[u8]]) -> Result<Option<Vec<Bytes>>, ProtocolError> {
    Ok(Some(
        args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect(),
    ))
}

proptest! {
    #[test]
    fn commands_come_back_however_the_bytes_are_cut(
        commands in proptest::collection::vec(
            proptest::collection::vec(any::<Vec<u8>>(), 1..6), 1..6),
        chunk in 1..40_usize,
    ) {
        let mut wire = Vec::new();
        for args in &commands {
            encode_command(args, &mut wire);
        }
        let (mut parser, mut input, mut seen) = (RequestParser::default(), BytesMut::new(), vec![]);
        for bytes in wire.chunks(chunk) {
            input.extend_from_slice(bytes);
            while let Some(args) = parser.next(&mut input).unwrap() {
                seen.push(args.into_iter().map(Vec::from).collect::<Vec<_>>());
            }
        }
        prop_assert_eq!(seen, commands);
        prop_assert!(input.is_empty());
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let (mut parser, mut input) = (RequestParser::default(), BytesMut::from(&bytes[..]));
        while let Ok(Some(_)) = parser.next(&mut input) {}
    }
}

#[test]
fn inline_words_are_split_as_in_redis() {
    assert_eq!(words("SET a 1"), command(&[b"SET", b"a", b"1"]));
    assert_eq!(words("  PING\t"), command(&[b"PING"]));
    assert_eq!(
        words(r#"SET "a b" "\x41\n\"\\""#),
        command(&[b"SET", b"a b", b"A\n\"\\"])
    );
    assert_eq!(
        words(r"SET '' 'it\'s \n'"),
        command(&[b"SET", b"", br"it's \n"])
    );
    assert_eq!(parse(b"PING\n"), command(&[b"PING"]));
    for unbalanced in [
        r#"SET "a"#,
        r#"SET "a"b"#,
        "SET 'a",
        "SET 'a'b",
        r#"SET "a\"#,
    ] {
        assert_eq!(
            words(unbalanced),
            Err(ProtocolError::Quotes),
            "{unbalanced}"
        );
    }
}

#[test]
fn empty_commands_are_skipped() {
    assert_eq!(
        parse(b"\r\n*0\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n"),
        command(&[b"PING"])
    );
    assert_eq!(parse(b"\r\n*0\r\n"), Ok(None));
}

#[test]
fn refusals_are_worded_as_in_redis() {
    for (text, words) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*1048577\r\n", "invalid multibulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
        ("*1\r\n$x\r\n", "invalid bulk length"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("\"a\r\n", "unbalanced quotes in request"),
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("ERR Protocol error: {words}"),
            "{text}"
        );
    }
}

#[test]
fn lines_are_bounded() {
    let long = "1".repeat(MAX_INLINE + 1);
    assert_eq!(
        parse(format!("*{long}").as_bytes()),
        Err(ProtocolError::LongCount)
    );
    assert_eq!(
        parse(format!("*1\r\n${long}").as_bytes()),
        Err(ProtocolError::LongLength)
    );
    assert_eq!(parse(long.as_bytes()), Err(ProtocolError::LongInline));
    assert_eq!(parse(&long.as_bytes()[..MAX_INLINE]), Ok(None));
}

#[test]
fn a_request_is_bounded_as_a_whole() {
    let mut parser = RequestParser {
        taken: MAX_REQUEST,
        missing: 1,
        ..Default::default()
    };
    let mut input = BytesMut::from(&b"$1\r\n"[..]);
    assert_eq!(parser.next(&mut input), Err(ProtocolError::LongRequest));
}
