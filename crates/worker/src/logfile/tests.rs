//! Paths, content and rotation of log files.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;
use meshwork_runtime::log::{LogSink, Stream};

/// An allowed folder, beside one that is not allowed.
struct Ground {
    dir: TempDir,
    folders: LogFolders,
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["logs", "more", "out"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let allowed = ["logs", "more"].map(|name| dir.path().join(name));
        let folders = LogFolders::open(&allowed).unwrap();
        Self { dir, folders }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a line to a log file with this path.
    fn write(&self, path: &str, text: &str) -> Result<(), Failure> {
        let file = self.folders.file(path, "job-1");
        let mut file = file.map_err(LogPathError::into_failure)?;
        file.append(&[line_of(text)]).unwrap();
        Ok(())
    }

    #[track_caller]
    fn refused(&self, path: &str, part: &str) {
        let failure = self.write(path, "x").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Permanent, "{failure:?}");
        assert!(failure.message.contains(part), "{}", failure.message);
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn line_of(text: &str) -> Entry {
    Entry::Line {
        stream: Stream::Stdout,
        text: Arc::from(text),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_path_inside_is_followed_and_made_private() {
    let ground = Ground::new();
    ground.write("a.log", "relative").unwrap();
    let deep = ground.path("more/2026/11/b.log");
    ground.write(deep.to_str().unwrap(), "absolute").unwrap();
    assert!(
        ground
            .text("logs/a.log")
            .ends_with("Z job-1 stdout relative\n")
    );
    assert!(ground.text("more/2026/11/b.log").ends_with(" absolute\n"));
    for (name, expected) in [
        ("logs/a.log", 0o600),
        ("more/2026", 0o700),
        ("more/2026/11", 0o700),
    ] {
        assert_eq!(mode(&ground.path(name)), expected, "{name}");
    }
    fs::set_permissions(ground.path("logs/a.log"), Permissions::from_mode(0o666)).unwrap();
    ground.write("a.log", "again").unwrap();
    assert_eq!(mode(&ground.path("logs/a.log")), 0o600);
    assert_eq!(ground.text("logs/a.log").lines().count(), 2);
}

#[test]
fn a_path_that_leads_out_is_refused() {
    let ground = Ground::new();
    let out = ground.path("out/a.log");
    for path in ["../out/a.log", "x/../../out/a.log", "/../a", "./a.log"] {
        ground.refused(path, "it goes through");
    }
    let outside = out.to_str().unwrap();
    ground.refused(outside, "is not inside a folder that this worker allows");
    let beside = format!("{}-beside/a.log", ground.path("logs").display());
    ground.refused(&beside, "start the worker with --log-dir");
    ground.refused("a\nb", "`a\\nb`");
    assert_eq!(fs::read_dir(ground.path("out")).unwrap().count(), 0);
    let none = LogFolders::default().file("a.log", "job-1").unwrap_err();
    assert!(
        none.to_string()
            .contains("writes no log files; start it with --log-dir")
    );
}

#[test]
fn no_link_is_followed() {
    let ground = Ground::new();
    symlink(ground.path("out"), ground.path("logs/link")).unwrap();
    ground.refused("link/a.log", "`link` is a link or no folder");
    ground.refused("link/new/a.log", "`link` is a link or no folder");
    fs::write(ground.path("out/secret"), "kept").unwrap();
    symlink(ground.path("out/secret"), ground.path("logs/a.log")).unwrap();
    ground.refused("a.log", "`a.log` is a link or no regular file");
    fs::hard_link(ground.path("out/secret"), ground.path("logs/hard")).unwrap();
    ground.refused("hard", "has a second name");
    symlink(ground.path("nowhere"), ground.path("logs/dangling")).unwrap();
    ground.refused("dangling", "is a link");
    fs::create_dir(ground.path("logs/folder")).unwrap();
    ground.refused("folder", "no regular file");
    mknodat(
        CWD,
        ground.path("logs/pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    ground.refused("pipe", "no regular file");
    fs::write(ground.path("logs/file"), "").unwrap();
    ground.refused("file/a.log", "`file` is a link or no folder");
    assert_eq!(ground.text("out/secret"), "kept");
    assert_eq!(fs::read_dir(ground.path("out")).unwrap().count(), 1);
}

#[test]
fn a_folder_that_others_may_write_is_refused() {
    let ground = Ground::new();
    let set = |name: &str, mode| {
        fs::set_permissions(ground.path(name), Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(ground.path("logs/sub")).unwrap();
    for mode in [0o1777, 0o777, 0o770, 0o720] {
        set("logs/sub", mode);
        let words = "may be written by its group or by everybody";
        ground.refused("sub/a.log", &format!("`sub` {words}"));
        set("logs", mode);
        ground.refused("a.log", words);
        let error = LogFolders::open(&[ground.path("logs")]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        set("logs", 0o755);
    }
    let error = LogFolders::open(&[ground.path("nowhere")]).unwrap_err();
    assert!(error.to_string().contains("nowhere: "), "{error}");
}

#[test]
fn a_full_file_begins_anew_and_old_ones_are_compressed() {
    let ground = Ground::new();
    let mut file = ground.folders.file("a.log", "j").unwrap();
    file.max_size = 60;
    for n in 0..9 {
        file.append(&[line_of(&format!("number {n}"))]).unwrap();
    }
    let mut names: Vec<_> = fs::read_dir(ground.path("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let archives = [
        "a.log",
        "a.log.1",
        "a.log.2.gz",
        "a.log.3.gz",
        "a.log.4.gz",
        "a.log.5.gz",
    ];
    assert_eq!(names, archives);
    assert!(ground.text("logs/a.log").ends_with("number 8\n"));
    assert!(ground.text("logs/a.log.1").ends_with("number 7\n"));
    for (nth, number) in [(2, 6), (5, 3)] {
        let name = ground.path(&format!("logs/a.log.{nth}.gz"));
        let mut text = String::new();
        GzDecoder::new(File::open(&name).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        assert!(text.ends_with(&format!("number {number}\n")), "{text}");
        assert_eq!(mode(&name), 0o600);
    }
}

#[test]
fn runs_that_share_a_file_lose_no_line() {
    let ground = Ground::new();
    std::thread::scope(|scope| {
        for job in 0..4 {
            let folders = &ground.folders;
            scope.spawn(move || {
                let mut file = folders.file("a.log", &format!("job-{job}")).unwrap();
                file.max_size = 4000;
                for n in 0..100 {
                    file.append(&[line_of(&format!("{n}"))]).unwrap();
                }
            });
        }
    });
    let mut text = String::new();
    for nth in (2..=rotate::KEPT).rev() {
        if let Ok(file) = File::open(ground.path(&format!("logs/a.log.{nth}.gz"))) {
            GzDecoder::new(file).read_to_string(&mut text).unwrap();
        }
    }
    text += &ground.text("logs/a.log.1");
    text += &ground.text("logs/a.log");
    assert_eq!(text.lines().count(), 400);
    for line in text.lines() {
        assert_eq!(line.split(' ').count(), 4, "{line}");
    }
}

#[test]
fn a_line_obeys_nobody() {
    let ground = Ground::new();
    ground.write("a.log", "a\u{1b}[2J\rb\u{9b}c\td ä").unwrap();
    let text = ground.text("logs/a.log");
    assert!(
        text.ends_with("stdout a\\u{1b}[2J\\rb\\u{9b}c\td ä\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_run_is_kept_to_its_last_line() {
    let ground = Ground::new();
    let sink = LogSink::default();
    let file = ground.folders.file("a.log", "j\n1").unwrap();
    let kept = tokio::spawn(file.keep(sink.drain(CAPACITY)));
    let mut out = sink.writer(Stream::Stdout);
    out.push(b"one\ntwo");
    sink.progress(0.5, None);
    out.finish();
    sink.close();
    kept.await.unwrap();
    let text = ground.text("logs/a.log");
    let lines: Vec<_> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap().1)
        .collect();
    assert_eq!(lines, ["j\\n1 stdout one", "j\\n1 stdout two"]);
    let about = fs::metadata(ground.path("logs/a.log")).unwrap();
    assert_eq!(about.nlink(), 1);
}
