//! Layout of the dashboard: aligned columns, colours only for values that need attention, no line wider than the
//! terminal.

use console::{Style, measure_text_width, pad_str, truncate_str};
use meshwork_model::name::Namespace;
use meshwork_model::time;

use crate::out::dashboard::{Board, Line};
use crate::out::one_line;

/// Longest name of a queue, in columns.
const MAX_NAME: usize = 60;
/// Longest list of errors of a queue, in columns.
const MAX_ERRORS: usize = 60;
/// Separator of two columns.
const GAP: &str = "  ";
/// Age of a queue's oldest ready job from which it is highlighted, in seconds.
const LATE: f64 = 60.0;
/// Bars of a trend, from none to the maximum.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Text of a cell and its style.
struct Cell(String, Style);

fn plain(text: impl Into<String>) -> Cell {
    Cell(text.into(), Style::new())
}

/// Returns a cell: in a colour if it needs attention, faint if it is zero.
fn marked(text: String, wants_attention: bool, colour: Style) -> Cell {
    let nothing = matches!(text.as_str(), "0" | "-");
    match (wants_attention, nothing) {
        (true, _) => Cell(text, colour),
        (false, true) => Cell(text, Style::new().dim()),
        (false, false) => plain(text),
    }
}

/// Names of the columns, and `true` for those aligned to the right.
const COLUMNS: [(&str, bool); 10] = [
    ("queue", false),
    ("waiting", true),
    ("oldest", true),
    ("created/s", true),
    ("finished/s", true),
    ("failed/s", true),
    ("mean run", true),
    ("workers", true),
    ("trend", false),
    ("errors", false),
];

/// Columns that become narrower in a terminal that is too narrow for all, in this order, and their greatest width then;
/// 0 omits the column. The queue, its backlog, its workers and its errors stay.
const NARROWED: [(&str, usize); 10] = [
    ("trend", 0),
    ("errors", 30),
    ("mean run", 0),
    ("created/s", 0),
    ("queue", 30),
    ("oldest", 0),
    ("errors", 16),
    ("finished/s", 0),
    ("queue", 16),
    ("failed/s", 0),
];

impl Board {
    /// Returns the dashboard as text. With a size, at most that many lines and columns.
    pub(crate) fn drawn(&self, size: Option<(usize, usize)>) -> String {
        let width = size.map_or(usize::MAX, |(_, width)| width);
        let mut lines = self.head(width);
        let rows = self.lines();
        let room = size.map_or(usize::MAX, |(height, _)| {
            height.saturating_sub(lines.len() + 2)
        });
        let shown = &rows[..rows.len().min(room)];
        lines.extend(self.table(shown, width));
        let left = rows.len() - shown.len();
        if left > 0 {
            lines.push(format!(
                "… and {left} more; make the terminal higher, or take --json"
            ));
        } else if rows.is_empty() {
            lines.push("no queue has held a job yet, and no worker listens".to_owned());
        }
        let fit = |line: String| match size {
            Some((_, width)) => truncate_str(&line, width, "…").into_owned(),
            None => line,
        };
        let lines: Vec<_> = lines.into_iter().map(fit).collect();
        lines.join("\n") + "\n"
    }

    fn head(&self, width: usize) -> Vec<String> {
        let (stats, crew) = (&self.now, self.crew());
        let bold = Style::new().bold();
        let dead = marked(stats.dead.to_string(), stats.dead > 0, Style::new().red());
        let mut parts = Vec::new();
        if *self.keys.namespace() != Namespace::default() {
            parts.push(bold.apply_to(self.keys.namespace()).to_string());
        }
        parts.extend([
            clock(stats.now_ms),
            format!("running {}", bold.apply_to(stats.running)),
            format!("delayed {}", stats.delayed),
            format!("dead letters {}", dead.1.apply_to(dead.0)),
            format!(
                "workers {} ({}/{} slots)",
                crew.workers, crew.slots_busy, crew.slots
            ),
        ]);
        if let Some(ms) = stats.overdue_ms {
            let overdue = format!("overdue since {}", age(ms as f64 / 1000.0));
            parts.push(Style::new().yellow().apply_to(overdue).to_string());
        }
        let mut lines = packed(&parts, width);
        if stats.partial {
            lines.push(
                "queues may be missing: the search for them is under way, or there are over 10,000"
                    .to_owned(),
            );
        }
        if let Some(why) = &self.missed {
            let red = Style::new().red();
            lines.push(red.apply_to(one_line(why, 200)).to_string());
        }
        lines.push(String::new());
        lines
    }

