//! Fewer steps for a large `foreach`. Once all its items are released, only a failure or the end of the last item wakes
//! a stepper, so the number of steps does not grow with the number of items.

use super::node::place;
use super::step::Step;
use super::view::View;
use meshwork_flow::run::Phase;

impl Step<'_> {
    /// Marks each `foreach` whose items have all been released.
    pub(super) fn calm(&mut self, view: &View) {
        for (job, run) in view.state.jobs.iter().enumerate() {
            let Some(items) = &run.items else { continue };
            let node = place(job, None);
            let seen = view.nodes.get(&node).map_or("", String::as_str);
            // The state is `g 0 3` without the mark, and `g 0 3 f` with it.
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
