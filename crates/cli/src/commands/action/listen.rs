//! `meshwork action subscribe`.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use meshwork::protocol::nooble::{
    ActionContext, CallbackRequest, Client, Notice, Notification, Service, ServiceHandle,
    Subscription,
};
use meshwork_model::nooble::{Data, ErrorDetail};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::{Side, part, uuid};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::{Out, note, printable};

/// Longest time at shutdown for acknowledging printed callbacks and releasing the others.
const GRACE: Duration = Duration::from_secs(1);

/// Print the notifications of a service, and callbacks, as they come
///
/// A notification reaches all current subscribers. A callback waits for a subscriber, and one subscriber takes it by
/// printing it; if that process is killed meanwhile, another one prints it again. Exits with 0 at Ctrl-C, after
/// --count, or after --timeout (4 if fewer than --count came).
#[derive(Debug, clap::Args)]
pub(crate) struct Listen {
    #[command(flatten)]
    side: Side,
    /// Events to subscribe to, as `action notify` names them
    #[arg(value_name = "EVENT", required_unless_present = "callbacks", num_args = 1..=1000,
          value_parser = NonEmptyStringValueParser::new())]
    events: Vec<String>,
    /// Service that publishes the events
    #[arg(long, value_name = "SERVICE", default_value = "meshwork", value_parser = NonEmptyStringValueParser::new())]
    of: String,
    /// Context of the events, as a tenant's [default: none]
    #[arg(long, value_name = "NAME", value_parser = part)]
    context: Option<String>,
    /// Take the callbacks of this event; may be given several times
    #[arg(long = "callback", value_name = "EVENT", value_parser = NonEmptyStringValueParser::new())]
    callbacks: Vec<String>,
    /// Service that requested the callbacks, as in `action send --as`
    #[arg(long = "as", value_name = "SERVICE", default_value = "meshwork",
          value_parser = NonEmptyStringValueParser::new())]
    origin: String,
    /// Take the callback of this call, which has a private list (`action send --private-reply` printed its id)
    #[arg(long, value_name = "ID", requires = "callbacks", value_parser = uuid)]
    call: Option<String>,
    /// Accept callbacks that no recorded request expects too, such as those of Nooble4's clients
    #[arg(long = "accept-unsolicited", requires = "callbacks")]
    accept_unsolicited: bool,
    /// End after this number of notifications and callbacks [default: no limit]
    #[arg(long, value_name = "N", value_parser = parsers::whole::<u64>(1..=u64::MAX))]
    count: Option<u64>,
    /// End after this time: 500ms, 90s, 10m; a plain number is seconds [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parsers::span)]
    timeout: Option<Duration>,
}

/// A callback, and the channel that confirms its printing.
struct Came {
    result: Result<Data, ErrorDetail>,
    context: ActionContext,
    printed: oneshot::Sender<()>,
}

/// Printed JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Notification {
        event: &'a str,
        from: Option<&'a str>,
        #[serde(flatten)]
        ids: Ids<'a>,
        data: Option<Box<RawValue>>,
    },
    Callback {
        event: &'a str,
        from: Option<&'a str>,
        #[serde(flatten)]
        ids: Ids<'a>,
        success: bool,
        data: Option<Box<RawValue>>,
        error: Option<Box<RawValue>>,
        request: Option<&'a CallbackRequest>,
    },
    Dropped {
        many: u64,
    },
    Gap,
    Unreadable {
        event: &'a str,
        why: &'a str,
        message: std::borrow::Cow<'a, str>,
    },
}

#[derive(Debug, Serialize)]
struct Ids<'a> {
    action_id: &'a str,
    timestamp: &'a str,
    correlation_id: Option<&'a str>,
    trace_id: Option<&'a str>,
    task_id: Option<&'a str>,
}