    fn table(&self, lines: &[Line<'_>], room: usize) -> Vec<String> {
        let names = COLUMNS.map(|(name, _)| Cell(name.to_owned(), Style::new().bold()));
        let rows = lines.iter().map(|line| self.cells(line));
        let rows: Vec<_> = std::iter::once(names).chain(rows).collect();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| measure_text_width(&row[at].0));
            // A column without any value is omitted.
            let empty = rows.iter().skip(1).all(|row| row[at].0.is_empty());
            if empty { 0 } else { cells.max().unwrap_or(0) }
        };
        let mut widths = std::array::from_fn(width);
        narrow(&mut widths, room);
        rows.iter().map(|row| drawn_row(row, &widths)).collect()
    }

    fn cells(&self, line: &Line<'_>) -> [Cell; COLUMNS.len()] {
        let short = self.keys.queue_name(line.queue);
        let rates = [
            line.created_per_second,
            line.finished_per_second,
            line.failed_per_second,
        ];
        let [created, finished, failed] = rates.map(rate);
        let is_failing = line.failed_per_second.is_some_and(|rate| rate > 0.0);
        let is_late = line.oldest_seconds.is_some_and(|seconds| seconds > LATE);
        let alone = line.listeners == 0 && line.waiting > 0;
        let oldest = line.oldest_seconds.map_or_else(none, age);
        let mean = line.mean_run_seconds.map_or_else(none, age);
        let waiting = match line.set_aside {
            0 => line.waiting.to_string(),
            aside => format!("{}+{aside}", line.waiting),
        };
        let (red, yellow) = (Style::new().red(), Style::new().yellow());
        [
            plain(one_line(short, MAX_NAME)),
            marked(waiting, false, Style::new()),
            marked(oldest, is_late, yellow.clone()),
            marked(created, false, Style::new()),
            marked(finished, false, Style::new()),
            marked(failed, is_failing, red),
            marked(mean, false, Style::new()),
            marked(line.listeners.to_string(), alone, yellow),
            Cell(self.trend(line.queue), Style::new().cyan()),
            plain(errors(line)),
        ]
    }

    /// Returns the trend of a queue: jobs that ended per second, relative to the maximum.
    fn trend(&self, queue: &str) -> String {
        let Some(trend) = self.trends.get(queue).filter(|trend| trend.len() > 1) else {
            return String::new();
        };
        let most = trend.iter().copied().fold(0.0, f64::max);
        let bar = |rate: &f64| {
            let part = if most > 0.0 { rate / most } else { 0.0 };
            BARS[((part * BARS.len() as f64).ceil() as usize).clamp(1, BARS.len()) - 1]
        };
        trend.iter().map(bar).collect()
    }
}

/// Omits and cuts columns in the order of [`NARROWED`], until the table fits into this width.
fn narrow(widths: &mut [usize; COLUMNS.len()], room: usize) {
    for (name, most) in NARROWED {
        let shown = widths.iter().filter(|width| **width > 0);
        let total: usize = shown.map(|width| width + GAP.len()).sum();
        if total <= room.saturating_add(GAP.len()) {
            return;
        }
        let column = COLUMNS.iter().position(|(column, _)| *column == name);
        if let Some(width) = column.and_then(|at| widths.get_mut(at)) {
            *width = most.min(*width);
        }
    }
}

fn drawn_row(row: &[Cell; COLUMNS.len()], widths: &[usize; COLUMNS.len()]) -> String {
    let columns = row.iter().zip(widths).zip(COLUMNS);
    let columns = columns.filter(|((_, width), _)| **width > 0);
    let cells = columns.map(|((Cell(text, style), width), (_, right))| {
        let side = if right {
            console::Alignment::Right
        } else {
            console::Alignment::Left
        };
        let padded = pad_str(text, *width, side, Some("…"));
        style.apply_to(padded).to_string()
    });
    let cells: Vec<_> = cells.collect();
    cells.join(GAP).trim_end().to_owned()
}

