//! Client of the Mycelium daemon of this host: JSON-RPC over HTTP. The daemon serves one call at a time, so no call waits
//! there.

use meshwork_macros::boxed;
use std::net::IpAddr;
use std::time::Duration;

use data_encoding::BASE64;
use meshwork_model::actor_key::KeyBytes;
use reqwest::{Client, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest time of one call. The daemon answers within milliseconds, unless another program waits in it.
const CALL: Duration = Duration::from_secs(10);
/// Greatest length of an answer, in bytes: above the greatest payload as base64.
const MAX_ANSWER: usize = 12 * 1024 * 1024;

/// Reason why the daemon cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeshError {
    /// The address is not that of a daemon on this host.
    #[error(
        "{url:?} is no address of a Mycelium daemon on this host: write http://127.0.0.1:8990. Whoever reaches its API can \
         send as this node"
    )]
    Url {
        /// The address.
        url: String,
    },
    /// The daemon does not answer.
    #[error(
        "no Mycelium daemon answers at {url}: start `mycelium`, or name its JSON-RPC address with --mycelium ({why})"
    )]
    Unreachable {
        /// Address of the daemon.
        url: String,
        /// The fault.
        why: String,
    },
    /// The daemon gave another answer than expected.
    #[error("the Mycelium daemon at {url} refused `{method}`: {why}")]
    Refused {
        /// Address of the daemon.
        url: String,
        /// The called method.
        method: &'static str,
        /// The fault.
        why: String,
    },
}

/// Description of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonInfo {
    /// Public key of the daemon in the overlay network.
    pub key: KeyBytes,
    /// Time of its start, in seconds since 1970. A restart loses all messages in the daemon.
    pub started: i64,
}

/// A message that the daemon has received.
#[derive(Debug)]
pub(super) struct Arrived {
    /// Key of the daemon that sent it.
    pub(super) from: KeyBytes,
    pub(super) payload: Vec<u8>,
}

/// Client of a daemon; cheap to clone.
#[derive(Debug, Clone)]
pub struct Daemon {
    http: Client,
    url: Url,
}

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u32,
    method: &'a str,
    params: Value,
}

impl<'a> Request<'a> {
    const fn new(method: &'a str, params: Value) -> Self {
        Self {
            jsonrpc: "2.0",
            id: 1,
            method,
            params,
        }
    }
}

#[derive(Deserialize)]
struct Response<T> {
    #[serde(default = "Option::default")]
    result: Option<T>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    node_pubkey: String,
    node_start_time: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inbound {
    src_pk: String,
    payload: String,
}

impl Daemon {
    /// Default address of the JSON-RPC API.
    pub const DEFAULT_URL: &str = "http://127.0.0.1:8990";

    /// Creates a client of the daemon at an address of this host. Connects to nothing.
    ///
    /// # Errors
    /// [`MeshError::Url`].
    pub fn new(text: &str) -> Result<Self, MeshError> {
        let refused = || MeshError::Url {
            url: text.chars().take(80).collect(),
        };
        let url: Url = text.parse().map_err(|_| refused())?;
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let has_password = url.password().is_some() || !url.username().is_empty();
        if url.scheme() != "http" || !is_here || has_password {
            return Err(refused());
        }
        // A proxy of the environment would read the messages.
        let http = Client::builder().no_proxy().timeout(CALL).build();
        let http = http.map_err(|_| refused())?;
        Ok(Self { http, url })
    }

    /// Returns its address.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    fn refused(&self, method: &'static str, why: String) -> MeshError {
        MeshError::Refused {
            url: self.url.to_string(),
            method,
            why,
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<Option<T>, MeshError> {
        let answer: Response<T> = self.post(method, &Request::new(method, params)).await?;
        self.result(method, answer)
    }

    fn result<T>(&self, method: &'static str, answer: Response<T>) -> Result<Option<T>, MeshError> {
        match answer.error {
            Some(error) => Err(self.refused(method, format!("error {}", error.code))),
            None => Ok(answer.result),
        }
    }

    /// Sends a request, or several ones, and reads the answer.
    async fn post<T: DeserializeOwned>(
        &self,
        method: &'static str,
        request: &impl Serialize,
    ) -> Result<T, MeshError> {
        let unreachable = |error: reqwest::Error| MeshError::Unreachable {
            url: self.url.to_string(),
            why: error.without_url().to_string(),
        };
        let refused = |why: String| self.refused(method, why);
        let body = serde_json::to_vec(request).map_err(|error| refused(error.to_string()))?;
        let call = self.http.post(self.url.clone()).body(body);
        let call = call.header("content-type", "application/json");
        let mut answer = call.send().await.map_err(unreachable)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_ANSWER {
                return Err(refused(format!("its answer has over {MAX_ANSWER} bytes")));
            }
        }
        let wrong = |_| refused(format!("its answer is no JSON-RPC ({})", answer.status()));
        serde_json::from_slice(&bytes).map_err(wrong)
    }

    fn missing(&self, method: &'static str) -> MeshError {
        self.refused(
            method,
            "its answer lacks a field, or has another form".to_owned(),
        )
    }

