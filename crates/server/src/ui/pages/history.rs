//! The last 72 hours of a queue, as bars.

use maud::{Markup, html};
use meshwork_model::time;
use meshwork_model::time::duration;
use serde::Deserialize;
use serde_json::json;

use crate::api::ApiError;
use crate::ui::caller::Caller;
use crate::ui::text::number;
use crate::ui::views::Queue;

/// Hours that are shown.
const HOURS: u64 = 72;
const HOUR_MS: u64 = 3_600_000;
/// Width of a bar with its gap, and height of the tallest one.
const STEP: u64 = 10;
const HEIGHT: f64 = 80.0;

/// An hour.
#[derive(Debug, Deserialize)]
struct Hour {
    start_at: String,
    end_at: String,
    counts: Option<Counts>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Counts {
    stored: u64,
    finished: u64,
    failed: u64,
    retried: u64,
    run_ms: u64,
}

#[derive(Debug, Deserialize)]
struct History {
    hours: Vec<Hour>,
}

/// Reads and draws the history of a queue.
pub(super) async fn card(caller: &Caller, queue: &Queue) -> Result<Markup, ApiError> {
    let history: History = caller
        .read_here("queue.history", json!({"queue": queue.queue}))
        .await?;
    let sum = history.hours.iter().filter_map(|hour| hour.counts);
    let sum = sum.fold(Counts::default(), |sum, hour| Counts {
        stored: sum.stored + hour.stored,
        finished: sum.finished + hour.finished,
        failed: sum.failed + hour.failed,
        retried: sum.retried + hour.retried,
        run_ms: sum.run_ms + hour.run_ms,
    });
    let runs = sum.finished + sum.failed + sum.retried;
    Ok(html! {
        section.card #history data-part {
            h2 { "72 hours" }
            @if history.hours.is_empty() { p.note { "The history begins when workers have run for an hour." } }
            @else {
                p {
                    (number(sum.stored)) " stored, " (number(sum.finished)) " finished, " (number(sum.failed)) " failed, "
                    (number(sum.retried)) " retried"
                    @if runs > 0 { "; a run took " (duration(sum.run_ms / runs)) " on average" }
                }
                div.scroll tabindex="0" role="region" aria-label="Finished and failed jobs of each hour" { (bars(caller, &history.hours)) }
                p.note { "One bar for each hour: finished jobs, and above them failed ones. A gap means that the counters were reset, or that no worker ran." }
            }
        }
    })
}

fn bars(caller: &Caller, hours: &[Hour]) -> Markup {
    let ended = |counts: Counts| counts.finished + counts.failed;
    let most = hours.iter().filter_map(|hour| hour.counts.map(ended)).max();
    let most = most.unwrap_or(0).max(1) as f64;
    let first = (caller.now_ms / HOUR_MS).saturating_sub(HOURS - 1);
    let tall = |count: u64| count as f64 / most * HEIGHT;
    let placed = hours.iter().filter_map(|hour| {
        let at = time::parse_iso(&hour.end_at)?.saturating_sub(1) / HOUR_MS;
        Some((
            at.checked_sub(first)?.min(HOURS - 1) * STEP,
            hour,
            hour.counts?,
        ))
    });
    html! {
        svg.hours viewBox={"0 0 " (HOURS * STEP) " " (HEIGHT)} role="img" aria-label="Jobs of each hour" {
            @for (x, hour, counts) in placed {
                @let (good, bad) = (tall(counts.finished), tall(counts.failed));
                g {
                    title { (hour.start_at) ": " (number(counts.finished)) " finished, " (number(counts.failed)) " failed, " (number(counts.stored)) " stored" }
                    rect.space x=(x) y="0" width=(STEP - 2) height=(HEIGHT) {}
                    rect.finished x=(x) y=(format!("{:.1}", HEIGHT - good)) width=(STEP - 2) height=(format!("{good:.1}")) {}
                    rect.failed x=(x) y=(format!("{:.1}", HEIGHT - good - bad)) width=(STEP - 2) height=(format!("{bad:.1}")) {}
                }
            }
        }
    }
}