impl Listen {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen()?;
        let client = interrupt
            .or(self.side.client(&self.origin, context))
            .await?;
        let mut notices = self.subscribed(&client).await?;
        let (sender, mut callbacks) = mpsc::channel(1);
        let service = self.listens(&client, sender).await?;
        let over = tokio::time::sleep(self.timeout.unwrap_or(Duration::MAX));
        tokio::pin!(over);
        let mut left = self.count.unwrap_or(u64::MAX);
        let listens = async {
            if let Some(service) = &service {
                service.registered().await;
            }
        };
        let goes_on = tokio::select! {
            biased;
            () = listens => {
                note("listening");
                true
            }
            _ = interrupt.heard() => false,
            () = &mut over => false,
        };
        while goes_on && left > 0 {
            tokio::select! {
                _ = interrupt.heard() => break,
                () = &mut over => break,
                notice = next(&mut notices) => left -= u64::from(tell(&notice, &mut context.out)?),
                Some(came) = callbacks.recv() => {
                    left -= 1;
                    callback(&came, &mut context.out)?;
                    // The receiver is gone if another subscriber reclaimed the callback.
                    let _ = came.printed.send(());
                }
            }
        }
        if let Some(service) = service {
            service.stop().await;
        }
        Ok(
            match self.count.is_some() && left > 0 && over.is_elapsed() {
                true => Exit::NOT_ENDED,
                false => Exit::DONE,
            },
        )
    }

    async fn subscribed(
        &self,
        client: &Client,
    ) -> Result<Option<Subscription<Data>>, CommandError> {
        if self.events.is_empty() {
            return Ok(None);
        }
        let events: Vec<_> = self.events.iter().map(String::as_str).collect();
        let made = client.subscribe(&self.of, &events, self.context.as_deref());
        Ok(Some(made.await?))
    }

    /// Takes callbacks, one at a time.
    async fn listens(
        &self,
        client: &Client,
        to: mpsc::Sender<Came>,
    ) -> Result<Option<ServiceHandle>, CommandError> {
        if self.callbacks.is_empty() {
            return Ok(None);
        }
        let mut service = Service::listener(client)
            .concurrency(1)
            .shutdown_timeout(GRACE);
        if self.accept_unsolicited {
            service = service.accept_unsolicited();
        }
        for event in &self.callbacks {
            let to = to.clone();
            let handler = move |result, context| hand(result, context, to.clone());
            service = match &self.call {
                Some(call) => service.on_callback_of(event, call, handler),
                None => service.on_callback(event, handler),
            };
        }
        Ok(Some(service.start().await?))
    }
}

/// Passes a callback on to be printed. Callbacks that are not printed at shutdown are released.
async fn hand(
    result: Result<Data, ErrorDetail>,
    context: ActionContext,
    to: mpsc::Sender<Came>,
) -> Result<(), String> {
    let (printed, done) = oneshot::channel();
    let came = Came {
        result,
        context,
        printed,
    };
    if to.send(came).await.is_err() || done.await.is_err() {
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// Returns the next notice; never returns without a subscription.
async fn next(notices: &mut Option<Subscription<Data>>) -> Notice<Data> {
    match notices {
        Some(notices) => notices.next().await,
        None => std::future::pending().await,
    }
}

fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}

fn ids(action: &meshwork_model::nooble::Action) -> Ids<'_> {
    Ids {
        action_id: &action.action_id,
        timestamp: &action.timestamp,
        correlation_id: action.correlation_id.as_deref(),
        trace_id: action.trace_id.as_deref(),
        task_id: action.task_id.as_deref(),
    }
}

/// Prints a notice. Returns true for a notification.
fn tell(notice: &Notice<Data>, out: &mut Out) -> Result<bool, CommandError> {
    let (line, words) = match notice {
        Notice::Received(notice) => {
            notification(notice, out)?;
            return Ok(true);
        }
        Notice::Dropped(many) => {
            let words = format!(
                "{many} notifications were dropped: they came faster than they were printed"
            );
            (Line::Dropped { many: *many }, words)
        }
        Notice::Gap => {
            let words = "connection restored: notifications sent meanwhile were lost";
            (Line::Gap, words.to_owned())
        }
        Notice::Unreadable {
            event,
            why,
            message,
        } => {
            let words = format!("the message on {event} is no notification: {why}");
            let message = String::from_utf8_lossy(message);
            (
                Line::Unreadable {
                    event,
                    why,
                    message,
                },
                words,
            )
        }
        _ => return Ok(false),
    };
    if out.is_json() {
        out.json(&line)?;
        out.flush()?;
    } else {
        note(words);
    }
    Ok(false)
}

fn notification(notice: &Notification<Data>, out: &mut Out) -> Result<(), CommandError> {
    if out.is_json() {
        out.json(&Line::Notification {
            event: &notice.event,
            from: notice.action.origin_service.as_deref(),
            ids: ids(&notice.action),
            data: raw(notice.data.text()),
        })?;
    } else {
        out.line(format_args!(
            "{} {}",
            notice.event,
            printable(notice.data.text())
        ))?;
    }
    Ok(out.flush()?)
}

fn callback(came: &Came, out: &mut Out) -> Result<(), CommandError> {
    let action = &came.context.action;
    let event = action.action_type.as_str();
    let (data, error) = match &came.result {
        Ok(data) => (Some(data.text().to_owned()), None),
        Err(error) => (None, Some(error.write())),
    };
    if out.is_json() {
        out.json(&Line::Callback {
            event,
            from: action.origin_service.as_deref(),
            ids: ids(action),
            success: error.is_none(),
            data: data.as_deref().and_then(raw),
            error: error.as_deref().and_then(raw),
            request: came.context.callback_of.as_ref(),
        })?;
    } else {
        let id = action.correlation_id.as_deref().unwrap_or("-");
        let word = error.as_ref().map_or("", |_| "failed: ");
        let said = data.or(error).unwrap_or_default();
        let (event, said) = (printable(event), printable(&said));
        out.line(format_args!("{event} {id} {word}{said}"))?;
    }
    Ok(out.flush()?)
}
