//! Ctrl-C while a flow is shown: the command detaches from the flow, or cancels it.

use std::io::{self, BufRead, IsTerminal};

use meshwork::flow::{FlowView, Plan};
use meshwork_model::keys::context::FlowId;
use tokio::sync::oneshot;

use super::live::Live;
use super::place::Place;
use crate::error::CommandError;
use crate::interrupt::Interrupt;
use crate::out::note;

/// Answer to Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Workers of the context continue the flow.
    Detach,
    /// Cancels the flow.
    Cancel,
}

/// Shows the progress of a flow until it has ended. After Ctrl-C the user of a terminal chooses to detach or to cancel.
/// Without a terminal, and after SIGTERM or a second Ctrl-C, the command detaches.
///
/// # Errors
/// The command has detached, or the server refuses a call.
pub(super) async fn wait(
    place: &Place,
    (id, plan): (FlowId, &Plan),
    interrupt: &Interrupt,
) -> Result<FlowView, CommandError> {
    let ended = interrupt.or(show(place, (id, plan))).await;
    let Err(interrupted) = interrupt.check() else {
        return ended;
    };
    // The jobs of the flow continue meanwhile.
    let answer = match interrupted.is_ctrl_c() && asks() {
        true => tokio::select! {
            answer = answer(id) => answer,
            ended = place.flows.wait(id, |_| {}) => return Ok(ended?),
        },
        false => Answer::Detach,
    };
    if answer == Answer::Cancel {
        place.session.cancel(id, true).await?;
        return show(place, (id, plan)).await;
    }
    let context = place.flows.context();
    note(format_args!(
        "workers of the context continue flow {id}: `meshwork worker --context {context}` starts one, `meshwork flow status {id} \
         --wait` shows it, `meshwork flow cancel {id}` cancels it"
    ));
    Err(interrupted.into())
}

async fn show(place: &Place, (id, plan): (FlowId, &Plan)) -> Result<FlowView, CommandError> {
    let mut live = Live::new(plan);
    Ok(place.flows.wait(id, |view| live.show(view)).await?)
}

/// Returns true if a user can answer.
fn asks() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Reads the answer. A second Ctrl-C ends the process, which detaches from the flow.
async fn answer(id: FlowId) -> Answer {
    note(format_args!(
        "flow {id}: [d]etach, and let workers of its context continue it, or [c]ancel it? Ctrl-C detaches [d/c]"
    ));
    let (said, heard) = oneshot::channel();
    // A thread of the runtime would delay the end until a line arrives.
    let reading = std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).ok();
        said.send(line).ok();
    });
    let line = match reading {
        Ok(_) => heard.await.unwrap_or_default(),
        Err(_) => String::new(),
    };
    match line.trim().to_lowercase().as_str() {
        "c" | "cancel" => Answer::Cancel,
        _ => Answer::Detach,
    }
}
