//! `cargo xtask tidy`: the structure of this repository as rules that a machine checks.
//!
//! Rules of the compiler, clippy, rustfmt or cargo-deny are not repeated here.

mod rules;
mod rust_text;
mod tree;

use std::fmt;

pub(crate) use tree::Tree;

use crate::process::Failure;
use crate::workspace::Workspace;

/// A line that breaks a rule.
#[derive(Clone, Debug)]
struct Finding {
    path: String,
    /// From 1.
    line: usize,
    what: String,
    /// Advice for the author.
    remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}; {}",
            self.path, self.line, self.what, self.remedy
        )
    }
}

pub(crate) fn tidy(workspace: &Workspace) -> Result<(), Failure> {
    let tree = Tree::read(workspace)?;
    let mut findings = rules::check(&tree);
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    if findings.is_empty() {
        eprintln!("tidy: {} files, all in order", tree.files().count());
        eprintln!("tidy: {}", rules::summary(&tree));
        return Ok(());
    }
    let mut said = format!("{} places break a rule", findings.len());
    for finding in findings {
        said.push_str(&format!("\n{finding}"));
    }
    Err(Failure::new(said))
}
