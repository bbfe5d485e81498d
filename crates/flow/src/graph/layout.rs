//! The places of jobs in a drawing: a column for each level, rows ordered by the needs.

use meshwork_model::flow::Dag;

use super::numbers;

/// The most rows of a column; the last one stands for all further jobs.
pub(super) const MAX_ROWS: usize = 100;

/// The place of a job: column and row, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodePosition {
    pub(super) column: usize,
    pub(super) row: usize,
}

/// The places of all jobs, and the jobs of each column that share the last row.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) places: Vec<NodePosition>,
    pub(super) folded: Vec<usize>,
    pub(super) rows: usize,
}

/// Puts each job into the column of its level, and compensations into the column after that of the job they undo.
pub(super) fn layout(dag: &Dag<String>) -> Layout {
    let numbers = numbers(dag);
    let mut columns: Vec<Vec<usize>> = vec![Vec::new(); dag.levels.len() + 1];
    for (number, node) in dag.nodes.iter().enumerate() {
        let undone = node
            .compensates
            .as_ref()
            .and_then(|id| numbers.get(id.as_str()));
        let column = match undone {
            Some(undone) => dag.nodes[*undone].level,
            None => node.level.saturating_sub(1),
        };
        columns[column].push(number);
    }
    if columns.last().is_some_and(Vec::is_empty) {
        columns.pop();
    }
    let mut places = vec![NodePosition { column: 0, row: 0 }; dag.nodes.len()];
    let mut folded = Vec::with_capacity(columns.len());
    for (column, jobs) in columns.iter_mut().enumerate() {
        let centre = |number: &usize| {
            let node = &dag.nodes[*number];
            let above = node.depends.iter().chain(&node.compensates);
            let rows: Vec<usize> = above
                .filter_map(|id| numbers.get(id.as_str()))
                .map(|number| places[*number].row)
                .collect();
            // In thousandths, as a whole number: the order is the same everywhere.
            1000 * rows.iter().sum::<usize>() / rows.len().max(1)
        };
        jobs.sort_by_cached_key(|number| (centre(number), *number));
        let fold = jobs.len() > MAX_ROWS;
        for (row, number) in jobs.iter().enumerate() {
            let row = row.min(MAX_ROWS - 1);
            places[*number] = NodePosition { column, row };
        }
        folded.push(if fold { jobs.len() + 1 - MAX_ROWS } else { 0 });
    }
    let rows = places.iter().map(|place| place.row + 1).max().unwrap_or(0);
    Layout {
        places,
        folded,
        rows,
    }
}
