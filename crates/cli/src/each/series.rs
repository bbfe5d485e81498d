//! Identity of a series: its name from a digest of the options and inputs, and the ids of its jobs from its seed.
//!
//! The same command gets the same ids until its series has ended, so no job is enqueued twice. A changed input gets a
//! new id.

use std::os::unix::ffi::OsStrExt;

use data_encoding::HEXLOWER;
use meshwork::Client;
use meshwork_model::name::JobId;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::args::input::Input;
use crate::args::script::{Script, absolute};
use crate::error::CommandError;
use crate::job_args::JobArgs;
use crate::persist::persist;

/// A started series.
pub(super) struct Series {
    pub(super) digest: String,
    /// True if the series existed before.
    pub(super) resumed: bool,
    /// Ids in the order of the inputs.
    pub(super) ids: Vec<JobId>,
}

impl Series {
    /// Starts a series, or resumes the one of that name.
    pub(super) async fn begin(
        client: &Client,
        digest: String,
        inputs: &[Input],
    ) -> Result<Self, CommandError> {
        let fresh = Uuid::new_v4().to_string();
        let broker = client.broker();
        let begin = async || broker.begin_series(&digest, &fresh).await;
        let seed = persist(broker.outages(), "each", begin).await?;
        Ok(Self {
            digest,
            resumed: seed != fresh,
            ids: job_ids(&seed, inputs),
        })
    }
}

/// Computes the name of a series. Files are part of it with absolute paths, since relative ones are ambiguous.
pub(super) fn digest(script: &Script, job_args: &JobArgs, inputs: &[Input]) -> String {
    let mut hash = Hash::new("batch 2");
    hash.part(&script.text);
    hash.part(script.script_type.as_str());
    hash.part(job_args.group.as_ref().map_or("", |group| group.as_str()));
    hash.part(format!("{:?} {}", job_args.timeout, job_args.retries));
    let JobArgs {
        priority,
        exclusive,
        backoff,
        tags,
        start_timeout,
        ..
    } = job_args;
    hash.part(format!("{backoff:?} {priority} {exclusive}"));
    for (name, id) in &job_args.depends_on {
        hash.part(id.as_str());
        if let Some(name) = name {
            hash.part(format!("{name}="));
        }
    }
    hash.part(job_args.on_failure.as_str());
    if let Some(timeout) = job_args.prerequisite_timeout {
        hash.part(format!("{timeout:?}"));
    }
    if let Some(timeout) = start_timeout {
        hash.part(format!("start {timeout:?}"));
    }
    for tag in tags {
        hash.part(format!("tag {tag}"));
    }
    let mut env = job_args.env.clone();
    env.sort();
    for (name, value) in env {
        hash.part(name);
        hash.part(value);
    }
    hash.part("files");
    for input in inputs {
        hash.part(absolute(&input.path).as_os_str().as_bytes());
    }
    HEXLOWER.encode(&hash.ended())
}

/// Returns the ids of the jobs of the series with this seed.
pub(super) fn job_ids(seed: &str, inputs: &[Input]) -> Vec<JobId> {
    let id = |(at, input): (usize, &Input)| {
        let mut hash = Hash::new("job 1");
        hash.part(seed);
        hash.part(at.to_string());
        hash.part(absolute(&input.path).as_os_str().as_bytes());
        hash.part(input.hash);
        let mut random = [0; 16];
        random.copy_from_slice(&hash.ended()[..16]);
        JobId::foreign(Builder::from_random_bytes(random).into_uuid().to_string())
    };
    inputs.iter().enumerate().map(id).collect()
}

/// Hash over length-prefixed parts.
struct Hash(Sha256);

impl Hash {
    fn new(kind: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.part(kind);
        hash
    }

    fn part(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn ended(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(path: &str, content: &[u8]) -> Input {
        Input {
            path: path.into(),
            hash: Sha256::digest(content).into(),
        }
    }

    fn script(text: &str) -> Script {
        Script {
            script_type: "osis".parse().unwrap(),
            text: text.to_owned(),
        }
    }

    fn job_args(env: &[(&str, &str)]) -> JobArgs {
        JobArgs {
            script_type: None,
            group: None,
            route: None,
            env: env
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            timeout: None,
            retries: 0,
            backoff: None,
            priority: Default::default(),
            start_timeout: None,
            tags: Vec::new(),
            depends_on: Vec::new(),
            on_failure: Default::default(),
            prerequisite_timeout: None,
            exclusive: false,
            check: false,
            sandbox: Default::default(),
            trace: Default::default(),
        }
    }

    #[test]
    fn the_name_says_what_was_asked_for() {
        let inputs = [input("a", b"1"), input("b", b"2")];
        let base = digest(&script("1"), &job_args(&[]), &inputs);
        let changed = [input("a", b"x"), input("b", b"2")];
        assert_eq!(
            digest(&script("1"), &job_args(&[]), &changed),
            base,
            "contents are the jobs'"
        );
        let swapped = [input("b", b"2"), input("a", b"1")];
        let env = job_args(&[("A", "B")]);
        let group = JobArgs {
            group: Some("g".parse().unwrap()),
            ..job_args(&[])
        };
        let retries = JobArgs {
            retries: 1,
            ..job_args(&[])
        };
        let urgent = JobArgs {
            priority: "high".parse().unwrap(),
            ..job_args(&[])
        };
        let later = JobArgs {
            depends_on: vec![(None, "j".parse().unwrap())],
            ..job_args(&[])
        };
        let tagged = JobArgs {
            tags: vec!["t".parse().unwrap()],
            ..job_args(&[])
        };
        for other in [
            digest(&script("1"), &tagged, &inputs),
            digest(&script("1"), &urgent, &inputs),
            digest(&script("1"), &later, &inputs),
            digest(&script("2"), &job_args(&[]), &inputs),
            digest(&script("1"), &env, &inputs),
            digest(&script("1"), &group, &inputs),
            digest(&script("1"), &retries, &inputs),
            digest(&script("1"), &job_args(&[]), &inputs[..1]),
            digest(&script("1"), &job_args(&[]), &swapped),
        ] {
            assert_ne!(other, base);
        }
        let (one, two) = (job_args(&[("A", "BC")]), job_args(&[("AB", "C")]));
        assert_ne!(
            digest(&script("1"), &one, &inputs),
            digest(&script("1"), &two, &inputs)
        );
    }

    #[test]
    fn an_id_says_seed_place_and_content() {
        let inputs = [input("a", b"1"), input("a", b"1")];
        let ids = job_ids("s", &inputs);
        assert_eq!(ids, job_ids("s", &inputs));
        assert_ne!(ids[0], ids[1]);
        assert_ne!(ids, job_ids("t", &inputs));
        let changed = job_ids("s", &[input("a", b"1"), input("a", b"2")]);
        assert_eq!((changed[0] == ids[0], changed[1] == ids[1]), (true, false));
        let uuid: Uuid = ids[0].as_str().parse().unwrap();
        assert_eq!(uuid.get_version_num(), 4);
    }
}
