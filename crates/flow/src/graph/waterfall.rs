//! The waterfall of a run: a bar for each job, from its start to its end.

use std::fmt::Write as _;

use super::svg::header;
use super::{class, colours, counted, cut, escape, linked, sign};

/// The run of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The name of the job.
    pub name: String,
    /// The status: `started`, `finished`, `error` or `skipped`.
    pub status: String,
    /// The start, in milliseconds on any clock.
    pub start_ms: u64,
    /// The end on the same clock. None: the job still runs.
    pub end_ms: Option<u64>,
}

/// The most bars that are drawn.
const MAX_BARS: usize = 200;
/// The most characters of a name.
const NAME: usize = 20;
/// The characters of a duration.
const DURATION: usize = 8;

/// The bars within the time from the first start to the last end; `now_ms` is the end of those that still run.
struct Scale {
    from: u64,
    span: u64,
    now: u64,
}

impl Scale {
    fn new(bars: &[Bar], now: u64) -> Self {
        let from = bars.iter().map(|bar| bar.start_ms).min().unwrap_or(now);
        let ends = bars
            .iter()
            .map(|bar| bar.end_ms.unwrap_or(now).max(bar.start_ms));
        let to = ends.max().unwrap_or(now).max(from);
        let span = (to - from).max(1);
        Self { from, span, now }
    }

    /// The start and the length of a bar on a line of `width`, at least 1 long.
    fn place(&self, bar: &Bar, width: usize) -> (usize, usize) {
        let width = width.max(1) as u128;
        let scaled =
            |ms: u64| u128::from(ms.saturating_sub(self.from)) * width / u128::from(self.span);
        let start = scaled(bar.start_ms).min(width - 1);
        let end = scaled(self.end(bar)).clamp(start + 1, width);
        (start as usize, (end - start) as usize)
    }

    fn end(&self, bar: &Bar) -> u64 {
        bar.end_ms.unwrap_or(self.now).max(bar.start_ms)
    }
}

/// The waterfall in lines of at most `width` characters, in the order of the bars.
#[must_use]
pub fn waterfall_text(bars: &[Bar], now_ms: u64, width: usize) -> String {
    let scale = Scale::new(bars, now_ms);
    let longest = bars
        .iter()
        .map(|bar| bar.name.chars().count())
        .max()
        .unwrap_or(0);
    let name = longest.min(NAME);
    let room = width.saturating_sub(name + DURATION + 5).max(10);
    let mut out = String::new();
    for bar in bars.iter().take(MAX_BARS) {
        let (start, length) = scale.place(bar, room);
        let line = format!("{}{}", " ".repeat(start), "█".repeat(length));
        let duration = duration(scale.end(bar) - bar.start_ms);
        let shown = cut(&bar.name, name);
        let sign = sign(Some(&bar.status));
        let _ = writeln!(
            out,
            "{sign} {shown:name$} │{line:room$}│ {duration:>DURATION$}"
        );
    }
    if bars.len() > MAX_BARS {
        let _ = writeln!(out, "… {}", counted(bars.len() - MAX_BARS, "more job"));
    }
    out
}

/// The waterfall as SVG.
#[must_use]
pub fn waterfall_svg(bars: &[Bar], now_ms: u64, name: &str) -> String {
    waterfall_svg_with_links(bars, now_ms, name, |_| None)
}

/// As [`waterfall_svg`], with a link for each bar that has one, by its name.
#[must_use]
pub fn waterfall_svg_with_links(
    bars: &[Bar],
    now_ms: u64,
    name: &str,
    link: impl Fn(&str) -> Option<String>,
) -> String {
    const ROW: usize = 22;
    const LEFT: usize = 180;
    const ROOM: usize = 640;
    let scale = Scale::new(bars, now_ms);
    let shown = bars.len().min(MAX_BARS);
    let height = 60 + ROW * (shown + usize::from(bars.len() > MAX_BARS));
    let mut out = header(LEFT + ROOM + 90, height, name);
    for (row, bar) in bars.iter().take(MAX_BARS).enumerate() {
        let (start, length) = scale.place(bar, ROOM);
        let (x, y) = (LEFT + start, 45 + row * ROW);
        let (fill, line) = colours(Some(&bar.status));
        let class = class(Some(&bar.status));
        let (label, title) = (escape(&cut(&bar.name, NAME + 4)), escape(&bar.name));
        let duration = duration(scale.end(bar) - bar.start_ms);
        linked(link(&bar.name), &mut out, |out| {
            let _ = writeln!(
                out,
                "<g><title>{title}: {duration}</title><text x=\"20\" y=\"{0}\">{label}</text>\
                 <rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{length}\" height=\"14\" rx=\"3\" fill=\"{fill}\" stroke=\"{line}\"/>\
                 <text x=\"{1}\" y=\"{0}\" class=\"small\" font-size=\"10\" fill=\"#5f6368\">{duration}</text></g>",
                y + 11,
                LEFT + ROOM + 10,
            );
        });
    }
    if bars.len() > MAX_BARS {
        let rest = counted(bars.len() - MAX_BARS, "more job");
        let _ = writeln!(
            out,
            "<text x=\"20\" y=\"{}\">… {rest}</text>",
            45 + shown * ROW + 11
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A time in at most [`DURATION`] characters: `850ms`, `12.3s`, `4m05s`, `3h07m`, `12d04h`.
fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..60 => format!("{seconds}.{}s", ms % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}
