//! Ends from which nothing follows: while items of a `foreach` run that have all been released, only the last end, or a
//! failure, asks for a step. So the number of steps does not grow with the number of items.

use super::node::place;
use super::step::Step;
use super::view::View;
use crate::flow::run::Phase;

impl Step<'_> {
    /// Notes each `foreach` whose items have all been released.
    pub(super) fn calm(&mut self, view: &View) {
        for (job, run) in view.state.jobs.iter().enumerate() {
            let Some(items) = &run.items else { continue };
            let node = place(job, None);
            let seen = view.nodes.get(&node).map_or("", String::as_str);
            // `g 0 3`, and `g 0 3 f` if it is noted.
            let noted = seen.split(' ').nth(3).is_some();
            let released = items.iter().all(|item| item.phase != Phase::Waiting);
            if run.phase == Phase::Waiting && released && !noted {
                let ends = match self.plan.jobs[job].continue_on_failure {
                    true => "fe",
                    false => "f",
                };
                self.moves.calm(&node, seen, ends);
            }
        }
    }
}
