//! The figures as an SVG: bars in groups, one group for each figure, as speeds relative to the floor. A latency or a size
//! is drawn as the inverse of its ratio, so that a longer bar is better in every group.

use std::fmt::Write as _;

use super::report::Line;

const WIDTH: f64 = 860.0;
/// Right end of the names of bars.
const NAMES: f64 = 200.0;
/// Space for the values at the right.
const VALUES: f64 = 190.0;
const MARGIN: f64 = 20.0;
/// Height of the title and the axis.
const TOP: f64 = 74.0;
const BAR: f64 = 18.0;
/// Height of the name of a group, and the space above it.
const HEAD: f64 = 36.0;
/// Most lines of the axis.
const TICKS: usize = 10;

const FLOOR: &str = "#9aa0a6";
const MESHWORK: &str = "#1a73e8";
/// Colours of other job queues, in their order; used again if there are more.
const PEERS: [&str; 5] = ["#e37400", "#188038", "#a142f4", "#d93025", "#12807a"];

/// A bar of a group.
struct Bar {
    name: String,
    colour: &'static str,
    /// Value with its unit, or the reason why there is none.
    value: String,
    /// Speed relative to the floor.
    speed: Option<f64>,
}

/// A group of bars.
struct Group {
    name: String,
    bars: Vec<Bar>,
}

/// Returns the drawing of all figures with a floor beside them. High percentiles of single runs vary most, and would
/// stretch the axis, so they are left out.
#[must_use]
pub fn chart(lines: &[Line]) -> String {
    let groups: Vec<_> = lines.iter().filter_map(group).collect();
    let bars = groups.iter().flat_map(|group| &group.bars);
    let most = bars.filter_map(|bar| bar.speed).fold(1.0, f64::max);
    let step = step(most);
    let end = (most / step).ceil() * step;
    let place = |speed: f64| NAMES + speed / end * (WIDTH - NAMES - VALUES);
    let rows: f64 = groups
        .iter()
        .map(|group| HEAD + group.bars.len() as f64 * BAR)
        .sum();
    let height = TOP + rows + MARGIN;
    let mut out = header(height);
    axis(&mut out, step, end, height, place);
    let mut y = TOP;
    for group in &groups {
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{}\" font-weight=\"bold\">{}</text>",
            y + HEAD - 10.0,
            escape(&group.name)
        );
        y += HEAD;
        for bar in &group.bars {
            bar.draw(&mut out, &group.name, y, place);
            y += BAR;
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Returns the bars of a figure; `None` without a floor, and for a high percentile.
fn group(line: &Line) -> Option<Group> {
    let floor = line.floors.first()?;
    if line.name.ends_with("-p99") {
        return None;
    }
    let is_rate = line.unit.ends_with("/s");
    let speed = |ratio: f64| if is_rate { ratio } else { 1.0 / ratio };
    let value = |value: f64| format!("{} {}", grouped(value), line.unit);
    let bar = |name: &str, colour, of: f64, ratio| Bar {
        name: name.to_owned(),
        colour,
        value: value(of),
        speed: Some(speed(ratio)),
    };
    let mut bars = vec![
        bar("floor", FLOOR, floor.value, 1.0),
        bar("Meshwork", MESHWORK, line.value, floor.ratio),
    ];
    for (peer, colour) in line.peers.iter().zip(PEERS.into_iter().cycle()) {
        let text = peer.value.map(value);
        let missing = if peer.failures.is_empty() {
            "-"
        } else {
            "failed"
        };
        bars.push(Bar {
            name: peer.title(),
            colour,
            value: text.unwrap_or_else(|| missing.to_owned()),
            speed: peer.to_floor.map(speed),
        });
    }
    let name = format!("{} on {}", line.name, line.engine.name());
    Some(Group { name, bars })
}

/// Returns the distance of the axis' lines: 1, 2 or 5 times a power of ten, at least 0.1.
fn step(most: f64) -> f64 {
    let mut step = 0.1;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if most / step <= TICKS as f64 {
            break;
        }
        step *= factor;
    }
    step
}

fn header(height: f64) -> String {
    let title = "Speed relative to the floor: longer is better";
    // The background is drawn, so that the colours fit on light and on dark pages.
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" \
         fill=\"#202124\">\n<title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"46\" fill=\"#5f6368\">rate divided by the floor's rate; \
         the floor's time or size divided by the time or size</text>\n"
    )
}

fn axis(out: &mut String, step: f64, end: f64, height: f64, place: impl Fn(f64) -> f64) {
    let lines = (end / step).round() as usize;
    for line in 0..=lines {
        let at = line as f64 * step;
        let (x, label) = (place(at), (at * 10.0).round() / 10.0);
        // The floor itself is at 1.
        let colour = if label == 1.0 { "#80868b" } else { "#e8eaed" };
        let bottom = height - MARGIN;
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {TOP} V{bottom}\" stroke=\"{colour}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#5f6368\">{label}</text>",
            TOP - 6.0
        );
    }
}

