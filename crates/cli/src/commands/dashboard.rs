//! `meshwork dashboard`.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use meshwork_model::api_key::Scope;
use meshwork_server::api::{Access, Api, ApiLimits};
use meshwork_server::http::Listener;
use meshwork_server::ui::{Dashboard, Door, LinkToken, Options, PROFILE};
use serde::Serialize;
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::args::guard::GuardArgs;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;
use crate::scope::ActorArgs;

/// Longest body of a form, in bytes.
const MAX_BODY: u32 = 64 * 1024;
/// Greatest number of changes at once.
const CHANGES: usize = 100;

/// Serve the pages of the dashboard, until Ctrl-C or SIGTERM
///
/// Prints a link that signs one browser in. Its pages show jobs, queues, workers, dead letters, schedules and flows, and
/// change them as the actor of this command (docs/dashboard.md). `meshwork supervisor --listen` has the same pages, for
/// keys of the API.
#[derive(Debug, clap::Args)]
pub(crate) struct DashboardCommand {
    /// Address of the pages; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9070")]
    listen: SocketAddr,
    /// Path before /ui/, if a proxy in front passes one on
    #[arg(long, value_name = "PATH", default_value = "/")]
    prefix: Prefix,
    /// Show all pages, and change nothing
    #[arg(long)]
    read_only: bool,
    /// Show no script, no input and no result of a job
    #[arg(long)]
    hide_payloads: bool,
    /// Open the link in a browser
    #[arg(long)]
    open: bool,
    /// Longest wait for requests under way at shutdown
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    shutdown_timeout: Duration,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    guard: GuardArgs,
}

/// Path before all pages, without a slash at its end.
#[derive(Debug, Clone)]
struct Prefix(String);

impl FromStr for Prefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let path = text.trim_end_matches('/');
        let is_part = |part: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
            !part.is_empty() && !part.chars().all(|c| c == '.') && part.chars().all(fits)
        };
        let parts = path
            .strip_prefix('/')
            .map(|path| path.split('/').all(is_part));
        match parts {
            None if path.is_empty() => Ok(Self(String::new())),
            Some(true) => Ok(Self(path.to_owned())),
            _ => Err("give a path as /tools/meshwork, of letters, digits, - _ . and ~"),
        }
    }
}

/// The dashboard serves.
#[derive(Debug, Serialize)]
struct Ready<'a> {
    event: &'static str,
    /// Link for one use.
    link: &'a str,
}

impl DashboardCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen()?;
        let client = interrupt.or(context.client()).await?;
        let listener = Listener::bind(self.listen, "the dashboard").await?;
        let me = self.actor.identity().find(&client).await?;
        let limits = ApiLimits {
            max_body: MAX_BODY,
            concurrency: CHANGES,
            read_timeout: self.guard.read_timeout(),
            grace: self.shutdown_timeout,
        };
        let api = Api::new(client.clone(), me.map(|me| me.id()), limits);
        let scope = if self.read_only {
            Scope::Viewer
        } else {
            Scope::Admin
        };
        let (token, text) = LinkToken::new();
        let options = Options {
            prefix: self.prefix.0.clone(),
            hide_payloads: self.hide_payloads,
            alone: true,
        };
        let door = Door::Link(token, Access::Local(scope));
        let dashboard = Dashboard::new(api, &client, door, options);
        let address = listener.address();
        let link = format!("http://{address}{}sign-in#{text}", dashboard.path());
        let page = self.tell(&link, context)?;
        let guard = self.guard.guard(dashboard.authenticate(), PROFILE);
        let stop = CancellationToken::new();
        let serves = dashboard.serve(listener, guard, stop.clone());
        tokio::pin!(serves);
        tokio::select! {
            () = &mut serves => {}
            never = dashboard.poll() => never,
            _ = interrupt.heard() => {
                stop.cancel();
                serves.await;
            }
        }
        drop(page);
        Ok(Exit::DONE)
    }

    /// Prints the link, and opens it if a browser is wanted. The returned file is to be kept until the end.
    fn tell(&self, link: &str, context: &mut App) -> Result<Option<NamedTempFile>, CommandError> {
        match context.out.is_json() {
            true => context.out.json(&Ready {
                event: "ready",
                link,
            })?,
            false => note(format_args!(
                "dashboard at {link}\nthe link signs one browser in, once"
            )),
        }
        context.out.flush()?;
        match self.open {
            true => open(link),
            false => Ok(None),
        }
    }
}

/// Opens a link in a browser, over a private file: other users see the arguments of a process.
fn open(link: &str) -> Result<Option<NamedTempFile>, CommandError> {
    let failed = |error| CommandError::new(Exit::SYSTEM, error);
    let mut file = tempfile::Builder::new()
        .prefix("meshwork-")
        .suffix(".html")
        .tempfile()
        .map_err(failed)?;
    let page = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url={link}\"><title>Meshwork</title>"
    );
    file.write_all(page.as_bytes())
        .and_then(|()| file.flush())
        .map_err(failed)?;
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut browser = Command::new(program);
    browser
        .arg(file.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Err(error) = browser.spawn() {
        note(format_args!(
            "no browser was opened: {program}: {error}; open the link yourself"
        ));
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_path() {
        let read = |text: &str| text.parse::<Prefix>().map(|prefix| prefix.0).ok();
        assert_eq!(read("/").as_deref(), Some(""));
        assert_eq!(
            read("/tools/mesh-work/").as_deref(),
            Some("/tools/mesh-work")
        );
        for text in ["tools", "//a", "/a b", "/a?b", "/..", "/a/../b", "/{a}"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
