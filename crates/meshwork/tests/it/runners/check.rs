//! Scripts that are looked at before they are accepted.

use meshwork::runtime::{ScriptError, SourcePosition, check};
use meshwork::{Error, JobRequest};
use meshwork_model::name::ScriptType;

use super::python::need_python;
use super::support::within;
use meshwork_test_servers::servers::{Tool, need};

/// The error of a script, and its position.
async fn wrong(script_type: &str, script: &[u8]) -> (String, usize, usize) {
    match within(check(script_type, script)).await {
        Err(ScriptError::Syntax {
            message,
            at: SourcePosition { line, column },
            ..
        }) => (message, line, column),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rhai_is_checked_as_it_would_be_run() {
    for good in [
        "let x = 40; print(x); progress(0.5); x + 2",
        "fn f(x) { x } f(INPUT)",
        "nowhere(1)",
    ] {
        assert_eq!(check("osis", good.as_bytes()).await, Ok(()), "{good}");
    }
    assert_eq!(
        wrong("osis", b"let x = 1;\nlet y = = 2;").await,
        ("Unexpected '='".to_owned(), 2, 9)
    );
    let (message, line, _) = wrong("osis", b"eval(\"1\")").await;
    assert!(message.contains("eval") && line == 1, "{message}");
    assert_eq!(wrong("osis", b"\xff").await.0, "it is not UTF-8 text");
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let (message, ..) = wrong("osis", deep.as_bytes()).await;
    assert!(message.contains("maximum complexity"), "{message}");
}

#[tokio::test]
async fn python_is_checked_and_not_run() {
    need_python!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("touched");
    let good = format!("open({file:?}, 'w').close()\nresult = nowhere\nimport nothing\nx = '\\d'");
    assert_eq!(within(check("python", good.as_bytes())).await, Ok(()));
    assert!(!file.exists());
    assert_eq!(
        wrong("python", b"x = 1\ny = = 2\n").await,
        ("SyntaxError: invalid syntax".to_owned(), 2, 5)
    );
    let (message, line, _) = wrong("python", b"if True:\nx = 1").await;
    assert!(
        message.starts_with("IndentationError: ") && line == 2,
        "{message}"
    );
    for bad in [&b"x = '\xff'"[..], b"x = 1\0", b"# coding: nonsense\n"] {
        assert!(!wrong("python", bad).await.0.is_empty());
    }
    // Whatever it does to the parser, there is an answer.
    for (open, close) in [("(", ")"), ("-", ""), ("[", "]"), ("f(", ")")] {
        let deep = format!("x = {}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(
            within(check("python", deep.as_bytes())).await.is_err(),
            "{open}"
        );
    }
}

#[tokio::test]
async fn what_nobody_knows_cannot_be_checked() {
    let error = check("cobol", b"STOP RUN.").await.unwrap_err();
    let message = "scripts of type `cobol` cannot be checked here; osis, python, exec, sal, v can";
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn a_request_is_checked_whole() {
    let osis = || ScriptType::OSIS.parse::<ScriptType>().unwrap();
    let good = JobRequest::new(osis(), "40 + 2");
    assert!(good.check_syntax().await.is_ok());
    let error = JobRequest::new(osis(), "40 +")
        .check_syntax()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Script { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("the script cannot be read as osis: ")
            && error.to_string().contains("(line 1"),
        "{error}"
    );
    let error = JobRequest::new(osis(), " ")
        .check_syntax()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}
