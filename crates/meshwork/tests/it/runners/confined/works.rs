//! Work that a sandbox does not hinder.

use meshwork::model::outcome::FailureKind;
use meshwork::model::sandbox::Profile;
use meshwork::runtime::Confinement;

use super::super::support::{failure, output};
use super::{need_sandbox, python_in, run_in};

#[tokio::test]
async fn a_script_has_its_input_its_folder_and_its_result() {
    need_sandbox!();
    for profile in Profile::ALL {
        let script = "import os, sys, tempfile
progress(0.5, 'half')
open('here', 'w').write(sys.stdin.read())
with tempfile.TemporaryFile() as file:
    file.write(b'x')
open('/tmp/there', 'w').close()
os.unlink('/tmp/there')
open('/dev/null', 'w').write('x')
os.urandom(1)
result = open('here').read()";
        let report = run_in(Confinement::of(profile), "python", script, "given").await;
        assert_eq!(output(&report), "given", "{profile}");
        let script = r##"{"script": "#!/bin/sh\ncat; pwd >there; ls there", "args": []}"##;
        let report = run_in(Confinement::of(profile), "exec", script, "given ").await;
        assert_eq!(output(&report), "given there\n", "{profile}");
    }
}

#[tokio::test]
async fn named_paths_are_read_and_written() {
    need_sandbox!();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let file = root.join("link/file");
    for profile in [Profile::Standard, Profile::Strict] {
        std::fs::write(root.join("real/file"), "content").unwrap();
        let mut confinement = Confinement::of(profile);
        confinement.read.push(root.join("link"));
        let read = format!("result = open({file:?}).read()");
        let report = run_in(confinement.clone(), "python", &read, "").await;
        assert_eq!(output(&report), "content");
        let write = format!("open({file:?}, 'a').write(' more')");
        let report = run_in(confinement.clone(), "python", &write, "").await;
        assert_eq!(failure(&report).kind, FailureKind::Script);
        confinement.write = std::mem::take(&mut confinement.read);
        let report = run_in(confinement, "python", &write, "").await;
        assert_eq!(output(&report), "");
        let content = std::fs::read_to_string(&file).unwrap();
        assert_eq!(content, "content more");
    }
}

#[tokio::test]
async fn a_path_that_does_not_exist_starts_nothing() {
    need_sandbox!();
    let mut confinement = Confinement::of(Profile::Standard);
    confinement.read.push("/no/such/path".into());
    let report = run_in(confinement, "python", "result = 1", "").await;
    let failure = failure(&report);
    assert_eq!(failure.kind, FailureKind::NotStarted);
    assert!(
        failure.message.contains("--read /no/such/path"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_script_hears_that_it_is_to_end() {
    need_sandbox!();
    for profile in Profile::ALL {
        let script = "import os, signal
signal.signal(15, lambda *_: None)
os.kill(os.getpid(), 15)
result = 'heard'";
        let report = python_in(profile, script).await;
        assert_eq!(output(&report), "heard", "{profile}");
    }
}
