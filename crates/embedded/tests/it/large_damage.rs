//! A log of 300 kB, cut and changed everywhere: no damage is silent, and none opens with wrong data. `MESHWORK_DAMAGES` is the
//! number of cuts (`all`: at each byte), and of changed bits up to 2,000.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::{Content, LOG, Runs as _, content_of, own};
use meshwork_embedded::{Opened, Options, check_store, open};

const SUMS: &str = "appendonly.aof.sums";
/// Number of cuts of which one is also opened: an engine starts in the time of a hundred checks.
const OPENED: usize = 500;

/// A data directory with a log of 300 kB in ten parts, each written by another owner.
struct Large {
    dir: tempfile::TempDir,
    content: Content,
    paths: [PathBuf; 2],
    whole: [Vec<u8>; 2],
}

impl Large {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for part in 0..10 {
            let owner = own(dir.path(), Options::default()).await;
            let mut session = owner.handle().session();
            for job in 0..200 {
                let script = "x".repeat(100);
                let line = format!("HSET job:{part}:{job} script {script} retries 3");
                session.done(&line).await;
            }
            drop(session);
            owner.close().await.unwrap();
        }
        let paths = [LOG, SUMS].map(|name| dir.path().join(name));
        let whole = paths.each_ref().map(|path| fs::read(path).unwrap());
        assert!(whole[0].len() > 300_000, "{}", whole[0].len());
        let owner = own(dir.path(), Options::default()).await;
        let content = content_of(&owner).await;
        owner.close().await.unwrap();
        let large = Self {
            dir,
            content,
            paths,
            whole,
        };
        large.restore();
        large
    }

    fn restore(&self) {
        (0..2).for_each(|file| fs::write(&self.paths[file], &self.whole[file]).unwrap());
    }

    fn damages(&self) -> usize {
        let len = self.whole[0].len();
        match std::env::var("MESHWORK_DAMAGES").as_deref() {
            Err(_) => 100,
            Ok("all") => len,
            Ok(number) => number.parse::<usize>().unwrap().min(len),
        }
    }

    /// Returns the content, unless the directory is refused.
    async fn opened(&self) -> Option<Content> {
        let Ok(Opened::Owner(owner)) = open(self.dir.path(), Options::default()).await else {
            return None;
        };
        let content = content_of(&owner).await;
        owner.close().await.unwrap();
        Some(content)
    }
}

#[tokio::test]
async fn no_cut_of_a_large_log_is_silent() {
    let large = Large::new().await;
    let (len, damages) = (large.whole[0].len(), large.damages());
    let log = OpenOptions::new().write(true).open(&large.paths[0]);
    let log = log.unwrap();
    // From the end on: then a cut needs no copy of the log.
    for number in (0..damages).rev() {
        let cut = number * len / damages;
        log.set_len(cut as u64).unwrap();
        let check = check_store(large.dir.path()).unwrap();
        assert_ne!(check.faults, [], "cut at {cut}");
        if number % OPENED != 0 {
            continue;
        }
        // Each transaction wrote one key.
        let content = large.opened().await.unwrap();
        assert_eq!(content.len() as u64, check.transactions, "cut at {cut}");
        let is_right = |(key, value)| large.content.get(key) == Some(value);
        assert!(content.iter().all(is_right), "cut at {cut}");
        large.restore();
    }
}

#[tokio::test]
async fn no_changed_bit_of_a_large_log_is_silent() {
    let large = Large::new().await;
    let mut random = StdRng::seed_from_u64(300_000);
    for number in 0..large.damages().min(2_000) {
        // A bit of the log, one of the checksums, or one of each.
        for file in [[0].as_slice(), &[1], &[0, 1]][number % 3] {
            let whole = &large.whole[*file];
            let bit = random.random_range(0..whole.len() * 8);
            let changed = [whole[bit / 8] ^ 1 << (bit % 8)];
            let path = OpenOptions::new().write(true).open(&large.paths[*file]);
            let written = path.unwrap().write_all_at(&changed, bit as u64 / 8);
            written.unwrap();
        }
        let check = check_store(large.dir.path()).unwrap();
        assert_ne!(check.faults, [], "change {number}");
        if let Some(content) = large.opened().await {
            assert_eq!(content, large.content, "change {number}");
        }
        large.restore();
    }
}
