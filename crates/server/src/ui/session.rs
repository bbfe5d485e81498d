//! Sessions of the dashboard: in memory, opened by a key or by the link of `meshwork dashboard`, named by a cookie.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use data_encoding::BASE64URL_NOPAD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::api::access::{Access, KeyRing};
use crate::api::rights::Held;
use crate::api::{ApiError, Code};
use crate::http::guard::{Admission, Authenticate, Refusal, bearer};

/// Life of a session.
pub(super) const LASTS: Duration = Duration::from_secs(12 * 3600);
/// Greatest number of sessions. Beyond it the oldest one ends.
const MOST: usize = 1000;
/// Time that the store has to answer for a key; a page has three seconds in all.
const KEY_WITHIN: Duration = Duration::from_millis(400);
/// Name of the cookie behind TLS. Browsers accept this prefix only from the host itself.
const SECURE: &str = "__Host-meshwork";

/// The way to sign in.
#[derive(Debug)]
pub enum Door {
    /// No sign-in: everybody may call all methods.
    Open,
    /// By a key of the API.
    Keys(KeyRing),
    /// By a link for one use, which gives this access.
    Link(LinkToken, Access),
}

/// Token of a link, for one use.
#[derive(Debug)]
pub struct LinkToken(Mutex<Option<[u8; 32]>>);

impl LinkToken {
    /// Makes a token, with its text.
    #[must_use]
    pub fn new() -> (Self, String) {
        let text = random();
        (Self(Mutex::new(Some(digest(&text)))), text)
    }

    /// Uses the token up if this is its text.
    fn take(&self, text: &str) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = known.is_some_and(|known| digest(text).ct_eq(&known).into());
        if is_it {
            *known = None;
        }
        is_it
    }
}

/// Name of a session, as its cookie has it: a digest, so that the memory has no cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionId([u8; 32]);

#[derive(Debug, Clone)]
struct Session {
    held: Held,
    since: Instant,
}

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    door: Door,
    base: String,
    open: Mutex<HashMap<SessionId, Session>>,
}

impl Sessions {
    pub(super) fn new(door: Door, base: String) -> Self {
        let open = Mutex::default();
        Self { door, base, open }
    }

    /// Returns true if nobody has to sign in.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.door, Door::Open)
    }

    /// Returns true if the link of a command opens a session.
    pub(super) fn is_by_link(&self) -> bool {
        matches!(self.door, Door::Link(..))
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session by a key or a token. Returns the text of its cookie.
    pub(super) async fn sign_in(&self, text: &str, peer: IpAddr) -> Result<String, ApiError> {
        let held = match &self.door {
            Door::Open => Held::unchecked(Access::All),
            Door::Keys(ring) => ring.hold(ring.caller(text, peer).await?).await,
            Door::Link(token, access) if token.take(text) => Held::unchecked(access.clone()),
            Door::Link(..) => {
                let message = "the link is used up, or of another process";
                return Err(ApiError::new(Code::InvalidCredentials, message)
                    .hint("start `meshwork dashboard` again for a new link"));
            }
        };
        let cookie = random();
        let since = Instant::now();
        let mut table = self.table();
        table.retain(|_, session| session.since.elapsed() < LASTS);
        if table.len() >= MOST {
            let oldest = table.iter().min_by_key(|(_, session)| session.since);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                table.remove(&oldest);
            }
        }
        table.insert(id_of(&cookie), Session { held, since });
        Ok(cookie)
    }

    /// Ends a session.
    pub(super) fn sign_out(&self, id: SessionId) {
        self.table().remove(&id);
    }

    /// Returns false if a caller has lost rights since it signed in.
    async fn still_holds(&self, held: &Held) -> bool {
        match &self.door {
            Door::Keys(ring) => {
                // While the store is away, a key stays valid, and the page says that it is away.
                let checked = tokio::time::timeout(KEY_WITHIN, ring.still_holds(held)).await;
                checked.unwrap_or(true)
            }
            Door::Link(..) | Door::Open => true,
        }
    }

    /// Returns the caller of a request by its cookie. A session whose caller has lost rights ends.
    async fn of(&self, head: &Parts) -> Option<(SessionId, Access)> {
        for cookie in cookies(&head.headers) {
            let id = id_of(cookie);
            let session = self.table().get(&id).cloned();
            let Some(session) = session.filter(|session| session.since.elapsed() < LASTS) else {
                continue;
            };
            if self.still_holds(&session.held).await {
                return Some((id, session.held.access));
            }
            self.sign_out(id);
        }
        None
    }
}

