//! Drawings of a flow: a tree for terminals, Mermaid and SVG, and the waterfall of a run. All are made from [`Dag`]s.

mod layout;
mod mermaid;
mod svg;
mod text;
mod waterfall;

#[cfg(test)]
mod tests;

use meshwork_model::flow::Dag;

pub use mermaid::mermaid;
pub use svg::{svg, svg_with_links};
pub use text::text;
pub use waterfall::{Bar, waterfall_svg, waterfall_svg_with_links, waterfall_text};

/// The columns of a terminal that says no other width.
pub const WIDTH: usize = 80;

/// A sign for the status of a job.
fn sign(status: Option<&str>) -> &'static str {
    match status {
        Some("finished") => "✓",
        Some("error") => "✗",
        Some("started") => "▶",
        Some("skipped") => "–",
        _ => "·",
    }
}

/// The fill and the line of a job's box.
fn colours(status: Option<&str>) -> (&'static str, &'static str) {
    match status {
        Some("finished") => ("#e6f4ea", "#137333"),
        Some("error") => ("#fce8e6", "#b3261e"),
        Some("started") => ("#e8f0fe", "#1a56c4"),
        Some("skipped") => ("#f1f3f4", "#80868b"),
        _ => ("#ffffff", "#5f6368"),
    }
}

/// The classes of a job's box, by which a page may give it other colours.
fn class(status: Option<&str>) -> &'static str {
    match status {
        Some("finished") => "box finished",
        Some("error") => "box error",
        Some("started") => "box started",
        Some("skipped") => "box skipped",
        _ => "box",
    }
}

/// Writes a part of a drawing, as a link if it has one.
fn linked(link: Option<String>, out: &mut String, part: impl FnOnce(&mut String)) {
    let Some(link) = link else {
        return part(out);
    };
    out.push_str("<a href=\"");
    out.push_str(&escape(&link));
    out.push_str("\">");
    part(out);
    out.push_str("</a>");
}

/// `1 job`, `2 jobs`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// The places of jobs in a graph by their ids.
fn numbers(dag: &Dag<String>) -> std::collections::HashMap<&str, usize> {
    let ids = dag.nodes.iter().enumerate();
    ids.map(|(number, node)| (node.id.as_str(), number))
        .collect()
}

/// Text within an element or attribute of XML. Characters that XML does not have are left out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// A text of at most so many characters, the last of which says that some are missing.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    }
}