    /// Returns the description of the daemon.
    ///
    /// # Errors
    /// [`MeshError::Unreachable`] or [`MeshError::Refused`].
    #[boxed]
    pub async fn info(&self) -> Result<DaemonInfo, MeshError> {
        const METHOD: &str = "getInfo";
        let info: Option<Info> = self.call(METHOD, json!([])).await?;
        let info = info.ok_or_else(|| self.missing(METHOD))?;
        let key = info.node_pubkey.parse();
        Ok(DaemonInfo {
            key: key.map_err(|_| self.missing(METHOD))?,
            started: info.node_start_time,
        })
    }

    /// Passes a payload to the daemon, which sends it. The daemon's word that it arrived counts for nothing.
    pub(super) async fn push(
        &self,
        to: KeyBytes,
        topic: &[u8],
        payload: &[u8],
    ) -> Result<(), MeshError> {
        let message = json!({
            "dst": {"pk": to.to_string()},
            "topic": BASE64.encode(topic),
            "payload": BASE64.encode(payload),
        });
        let pushed: Option<Value> = self.call("pushMessage", json!([message, null])).await?;
        pushed.map(drop).ok_or_else(|| self.missing("pushMessage"))
    }

    /// Takes the oldest messages of a topic, at most `many`; the empty topic has those without one. Never waits in the
    /// daemon, which would delay every other call.
    pub(super) async fn pop(&self, topic: &[u8], many: usize) -> Result<Vec<Arrived>, MeshError> {
        const METHOD: &str = "popMessage";
        let request = Request::new(METHOD, json!([false, 0, BASE64.encode(topic)]));
        let answers: Vec<Response<Inbound>> = match many {
            0 | 1 => vec![self.post(METHOD, &request).await?],
            _ => self.post(METHOD, &vec![&request; many]).await?,
        };
        let mut arrived = Vec::new();
        for answer in answers {
            let Some(popped) = self.result(METHOD, answer)? else {
                continue;
            };
            let payload = BASE64.decode(popped.payload.as_bytes());
            match (popped.src_pk.parse(), payload) {
                (Ok(from), Ok(payload)) => arrived.push(Arrived { from, payload }),
                _ => return Err(self.missing(METHOD)),
            }
        }
        Ok(arrived)
    }
}

#[cfg(test)]
mod tests {
    use meshwork_model::actor_key::SecretKey;
    use meshwork_model::context::NodeId;
    use meshwork_model::mesh::{Frame, Item};
    use meshwork_test_servers::eventually;
    use meshwork_test_servers::fakes::mycelium::hosted::FakeMycelium;

    use super::*;

    /// Longest time of a delivery.
    const BOUND: Duration = Duration::from_secs(30);

    /// The fake never delivers most of these lengths, as the real one.
    #[test]
    fn frames_of_all_lengths_arrive_and_many_with_one_call() {
        // Each has a runtime of its own.
        let first = FakeMycelium::start(&[]);
        let second = FakeMycelium::start(&[first.link()]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(all_lengths_arrive(&first, &second));
    }

    async fn all_lengths_arrive(first: &FakeMycelium, second: &FakeMycelium) {
        let from = Daemon::new(&first.url()).unwrap();
        let to = Daemon::new(&second.url()).unwrap();
        let (there, here) = (to.info().await.unwrap().key, from.info().await.unwrap().key);
        let (key, me) = (SecretKey::from_seed(&[5; 32]), NodeId([1; 32]));
        let lengths = [
            1300, 1301, 1400, 1549, 1550, 2601, 2849, 13_001, 13_249, 1_048_576,
        ];
        let mut frames = Vec::new();
        for length in lengths {
            let item = Item::Message(vec![1; length - Frame::AROUND - 5]);
            let frame = Frame {
                dst: me,
                src: NodeId([2; 32]),
                sent_ms: 0,
                items: vec![item],
            };
            let bytes = frame.seal(&key).unwrap();
            from.push(there, b"t", &bytes).await.unwrap();
            frames.push(bytes);
        }
        let mut arrived = Vec::new();
        eventually("all frames arrive", BOUND, async || {
            // More than there are: the others have no answer.
            let popped = to.pop(b"t", 4).await.unwrap();
            assert!(popped.iter().all(|one| one.from == here));
            for one in popped {
                // A daemon may deliver a message twice.
                if !arrived.contains(&one.payload) {
                    arrived.push(one.payload);
                }
            }
            (arrived.len() == frames.len()).then_some(())
        })
        .await;
        // Several have the same length, since frames are padded.
        frames.sort();
        arrived.sort();
        assert!(frames == arrived);
        let more = to.pop(b"t", 1).await.unwrap();
        assert!(more.iter().all(|one| frames.contains(&one.payload)));
    }

    #[test]
    fn only_a_daemon_of_this_host_is_used() {
        for url in [
            Daemon::DEFAULT_URL,
            "http://[::1]:1",
            "http://localhost:8990/rpc",
        ] {
            assert!(Daemon::new(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "127.0.0.1:8990",
            "https://127.0.0.1:8990",
            "http://192.0.2.1:8990",
            "http://localhost.example.org",
            "http://u:p@127.0.0.1:8990",
        ] {
            assert!(Daemon::new(url).is_err(), "{url}");
        }
    }
}