impl Bar {
    fn draw(&self, out: &mut String, group: &str, y: f64, place: impl Fn(f64) -> f64) {
        let (name, value) = (escape(&self.name), escape(&self.value));
        let (start, colour) = (place(0.0), self.colour);
        let (end, ratio) = match self.speed {
            Some(speed) => (place(speed), format!(" ({})", short(speed))),
            None => (start, String::new()),
        };
        let base = y + BAR - 5.0;
        let _ = writeln!(
            out,
            "<g><title>{}: {name}: {value}{ratio}</title>\
             <text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{start:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{base}\">{value}{ratio}</text></g>",
            escape(group),
            NAMES - 8.0,
            y + 1.0,
            (end - start).max(0.0),
            BAR - 3.0,
            end + 6.0,
        );
    }
}

/// Returns a ratio with two digits that say something.
fn short(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.1 => format!("{ratio:.3}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// Returns a number without a fraction, with commas.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::figure::Shape;
    use super::super::ground::Engine;
    use super::super::meter::Cost;
    use super::super::report::{Against, Beside};
    use super::*;

    fn line(name: &str, unit: &'static str, value: f64, floor: Option<(f64, f64)>) -> Line {
        let shape = Shape {
            callers: 1,
            batch: 1,
        };
        let floors = floor.map(|(value, ratio)| Beside {
            shape,
            value,
            ratio,
            cost: Cost::default(),
        });
        Line {
            name: name.to_owned(),
            engine: Engine::Redis,
            value,
            unit,
            jobs: 10,
            runs: vec![value],
            floors: floors.into_iter().collect(),
            peers: Vec::new(),
            to_plain: None,
            to_redis: None,
            cost: Cost::default(),
            load: 0.0,
        }
    }

    fn peer(name: &'static str, value: Option<f64>, to_floor: Option<f64>) -> Against {
        Against {
            name,
            on_redis: true,
            version: value.map(|_| "1.2<3".to_owned()),
            value,
            ratio: None,
            to_floor,
            jobs: 10,
            runs: Vec::new(),
            cost: Cost::default(),
            failures: if value.is_some() {
                Vec::new()
            } else {
                vec!["no luck".to_owned()]
            },
        }
    }

    /// Returns the widths of the bars, without the background.
    fn widths(svg: &str) -> Vec<f64> {
        let rects = svg.split("<rect x=").skip(1);
        let width = |rect: &str| {
            rect.split("width=\"")
                .nth(1)?
                .split('"')
                .next()?
                .parse()
                .ok()
        };
        rects.map(|rect| width(rect).expect("a width")).collect()
    }

    #[test]
    fn longer_bars_are_better_in_every_group() {
        let mut rate = line("work-10", "jobs/s", 5_000.0, Some((10_000.0, 0.5)));
        rate.peers = vec![
            peer("fast", Some(15_000.0), Some(1.5)),
            peer("broken", None, None),
        ];
        let cost = line("latency-start-p50", "us", 2_000.0, Some((500.0, 4.0)));
        let high = line("latency-start-p99", "us", 9_000.0, Some((1_000.0, 9.0)));
        let svg = chart(&[rate, cost, high, line("memory", "bytes/job", 700.0, None)]);
        // Of 470 units of width for 1.6: the floor, Meshwork, the others; then the latency.
        let expected = [293.8, 146.9, 440.6, 0.0, 293.8, 73.4];
        let drawn = widths(&svg);
        assert_eq!(drawn.len(), expected.len());
        for (drawn, expected) in drawn.iter().zip(expected) {
            assert!((drawn - expected).abs() < 0.11, "{drawn} {expected}");
        }
        assert!(!svg.contains("memory"), "a figure without a floor");
        let title = "<title>work-10 on redis: fast 1.2&lt;3: 15,000 jobs/s (1.50)</title>";
        assert!(svg.contains(title), "{svg}");
        assert!(svg.contains("<title>work-10 on redis: broken: failed</title>"));
        assert!(svg.contains("Meshwork: 2,000 us (0.25)</title>"));
    }

    #[test]
    fn the_drawing_is_well_formed() {
        let svg = chart(&[line("work-1", "jobs/s", 1.0, Some((3_000.0, 0.001)))]);
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        for name in ["svg", "g", "text", "title"] {
            let opened = svg.matches(&format!("<{name}>")).count()
                + svg.matches(&format!("<{name} ")).count();
            assert_eq!(opened, svg.matches(&format!("</{name}>")).count(), "{name}");
        }
        // An empty chart is one, too.
        assert!(chart(&[]).contains("<title>"));
    }

    #[test]
    fn the_axis_has_few_lines() {
        assert_eq!(
            [0.4, 1.0, 1.9, 4.1, 33.0].map(step),
            [0.1, 0.1, 0.2, 0.5, 5.0]
        );
        assert_eq!(
            [0.0, 999.0, 1_000.0, 1_234_567.0].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
