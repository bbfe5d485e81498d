//! Counts the results that the last `run` printed, and the runs that the scripts recorded.

use std::collections::HashMap;

use serde_json::Value;

use super::{ChaosError, inputs};

/// Result of one or several batches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Inputs without exactly one correct result, with the reason.
    pub(super) lost: Vec<String>,
    pub(super) extra_runs: u64,
    pub(super) most_runs: u64,
}

impl Count {
    /// Counts the lines that `run --each --json` printed, and those of the tally.
    pub(super) fn of(output: &str, tally: &str) -> Result<Self, ChaosError> {
        let mut results: HashMap<String, Vec<Value>> = HashMap::new();
        for line in output.lines() {
            let not_a_line = || ChaosError::Line(line.to_owned());
            let value: Value = serde_json::from_str(line).map_err(|_| not_a_line())?;
            let file = value["file"].as_str().ok_or_else(not_a_line)?.to_owned();
            results.entry(file).or_default().push(value);
        }
        let mut runs: HashMap<&str, u64> = HashMap::new();
        for name in tally.lines() {
            *runs.entry(name).or_default() += 1;
        }
        let mut count = Self::default();
        for input in inputs() {
            let runs = runs.remove(&*input).unwrap_or(0);
            let results = results.remove(&input).unwrap_or_default();
            count.lost.extend(fault(&input, &results, runs));
            count.extra_runs += runs.saturating_sub(1);
            count.most_runs = count.most_runs.max(runs);
        }
        count.lost.extend(
            runs.keys()
                .map(|name| format!("{name}: ran, and is no input")),
        );
        count.lost.extend(
            results
                .keys()
                .map(|name| format!("{name}: a result, and no input")),
        );
        Ok(count)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.extra_runs += other.extra_runs;
        self.most_runs = self.most_runs.max(other.most_runs);
    }
}

fn fault(input: &str, results: &[Value], runs: u64) -> Option<String> {
    let expected: String = input.chars().rev().collect();
    let why = match results {
        [result] if result["status"] != "finished" => format!("{}", result["error"]),
        [result] if result["output"] != expected => format!("result {}", result["output"]),
        [_] if runs == 0 => "a result, and never ran".to_owned(),
        [_] => return None,
        _ => format!("{} results", results.len()),
    };
    Some(format!("{input}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(input: &str, output: &str) -> String {
        format!("{{\"file\":\"{input}\",\"status\":\"finished\",\"output\":\"{output}\"}}\n")
    }

    /// Returns a correct output and a correct tally.
    fn whole() -> (String, String) {
        let turned = |name: &String| line(name, &name.chars().rev().collect::<String>());
        let output = inputs().map(|name| turned(&name)).collect();
        (output, inputs().map(|name| name + "\n").collect())
    }

    #[test]
    fn a_whole_batch_has_nothing_lost() {
        let (output, tally) = whole();
        let expected = Count {
            most_runs: 1,
            ..Count::default()
        };
        assert_eq!(Count::of(&output, &tally).unwrap(), expected);
    }

    #[test]
    fn every_fault_is_seen() {
        let (output, tally) = whole();
        let without_first = output.split_once('\n').unwrap().1.to_owned();
        let failed = line("input-0000", "").replace("finished", "error") + without_first.as_str();
        let wrong = line("input-0000", "x") + without_first.as_str();
        let twice = output.clone() + line("input-0003", "3000-tupni").as_str();
        let foreign = output.clone() + line("other", "rehto").as_str();
        for faulty in [&without_first, &failed, &wrong, &twice, &foreign] {
            assert_eq!(Count::of(faulty, &tally).unwrap().lost.len(), 1);
        }
        let never_ran = tally.split_once('\n').unwrap().1;
        assert_eq!(Count::of(&output, never_ran).unwrap().lost.len(), 1);
        assert!(Count::of("no json", &tally).is_err());
    }

    #[test]
    fn extra_runs_are_counted() {
        let (output, tally) = whole();
        let count = Count::of(&output, &(tally + "input-0001\ninput-0001\ninput-0002\n")).unwrap();
        assert_eq!((count.extra_runs, count.most_runs), (3, 3));
    }
}