impl Authenticate for Sessions {
    fn check<'a>(
        &'a self,
        head: &'a mut Parts,
        peer: IpAddr,
    ) -> BoxFuture<'a, Result<Admission, Refusal>> {
        async move {
            let path = head.uri.path();
            let is_page = path
                .strip_prefix(&self.base)
                .is_some_and(|rest| rest.starts_with('/'));
            // A cookie opens pages alone: other sites could make a browser send one to the API.
            if is_page && bearer(&head.headers).is_none() {
                if let Some((id, access)) = self.of(head).await {
                    head.extensions.insert(id);
                    head.extensions.insert(access);
                    return Ok(Admission::Authenticated);
                }
                head.extensions.insert(Access::Nobody);
                return Ok(Admission::Anonymous);
            }
            match &self.door {
                Door::Keys(ring) => ring.check(head, peer).await,
                Door::Link(..) | Door::Open => {
                    head.extensions.insert(Access::Nobody);
                    Ok(Admission::Anonymous)
                }
            }
        }
        .boxed()
    }
}

/// Name of the cookie without TLS. Browsers send cookies to all ports of a host, so each port has a name of its own.
fn plain_name(port: u16) -> String {
    format!("meshwork-{port}")
}

/// Writes the cookie of a session, or with an empty text its end.
pub(super) fn cookie(text: &str, base: &str, (secure, port): (bool, u16)) -> String {
    let seconds = if text.is_empty() { 0 } else { LASTS.as_secs() };
    let rest = format!("HttpOnly; SameSite=Strict; Max-Age={seconds}");
    match secure {
        true => format!("{SECURE}={text}; Path=/; Secure; {rest}"),
        false => format!("{}={text}; Path={base}/; {rest}", plain_name(port)),
    }
}

/// Returns the texts of cookies that may name a session.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(COOKIE).iter();
    let pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'));
    pairs.filter_map(|pair| {
        let (name, text) = pair.trim().split_once('=')?;
        let is_ours = name == SECURE || name.strip_prefix("meshwork-")?.parse::<u16>().is_ok();
        is_ours.then_some(text)
    })
}

fn random() -> String {
    BASE64URL_NOPAD.encode(&rand::random::<[u8; 32]>())
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn id_of(cookie: &str) -> SessionId {
    SessionId(digest(cookie))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn head(cookie: &str) -> Parts {
        let mut head = axum::http::Request::new(()).into_parts().0;
        head.uri = "/ui/jobs".parse().unwrap();
        head.headers
            .insert(COOKIE, HeaderValue::from_str(cookie).unwrap());
        head
    }

    #[tokio::test]
    async fn a_link_opens_one_session() {
        let (token, text) = LinkToken::new();
        let sessions = Sessions::new(Door::Link(token, Access::All), "/ui".to_owned());
        assert!(sessions.sign_in("wrong", PEER).await.is_err());
        let cookie = sessions.sign_in(&text, PEER).await.unwrap();
        let again = sessions.sign_in(&text, PEER).await.unwrap_err();
        assert_eq!(again.code, Code::InvalidCredentials);
        for name in ["meshwork-9070", SECURE] {
            assert!(
                sessions
                    .of(&head(&format!("a=b; {name}={cookie}")))
                    .await
                    .is_some()
            );
        }
        for text in [
            format!("meshwork={cookie}"),
            format!("meshwork-9070={cookie}x"),
            String::new(),
        ] {
            assert!(sessions.of(&head(&text)).await.is_none(), "{text}");
        }
        sessions.sign_out(id_of(&cookie));
        assert!(
            sessions
                .of(&head(&format!("{SECURE}={cookie}")))
                .await
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_cookie_opens_pages_alone() {
        let (token, text) = LinkToken::new();
        let sessions = Sessions::new(Door::Link(token, Access::All), "/ui".to_owned());
        let cookie = sessions.sign_in(&text, PEER).await.unwrap();
        for (path, admission) in [
            ("/ui/jobs", Admission::Authenticated),
            ("/v1/jobs", Admission::Anonymous),
            ("/uix", Admission::Anonymous),
            ("/", Admission::Anonymous),
        ] {
            let mut head = head(&format!("meshwork-1={cookie}"));
            head.uri = path.parse().unwrap();
            assert_eq!(
                sessions.check(&mut head, PEER).await.unwrap(),
                admission,
                "{path}"
            );
        }
    }

    #[test]
    fn a_cookie_is_for_this_host_alone() {
        let plain = cookie("x", "/mw/ui", (false, 80));
        assert_eq!(
            plain,
            "meshwork-80=x; Path=/mw/ui/; HttpOnly; SameSite=Strict; Max-Age=43200"
        );
        let secure = cookie("", "/ui", (true, 80));
        assert_eq!(
            secure,
            "__Host-meshwork=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0"
        );
    }
}
