//! The files that a flow names, as its reader asks for them.

use meshwork_model::flow::Plan;

/// Gives scripts and nested flows by the paths that a flow's file has. An error is a sentence without the place.
pub(super) trait Sources {
    /// The text of a script.
    fn script(&self, path: &str) -> Result<String, String>;

    /// A nested flow, checked, and the key under which the plan keeps it.
    fn flow(&mut self, path: &str) -> Result<(String, Plan), String>;
}
