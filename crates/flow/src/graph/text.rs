//! The graph as a tree: each job stands below the last of its needs, and names the others.

use meshwork_model::flow::Dag;

use super::{counted, cut, numbers, sign};

/// The most lines of a tree.
const MAX_LINES: usize = 60;
/// The most jobs that are shown below one job.
const MAX_CHILDREN: usize = 10;
/// The most levels that are shown below each other.
const MAX_LEVELS: usize = 16;

/// The tree of a flow with this name, in lines of at most `width` characters. Large flows are folded: the number of jobs
/// that are not shown stands in their place.
#[must_use]
pub fn text(dag: &Dag<String>, name: &str, width: usize) -> String {
    let mut tree = Tree::new(dag, width);
    let (jobs, levels) = (
        counted(dag.nodes.len(), "job"),
        counted(dag.levels.len(), "level"),
    );
    tree.line(&format!("{name}: {jobs} in {levels}"));
    let roots = std::mem::take(&mut tree.roots);
    tree.children(&roots, "", 1);
    tree.out
}

struct Tree<'a> {
    dag: &'a Dag<String>,
    width: usize,
    roots: Vec<usize>,
    /// The jobs that stand below each job.
    below: Vec<Vec<usize>>,
    /// The number of all jobs below each job.
    count: Vec<usize>,
    /// The need below which each job stands.
    parent: Vec<Option<usize>>,
    lines: usize,
    out: String,
}

impl<'a> Tree<'a> {
    fn new(dag: &'a Dag<String>, width: usize) -> Self {
        let numbers = numbers(dag);
        let place = |id: &String| numbers.get(id.as_str()).copied();
        let mut below = vec![Vec::new(); dag.nodes.len()];
        let mut roots = Vec::new();
        let mut parent = vec![None; dag.nodes.len()];
        for (number, node) in dag.nodes.iter().enumerate() {
            let last = |needs: &usize| (dag.nodes[*needs].level, std::cmp::Reverse(*needs));
            let needs = node.depends.iter().filter_map(place).max_by_key(last);
            parent[number] = needs.or_else(|| node.compensates.as_ref().and_then(place));
            match parent[number] {
                Some(parent) => below[parent].push(number),
                None => roots.push(number),
            }
        }
        let mut order: Vec<usize> = (0..dag.nodes.len()).collect();
        // Compensations have level 0 and nothing below them.
        order.sort_by_key(|number| std::cmp::Reverse(dag.nodes[*number].level));
        let mut count = vec![0; dag.nodes.len()];
        for number in order {
            count[number] = below[number].iter().map(|n: &usize| 1 + count[*n]).sum();
        }
        let (lines, out) = (0, String::new());
        Self {
            dag,
            width,
            roots,
            below,
            count,
            parent,
            lines,
            out,
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(cut(text, self.width).trim_end());
        self.out.push('\n');
        self.lines += 1;
    }

    fn children(&mut self, jobs: &[usize], indent: &str, level: usize) {
        let all: usize = jobs.iter().map(|job| 1 + self.count[*job]).sum();
        if level > MAX_LEVELS || (self.lines >= MAX_LINES && all > 1) {
            self.line(&format!("{indent}└─ … {}", counted(all, "more job")));
            return;
        }
        let shown = if jobs.len() > MAX_CHILDREN {
            MAX_CHILDREN - 1
        } else {
            jobs.len()
        };
        let rest: usize = jobs[shown..].iter().map(|job| 1 + self.count[*job]).sum();
        for (nth, job) in jobs[..shown].iter().enumerate() {
            let last = nth + 1 == jobs.len();
            let (branch, below) = if last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let text = self.job(*job);
            self.line(&format!("{indent}{branch}{text}"));
            let children = std::mem::take(&mut self.below[*job]);
            if !children.is_empty() {
                self.children(&children, &format!("{indent}{below}"), level + 1);
            }
        }
        if rest > 0 {
            self.line(&format!("{indent}└─ … {}", counted(rest, "more job")));
        }
    }

    fn job(&self, number: usize) -> String {
        let node = &self.dag.nodes[number];
        let above = self.parent[number].map(|parent| self.dag.nodes[parent].id.as_str());
        let others: Vec<&str> = node
            .depends
            .iter()
            .map(String::as_str)
            .filter(|need| Some(*need) != above)
            .collect();
        let mut text = match node.status.as_deref() {
            None => String::new(),
            status => format!("{} ", sign(status)),
        };
        if node.compensates.is_some() {
            text.push_str("undo: ");
        }
        text.push_str(&format!("{} ({})", node.id, node.script_type));
        if !others.is_empty() {
            text.push_str(&format!(" ← {}", others.join(", ")));
        }
        if let Some(error) = &node.error {
            text.push_str(&format!(": {}", error.lines().next().unwrap_or_default()));
        }
        text
    }
}
