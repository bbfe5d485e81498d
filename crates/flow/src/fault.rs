//! Faults of a flow: what is wrong, in which file, at which place.

use std::fmt;

use meshwork_model::flow::Position;
use meshwork_model::spread::SpreadName;

/// One fault of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowFault {
    /// The file, as it was named. None: the flow was not read from a file.
    pub file: Option<String>,
    /// The place in the file. None: the fault belongs to the whole file.
    pub at: Option<Position>,
    /// The fault, and what to do.
    pub message: String,
}

impl fmt::Display for FlowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.at) {
            (Some(file), Some(at)) => write!(f, "{file}:{at}: {}", self.message),
            (Some(file), None) => write!(f, "{file}: {}", self.message),
            (None, _) => f.write_str(&self.message),
        }
    }
}

/// All faults that were found in a flow: at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct FlowFaults(pub Vec<FlowFault>);

/// The most faults that are printed.
const SHOWN: usize = 20;

fn lines(faults: &[FlowFault]) -> String {
    let mut lines: Vec<String> = faults.iter().take(SHOWN).map(ToString::to_string).collect();
    if faults.len() > SHOWN {
        lines.push(format!("and {} more", faults.len() - SHOWN));
    }
    lines.join("\n")
}

/// Returns the fault of a deployed or scheduled flow that names a spread queue.
#[must_use]
pub fn spread_and_schedule(name: &SpreadName) -> String {
    format!(
        "`spread: {name}` chooses a part when a file is submitted, but a deployed flow and a schedule are in one context: \
         remove `spread`"
    )
}
