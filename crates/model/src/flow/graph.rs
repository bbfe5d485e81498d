//! The graph of a plan's jobs: needs by number, levels by Kahn's algorithm, ancestors, and the first cycle.

use std::collections::HashMap;

use super::name::NodeName;
use super::plan::Plan;

/// The jobs of a plan by their numbers, and the edges between them. Compensations have no edges and no level.
#[derive(Debug, Clone)]
pub struct Graph {
    numbers: HashMap<NodeName, usize>,
    needs: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
    levels: Vec<Option<usize>>,
    order: Vec<usize>,
}

/// Jobs that wait for each other: each needs the next one, the last one needs the first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("these jobs wait for each other: {}", shown(.0))]
pub struct Cycle(pub Vec<NodeName>);

/// The longest part of a cycle that is printed, in jobs.
const SHOWN: usize = 20;

fn shown(names: &[NodeName]) -> String {
    let mut text: Vec<&str> = names.iter().take(SHOWN).map(NodeName::as_str).collect();
    if names.len() > SHOWN {
        text.push("…");
    }
    text.extend(names.first().map(NodeName::as_str));
    text.join(" → ")
}

impl Graph {
    /// The graph of a plan. Names that the plan does not have are left out.
    ///
    /// # Errors
    ///
    /// A cycle, if there is one.
    pub fn new(plan: &Plan) -> Result<Self, Cycle> {
        let mut numbers = HashMap::with_capacity(plan.jobs.len());
        for (number, job) in plan.jobs.iter().enumerate() {
            numbers.entry(job.name.clone()).or_insert(number);
        }
        let needs: Vec<Vec<usize>> = plan
            .jobs
            .iter()
            .map(|job| {
                job.needs
                    .iter()
                    .filter_map(|need| numbers.get(need).copied())
            })
            .map(|needs| {
                let mut needs: Vec<usize> = needs.collect();
                needs.sort_unstable();
                needs.dedup();
                needs
            })
            .collect();
        let mut dependents = vec![Vec::new(); needs.len()];
        for (number, needs) in needs.iter().enumerate() {
            for need in needs {
                dependents[*need].push(number);
            }
        }
        let mut graph = Self {
            numbers,
            levels: vec![None; needs.len()],
            order: Vec::with_capacity(needs.len()),
            needs,
            dependents,
        };
        graph.level();
        if let Some(stuck) = graph.levels.iter().position(Option::is_none) {
            return Err(Cycle(graph.cycle(stuck, plan)));
        }
        for (number, job) in plan.jobs.iter().enumerate() {
            if job.compensates.is_some() {
                graph.levels[number] = None;
            }
        }
        Ok(graph)
    }

    /// Gives each job its level, in the order in which they could start. Jobs of a cycle get none.
    fn level(&mut self) {
        let mut open: Vec<usize> = self.needs.iter().map(Vec::len).collect();
        let mut queue: Vec<usize> = (0..open.len()).filter(|n| open[*n] == 0).collect();
        let mut next = 0;
        while let Some(number) = queue.get(next).copied() {
            next += 1;
            let above = self.needs[number].iter().filter_map(|n| self.levels[*n]);
            self.levels[number] = Some(1 + above.max().unwrap_or(0));
            for dependent in &self.dependents[number] {
                open[*dependent] -= 1;
                if open[*dependent] == 0 {
                    queue.push(*dependent);
                }
            }
        }
        self.order = queue;
    }

    /// The cycle that is reached from a job without a level: it needs another one, and so on, until one comes back.
    fn cycle(&self, from: usize, plan: &Plan) -> Vec<NodeName> {
        let mut seen = HashMap::new();
        let mut path = Vec::new();
        let mut at = from;
        while !seen.contains_key(&at) {
            seen.insert(at, path.len());
            path.push(at);
            let stuck = |n: &&usize| self.levels[**n].is_none();
            let next = self.needs[at].iter().find(stuck);
            at = *next.expect("a job without a level needs another one without");
        }
        let cycle = &path[seen[&at]..];
        cycle.iter().map(|n| plan.jobs[*n].name.clone()).collect()
    }

    /// The number of the job of this name: its place in the plan, from 0.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<usize> {
        let name: NodeName = name.parse().ok()?;
        self.numbers.get(&name).copied()
    }

    /// The jobs that a job needs, in rising order.
    #[must_use]
    pub fn needs(&self, number: usize) -> &[usize] {
        &self.needs[number]
    }

    /// True for a job whose result is that of the flow by default: no other job needs it but those of `on_failure` and
    /// `finally`.
    #[must_use]
    pub fn is_last(&self, plan: &Plan, number: usize) -> bool {
        let closes = |job: &usize| plan.jobs[*job].closes;
        !closes(&number) && self.dependents(number).iter().all(closes)
    }

    /// The jobs that need a job, in rising order.
    #[must_use]
    pub fn dependents(&self, number: usize) -> &[usize] {
        &self.dependents[number]
    }

    /// The level of a job: one more than the highest level of its needs, 1 without needs, none for compensations.
    #[must_use]
    pub fn level_of(&self, number: usize) -> Option<usize> {
        self.levels[number]
    }

    /// All jobs, each after all that it needs. Compensations are left out.
    pub fn order(&self) -> impl Iterator<Item = usize> {
        let jobs = self.order.iter().copied();
        jobs.filter(|number| self.levels[*number].is_some())
    }

    /// The jobs of each level, from level 1, in the order of the plan.
    #[must_use]
    pub fn levels(&self) -> Vec<Vec<usize>> {
        let mut levels = Vec::new();
        for (number, level) in self.levels.iter().enumerate() {
            let Some(level) = level else { continue };
            if levels.len() < *level {
                levels.resize(*level, Vec::new());
            }
            levels[*level - 1].push(number);
        }
        levels
    }

    /// A job and all jobs that depend on it, directly or not, in the order of the plan.
    #[must_use]
    pub fn with_descendants(&self, number: usize) -> Vec<usize> {
        let mut found = vec![false; self.needs.len()];
        let mut open = vec![number];
        while let Some(number) = open.pop() {
            if !std::mem::replace(&mut found[number], true) {
                open.extend(&self.dependents[number]);
            }
        }
        (0..found.len()).filter(|n| found[*n]).collect()
    }

    /// All jobs before each job.
    #[must_use]
    pub fn ancestors(&self) -> Ancestors {
        let words = self.needs.len().div_ceil(64);
        let mut rows = vec![Vec::new(); self.needs.len()];
        for number in &self.order {
            let mut row = vec![0u64; words];
            for need in &self.needs[*number] {
                row[need / 64] |= 1 << (need % 64);
                for (word, above) in row.iter_mut().zip(&rows[*need]) {
                    *word |= above;
                }
            }
            rows[*number] = row;
        }
        Ancestors { rows }
    }
}

/// The jobs that come before each job, as sets of bits: at most 12.5 MB for 10,000 jobs.
#[derive(Debug, Clone)]
pub struct Ancestors {
    rows: Vec<Vec<u64>>,
}

impl Ancestors {
    /// True if `ancestor` ends before `job` can start.
    #[must_use]
    pub fn contains(&self, job: usize, ancestor: usize) -> bool {
        let word = self.rows[job].get(ancestor / 64);
        word.is_some_and(|word| word & (1 << (ancestor % 64)) != 0)
    }
}