/// Joins parts into as few lines of at most this width as possible.
fn packed(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let wide = measure_text_width(part) + GAP.len();
        match lines.last_mut() {
            Some(line) if measure_text_width(line).saturating_add(wide) <= width => {
                line.push_str(GAP);
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

/// Returns the time of day, in UTC.
fn clock(ms: u64) -> String {
    let text = time::iso(ms);
    let parts = text
        .split_once('T')
        .and_then(|(_, time)| time.split_once('.'));
    parts.map_or(text.clone(), |(time, _)| format!("{time}Z"))
}

fn none() -> String {
    "-".to_owned()
}

/// Formats a rate per second.
fn rate(rate: Option<f64>) -> String {
    match rate {
        None => none(),
        Some(0.0) => "0".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    }
}

/// Formats a duration in its largest unit.
fn age(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1000.0),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// Formats the errors of a queue, the most frequent first.
fn errors(line: &Line<'_>) -> String {
    let mut kinds: Vec<_> = line
        .errors
        .iter()
        .filter(|(_, count)| **count > 0)
        .collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let kinds: Vec<_> = kinds
        .into_iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    one_line(&kinds.join(", "), MAX_ERRORS)
}

#[cfg(test)]
mod tests {
    use meshwork_broker::{QueueStats, Stats};
    use meshwork_model::keys::hero::JobKeys;

    use super::*;

    fn look(now_ms: u64, change: impl FnOnce(&mut QueueStats)) -> Stats {
        let mut queue = QueueStats::default();
        queue.queue = "hero:q:work:type:osis".to_owned();
        change(&mut queue);
        let mut stats = Stats::default();
        (stats.now_ms, stats.running, stats.queues) = (now_ms, 3, vec![queue]);
        stats
    }

    fn board() -> Board {
        let mut board = Board::new(Default::default());
        board.take(look(1_000, |queue| queue.created = 10));
        board.take(look(3_000, |queue| {
            (queue.created, queue.finished, queue.failed) = (14, 25, 1);
            (queue.waiting, queue.oldest_ms, queue.run_ms) = (7, Some(90_000), 2_600);
            queue.errors = [("timeout".to_owned(), 1), ("script".to_owned(), 20)].into();
        }));
        board
    }

    #[test]
    fn what_changed_is_said_per_second() {
        console::set_colors_enabled(false);
        let drawn = board().drawn(None);
        let row = drawn.lines().last().unwrap();
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "osis", "7", "90", "s", "2.0", "12", "0.5", "100", "ms", "0", "script", "20,",
                "timeout", "1"
            ],
            "{drawn}"
        );
        assert!(drawn.contains("running 3"), "{drawn}");
    }

    #[test]
    fn it_fits_the_terminal() {
        console::set_colors_enabled(false);
        let mut board = board();
        let mut many = look(4_000, |_| {});
        many.queues = (0..50)
            .map(|n| {
                let mut queue = QueueStats::default();
                (queue.queue, queue.waiting) = (format!("hero:q:work:type:{n}"), 1);
                queue
            })
            .collect();
        board.take(many);
        let drawn = board.drawn(Some((10, 40)));
        assert!(drawn.lines().count() <= 10, "{drawn}");
        assert!(
            drawn.lines().all(|line| measure_text_width(line) <= 40),
            "{drawn}"
        );
        assert!(drawn.contains("more"), "{drawn}");
    }

    #[test]
    fn a_terminal_of_80_columns_shows_workers_and_errors() {
        console::set_colors_enabled(false);
        let mut board = Board::new(JobKeys::new("other".parse().unwrap()));
        for second in 1..40 {
            board.take(look(second * 1_000, |queue| {
                queue.queue = format!("other:q:work:type:python:group:{}", "g".repeat(50));
                (queue.created, queue.finished) = (second * 9_999, second * 8_888);
                (queue.waiting, queue.set_aside, queue.oldest_ms) =
                    (123_456, 789, Some(90_000_000));
                queue.listeners = 77;
                queue.errors = [("script".to_owned(), 123), ("permanent".to_owned(), 45)].into();
            }));
        }
        let drawn = board.drawn(Some((24, 80)));
        let lines: Vec<_> = drawn.lines().collect();
        assert!(
            lines.iter().all(|line| measure_text_width(line) <= 80),
            "{drawn}"
        );
        let row = lines.last().unwrap();
        for part in ["123456+789", "  77", "script 123, per"] {
            assert!(row.contains(part), "{part}: {drawn}");
        }
        assert!(
            drawn.contains("workers") && drawn.contains("errors"),
            "{drawn}"
        );
        assert!(
            !lines[0].contains('…') && !drawn.contains("trend"),
            "{drawn}"
        );
    }

    #[test]
    fn a_trend_shows_the_latest_last() {
        let mut board = board();
        for (at, finished) in [(4_000, 26), (5_000, 34)] {
            board.take(look(at, |queue| queue.finished = finished));
        }
        assert_eq!(board.trend("hero:q:work:type:osis"), "█▁▅");
    }

    #[test]
    fn numbers_are_told_in_their_unit() {
        let ages = [0.0, 0.25, 5.0, 119.0, 121.0, 7_300.0, 400_000.0].map(age);
        assert_eq!(
            ages,
            ["0 ms", "250 ms", "5.0 s", "119 s", "2 min", "2 h", "5 d"]
        );
        assert_eq!(
            [None, Some(0.0), Some(0.26), Some(1234.4)].map(rate),
            ["-", "0", "0.3", "1234"]
        );
    }
}
