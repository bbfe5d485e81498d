//! Parts of pages: buttons, badges, tables, lines of figures, and icons.

use maud::{Markup, PreEscaped, html};

use super::caller::{Caller, LONGEST_VALUE};

/// A form with one button that calls a method; nothing for a caller who may not call it.
pub(super) fn button(
    caller: &Caller,
    (method, label): (&str, &str),
    fields: &[(&str, &str)],
) -> Markup {
    let back = caller.here();
    // Foreign names may have any length.
    let is_short = fields.iter().all(|(_, text)| text.len() <= LONGEST_VALUE);
    html! {
        @if caller.may(method) && is_short {
            form method="post" action=(format!("{}/do/{method}", caller.shared.base)) {
                @for (name, text) in fields { input type="hidden" name=(name) value=(text); }
                @if is_in_context(method) {
                    @if let Some(context) = caller.context { input type="hidden" name="context" value=(context); }
                }
                input type="hidden" name="back" value=(back);
                button type="submit" { (label) }
            }
        }
    }
}

/// A link to a page that wants a confirmation; nothing for a caller who may not call the method.
pub(super) fn confirmed(
    caller: &Caller,
    (method, label): (&str, &str),
    fields: &[(&str, &str)],
) -> Markup {
    let back = caller.here();
    let mut params = vec![("method", method), ("back", back.as_str())];
    params.extend(fields);
    html! {
        @if caller.may(method) { a.button.danger href=(caller.url("/confirm", &params)) { (label) } }
    }
}

/// Returns true for a method that takes a context.
pub(super) fn is_in_context(method: &str) -> bool {
    ["job.", "queue.", "flow."]
        .iter()
        .any(|object| method.starts_with(object))
}

/// A state as a badge.
pub(super) fn state(word: &str) -> Markup {
    let (class, shown) = match word {
        "finished" => ("good", "finished"),
        "error" | "failed" => ("bad", "failed"),
        "started" | "running" => ("busy", "running"),
        "cancelling" => ("busy", "cancelling"),
        "dispatched" | "queued" => ("idle", "queued"),
        "ready" => ("idle", "ready"),
        "waiting_for_prerequisites" | "waiting" => ("wait", "waiting"),
        "delayed" => ("wait", "delayed"),
        "cancelled" | "stopped" => ("gone", "cancelled"),
        "skipped" => ("gone", "skipped"),
        "paused" => ("wait", "paused"),
        other => ("idle", other),
    };
    html! { span class={"badge " (class)} { (super::text::cell_of(shown, 24)) } }
}

/// The state of a job as a badge, with the reason of a dead letter.
pub(super) fn job_state(word: &str, dead: Option<&str>) -> Markup {
    html! {
        (state(word))
        @if let Some(reason) = dead { " " span.note { "dead: " (super::text::cell_of(reason, 24)) } }
    }
}

/// A figure with its name, and a link to its details.
pub(super) fn tile(name: &str, value: &str, note: &Markup, href: Option<&str>) -> Markup {
    let content = html! { span.name { (name) } strong { (value) } span.note { (note) } };
    html! {
        @match href {
            Some(href) => a.tile href=(href) { (content) },
            None => div.tile { (content) },
        }
    }
}

/// A line of values over time, as tall as its greatest value.
pub(super) fn line(values: &[f64], label: &str) -> Markup {
    const WIDTH: f64 = 120.0;
    const HEIGHT: f64 = 28.0;
    let most = values.iter().copied().fold(0.0, f64::max);
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let y = |value: f64| match most > 0.0 {
        true => HEIGHT - 2.0 - value / most * (HEIGHT - 5.0),
        false => HEIGHT - 2.0,
    };
    let points = values.iter().enumerate();
    let points: Vec<_> = points
        .map(|(at, value)| format!("{:.1},{:.1}", at as f64 * step, y(*value)))
        .collect();
    let area = format!(
        "0,{HEIGHT} {} {:.1},{HEIGHT}",
        points.join(" "),
        (values.len().max(1) - 1) as f64 * step
    );
    html! {
        svg.line viewBox={"0 0 " (WIDTH) " " (HEIGHT)} preserveAspectRatio="none" role="img" aria-label=(label) {
            @if values.len() > 1 {
                polygon.area points=(area) {}
                polyline points=(points.join(" ")) fill="none" {}
            }
        }
    }
}

/// A bar of which a part is in use.
pub(super) fn bar(used: u64, of: u64, label: &str) -> Markup {
    let part = 100 * used.min(of) / of.max(1);
    html! {
        svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={(label) ": " (used) " of " (of)} {
            rect.track width="100" height="6" {}
            rect.used width=(part) height="6" {}
        }
    }
}

/// A text where there is nothing to list.
pub(super) fn nothing(title: &str, hint: &Markup) -> Markup {
    html! { div.empty { p { strong { (title) } } p.note { (hint) } } }
}

/// Drawings of 20 × 20, by the colour of the text beside them.
pub(super) fn icon(name: &str) -> Markup {
    let path = match name {
        "brand" => {
            "M4 10a3 3 0 1 0 0-.01M16 4a2 2 0 1 0 0-.01M16 16a2 2 0 1 0 0-.01M6.5 8.6 14 5M6.5 11.4 14 15"
        }
        "overview" => "M3 11h6V3H3zM11 17h6v-9h-6zM3 17h6v-3H3zM11 5h6V3h-6z",
        "jobs" => "M3 5h14M3 10h14M3 15h9",
        "queues" => "M3 4h14v4H3zM3 12h14v4H3z",
        "workers" => "M6 6h8v8H6zM8 3v3M12 3v3M8 14v3M12 14v3M3 8h3M3 12h3M14 8h3M14 12h3",
        "dead" => "M10 3 18 17H2zM10 8v4M10 14.4v.1",
        "schedules" => "M10 3a7 7 0 1 0 .01 0M10 6v4l3 2",
        "flows" => "M3 3h5v4H3zM12 8h5v4h-5zM3 13h5v4H3zM8 5h2v10H8M10 10h2",
        "search" => "M9 3a6 6 0 1 0 .01 0M13.5 13.5 18 18",
        _ => "",
    };
    let drawing = format!(
        "<svg class=\"icon\" viewBox=\"0 0 20 20\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>"
    );
    PreEscaped(drawing)
}
