//! Python scripts that change what their end needs: descriptors, limits, the search path, functions of modules.

use meshwork_model::outcome::{FailureKind, Report};
use meshwork_test_servers::servers::{Tool, need};

use super::python::need_python;
use super::support::{failure, output, run, script};

async fn python(text: &str) -> Report {
    run("python", script(text)).await
}

/// Scripts that take from Python what its end needs: the outcome is there all the same.
#[tokio::test]
async fn whatever_a_script_has_changed_its_outcome_is_kept() {
    need_python!();
    const FILES: &str = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nheld = []\n\
                         try:\n    while True: held.append(open('/dev/null'))\nexcept OSError: pass\n";
    const PATH: &str = "import sys\nsys.path[:] = ['/opt/app']\nsys.meta_path[:] = []\n";
    const REBOUND: &str = "import sys\nsys.path = []\n";
    const OPEN: &str = "from unittest import mock\nmock.patch('builtins.open').start()\n";
    const SIZE: &str = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n";
    const CLOSED: &str = "import os\nos.closerange(3, 64)\n";
    const USER: &str =
        "import os\nif os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n";
    for change in [FILES, PATH, REBOUND, OPEN, SIZE, CLOSED, USER] {
        for (end, result) in [
            ("result = {'a': 1}", r#"{"a":1}"#),
            ("result = 'x' * 100_000 + 'y'", "y"),
            ("print('said')", "said\n"),
        ] {
            let report = python(&format!("{change}{end}")).await;
            assert!(
                output(&report).ends_with(result),
                "{change}{end}: {report:?}"
            );
        }
        for (end, kind, message) in [
            (
                "raise RuntimeError('no')",
                FailureKind::Script,
                "RuntimeError: no",
            ),
            ("raise Permanent('never')", FailureKind::Permanent, "never"),
            (
                "result = {1}",
                FailureKind::Script,
                "the result cannot be handed over: TypeError",
            ),
        ] {
            let report = python(&format!("{change}{end}")).await;
            let failure = failure(&report);
            assert_eq!(failure.kind, kind, "{change}{end}: {failure:?}");
            assert!(
                failure.message.starts_with(message),
                "{change}{end}: {failure:?}"
            );
        }
    }
}

/// Without the modules that print it, an error keeps its type and message.
#[tokio::test]
async fn an_error_that_cannot_be_printed_keeps_its_type_and_message() {
    need_python!();
    for text in [
        "import traceback\ntraceback.TracebackException = None\nraise RuntimeError('no')",
        "import sys\nsys.modules['traceback'] = None\nraise RuntimeError('no')",
    ] {
        let report = python(text).await;
        assert_eq!(failure(&report).message, "RuntimeError: no");
    }
}
