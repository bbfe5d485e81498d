//! Measured points of one figure, and how it grows.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::super::report::{median, rounded};
use super::Series;

/// A figure over a quantity that grows.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The quantity.
    pub series: Series,
    /// Name of the figure.
    pub figure: &'static str,
    /// Unit of the figure.
    pub unit: &'static str,
    /// Quantity, and median of the figure over all runs.
    pub points: Vec<(usize, f64)>,
}

/// All runs of one series.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Values of all runs by the place of the figure, its name and unit, and by quantity.
    figures: BTreeMap<(usize, &'static str, &'static str), BTreeMap<usize, Vec<f64>>>,
}

impl Measured {
    pub(super) fn add(&mut self, at: usize, values: Vec<super::Value>) {
        for (place, (figure, unit, value)) in values.into_iter().enumerate() {
            let points = self.figures.entry((place, figure, unit)).or_default();
            points.entry(at).or_default().push(value);
        }
    }

    /// Adds a figure: the ratio of another one to its value at the first point of the same run.
    pub(super) fn add_ratio(&mut self, of: &str, figure: &'static str) {
        let mut known = self.figures.iter();
        let Some((_, points)) = known.find(|((_, name, _), _)| *name == of) else {
            return;
        };
        let Some(first) = points.values().next() else {
            return;
        };
        let ratios = points.iter().map(|(at, runs)| {
            let runs = runs.iter().zip(first).map(|(value, first)| value / first);
            (*at, runs.collect())
        });
        let ratios = ratios.collect();
        self.figures.insert((usize::MAX, figure, "x"), ratios);
    }

    pub(super) fn curves(self, series: Series) -> impl Iterator<Item = Curve> {
        let figures = self.figures.into_iter();
        figures.map(move |((_, figure, unit), points)| Curve {
            series,
            figure,
            unit,
            points: points
                .into_iter()
                .map(|(at, runs)| (at, median(&runs)))
                .collect(),
        })
    }
}

impl Curve {
    /// Returns the exponent `e` with which the figure grows, as `quantity^e`: the slope of the line of least squares
    /// through the logarithms. A rate that does not depend on the quantity has 0. Points at 0 do not count; `None`
    /// with fewer than two others.
    #[must_use]
    pub fn exponent(&self) -> Option<f64> {
        let logs = self
            .points
            .iter()
            .filter(|(at, value)| *at > 0 && *value > 0.0);
        let logs: Vec<_> = logs
            .map(|(at, value)| ((*at as f64).ln(), value.ln()))
            .collect();
        if logs.len() < 2 {
            return None;
        }
        let count = logs.len() as f64;
        let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
        let both: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let own: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        Some(both / own)
    }

    /// Returns the curve as a JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let point = |(at, value): &(usize, f64)| json!({"at": at, "value": rounded(*value)});
        json!({
            "series": self.series.name(),
            "figure": self.figure,
            "unit": self.unit,
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
            "exponent": self.exponent().map(rounded),
        })
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (series, figure) = (self.series.name(), self.figure);
        write!(f, "{series:<8} {figure:<18} {:<7}", self.unit)?;
        for (at, value) in &self.points {
            // Small values are ratios, or costs of a job.
            match value.abs() < 100.0 && value.fract() != 0.0 {
                true => write!(f, " {at}: {value:.2} ")?,
                false => write!(f, " {at}: {value:.0} ")?,
            }
        }
        match self.exponent() {
            Some(exponent) => write!(f, " exponent {exponent:.2}"),
            None => write!(f, " exponent -"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(usize, f64)]) -> Curve {
        Curve {
            series: Series::Waiting,
            figure: "work-10",
            unit: "jobs/s",
            points: points.to_vec(),
        }
    }

    #[test]
    fn the_exponent_is_that_of_a_power() {
        let square = curve(&[(1, 3.0), (2, 12.0), (4, 48.0)]);
        assert!((square.exponent().unwrap() - 2.0).abs() < 1e-9);
        let halves = curve(&[(10, 8.0), (1_000, 0.8)]);
        assert!((halves.exponent().unwrap() + 0.5).abs() < 1e-9);
        let same = curve(&[(0, 9.0), (1, 5.0), (9, 5.0)]);
        assert!(same.exponent().unwrap().abs() < 1e-9, "0 does not count");
        assert_eq!(curve(&[(0, 9.0), (1, 5.0)]).exponent(), None);
    }

    #[test]
    fn a_point_is_the_median_of_its_runs_and_figures_keep_their_order() {
        let mut measured = Measured::default();
        for value in [5.0, 1.0, 3.0] {
            measured.add(
                10,
                vec![("work", "jobs/s", value), ("enqueue", "jobs/s", 1.0)],
            );
        }
        let curves: Vec<_> = measured.curves(Series::Workers).collect();
        assert_eq!(curves[0].figure, "work");
        assert_eq!(curves[0].points, [(10, 3.0)]);
        assert_eq!(curves[1].figure, "enqueue");
        assert_eq!(
            curves[0].to_string(),
            "workers  work               jobs/s  10: 3  exponent -"
        );
    }

    #[test]
    fn a_ratio_compares_points_of_the_same_run() {
        let mut measured = Measured::default();
        // The second run is on a machine of half the speed.
        for (at, value) in [(1, 10.0), (2, 19.0), (1, 5.0), (2, 9.5)] {
            measured.add(at, vec![("work", "jobs/s", value)]);
        }
        measured.add_ratio("work", "growth");
        let curves: Vec<_> = measured.curves(Series::Nodes).collect();
        assert_eq!(curves[1].points, [(1, 1.0), (2, 1.9)]);
        assert!(curves[1].to_string().contains(" 1: 1  2: 1.90 "));
    }
}
