//! The graph as SVG: boxes in columns, edges from left to right. No fonts, scripts or links are loaded by it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use meshwork_model::flow::Dag;

use super::layout::{Layout, MAX_ROWS, NodePosition, layout};
use super::{class, colours, counted, cut, escape, linked, numbers, sign};

const BOX_WIDTH: usize = 150;
const BOX_HEIGHT: usize = 40;
const COLUMN: usize = 210;
const ROW: usize = 56;
const MARGIN: usize = 20;
const TITLE: usize = 30;
/// The most characters of a name in a box.
const LABEL: usize = 20;

/// The drawing of a flow with this name.
#[must_use]
pub fn svg(dag: &Dag<String>, name: &str) -> String {
    svg_with_links(dag, name, |_| None)
}

/// As [`svg`], with a link for each job that has one.
#[must_use]
pub fn svg_with_links(
    dag: &Dag<String>,
    name: &str,
    link: impl Fn(&str) -> Option<String>,
) -> String {
    let layout = layout(dag);
    let columns = layout.folded.len().max(1);
    let width = 2 * MARGIN + (columns - 1) * COLUMN + BOX_WIDTH;
    let height = 2 * MARGIN + TITLE + layout.rows.max(1) * ROW - (ROW - BOX_HEIGHT);
    let mut out = header(width, height, name);
    edges(dag, &layout, &mut out);
    for (number, node) in dag.nodes.iter().enumerate() {
        let NodePosition { column, row } = layout.places[number];
        if layout.folded[column] > 0 && row + 1 == MAX_ROWS {
            continue;
        }
        let status = node.status.as_deref();
        let label = match status {
            None => cut(&node.id, LABEL),
            status => format!("{} {}", sign(status), cut(&node.id, LABEL - 2)),
        };
        let title = match &node.error {
            Some(error) => format!("{}: {error}", node.id),
            None => node.id.clone(),
        };
        let style = Style {
            status,
            dashed: node.compensates.is_some(),
        };
        linked(link(&node.id), &mut out, |out| {
            let place = layout.places[number];
            boxed(place, &label, &node.script_type, &title, style, out);
        });
    }
    for (column, folded) in layout
        .folded
        .iter()
        .enumerate()
        .filter(|(_, folded)| **folded > 0)
    {
        let place = NodePosition {
            column,
            row: MAX_ROWS - 1,
        };
        let label = format!("… {}", counted(*folded, "more job"));
        let style = Style {
            status: None,
            dashed: true,
        };
        boxed(place, &label, "", &label, style, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// The start of a drawing, with its title.
pub(super) fn header(width: usize, height: usize, name: &str) -> String {
    let name = escape(name);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{name}</title>\n\
         <rect class=\"sheet\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{}\" font-size=\"14\" font-weight=\"bold\">{name}</text>\n",
        MARGIN + 4
    )
}

fn corner(place: NodePosition) -> (usize, usize) {
    (
        MARGIN + place.column * COLUMN,
        MARGIN + TITLE + place.row * ROW,
    )
}

fn edges(dag: &Dag<String>, layout: &Layout, out: &mut String) {
    let numbers = numbers(dag);
    let of = |id: &String| corner(layout.places[numbers[id.as_str()]]);
    // Jobs that share a row share their edges.
    let plain = dag.edges.iter().map(|(from, to)| (of(from), of(to), false));
    let undo = dag.nodes.iter().filter_map(|node| {
        let undone = node.compensates.as_ref()?;
        Some((of(undone), of(&node.id), true))
    });
    let edges: BTreeSet<_> = plain.chain(undo).collect();
    for ((x, y), (to_x, to_y), dashed) in edges {
        let (x, y, to_y) = (x + BOX_WIDTH, y + BOX_HEIGHT / 2, to_y + BOX_HEIGHT / 2);
        let middle = (x + to_x) / 2;
        let dash = if dashed {
            " stroke-dasharray=\"4 3\""
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "<path class=\"edge\" d=\"M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}\" fill=\"none\" stroke=\"#9aa0a6\"{dash}/>"
        );
    }
}

/// The look of a box.
struct Style<'a> {
    status: Option<&'a str>,
    dashed: bool,
}

fn boxed(
    place: NodePosition,
    label: &str,
    below: &str,
    title: &str,
    style: Style<'_>,
    out: &mut String,
) {
    let (x, y) = corner(place);
    let Style { status, dashed } = style;
    let (fill, line) = colours(status);
    let class = class(status);
    let dash = if dashed {
        " stroke-dasharray=\"4 3\""
    } else {
        ""
    };
    let middle = x + BOX_WIDTH / 2;
    let (label, below, title) = (escape(label), escape(&cut(below, LABEL)), escape(title));
    let _ = write!(
        out,
        "<g><title>{title}</title>\
         <rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"6\" fill=\"{fill}\" stroke=\"{line}\"{dash}/>\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
        y + 17
    );
    if !below.is_empty() {
        let _ = write!(
            out,
            "<text x=\"{middle}\" y=\"{}\" class=\"small\" text-anchor=\"middle\" font-size=\"10\" fill=\"#5f6368\">{below}</text>",
            y + 31
        );
    }
    out.push_str("</g>\n");
}
