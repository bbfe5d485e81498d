//! Table of all names: those that work, and those that are refused.

use std::sync::LazyLock;

/// The table.
const TABLE: &str = include_str!("functions.txt");

/// Reasons for refusals, by the word in the table.
const REASONS: &[(&str, &str)] = &[
    (
        "installer",
        "it installs packages on the host; install them with the system's package manager before the worker starts",
    ),
    (
        "containers",
        "it manages a server in a container; start the server yourself, and use pg_connect()",
    ),
    (
        "virtualisation",
        "it builds, mounts or runs containers, which needs rights that the sandbox drops; run the tool outside of jobs",
    ),
    (
        "kubernetes",
        "it changes a cluster with the credentials of the host; call kubectl outside of jobs",
    ),
    (
        "vault",
        "it keeps keys and wallets in the process; sign and encrypt outside of jobs",
    ),
    (
        "services",
        "it manages services of the host; use zinit_* with the socket of a zinit",
    ),
    (
        "exec",
        "it downloads a script and runs it here; enqueue the script as a job instead",
    ),
    (
        "rhai",
        "Rhai has this function with two arguments; call is_def_fn(name, arguments)",
    ),
];

/// Sort of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A function or method.
    Function,
    /// A property that scripts read.
    Getter,
    /// A property that scripts set.
    Setter,
    /// The name of a type.
    Type,
}

/// A name of SAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Module: the published crate without `sal-`.
    pub module: &'static str,
    /// Sort.
    pub kind: Kind,
    /// Name.
    pub name: &'static str,
    /// Number of arguments.
    pub arguments: usize,
    /// Reason for which it is refused; `None` if it works.
    pub refused: Option<&'static str>,
}

/// The parsed table.
static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(read).collect()
});

/// Returns all names.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter()
}

fn read(line: &'static str) -> Option<Function> {
    let mut words = line.split(' ');
    let module = words.next()?;
    let kind = match words.next()? {
        "fn" => Kind::Function,
        "get" => Kind::Getter,
        "set" => Kind::Setter,
        "type" => Kind::Type,
        _ => return None,
    };
    let (name, arguments) = (words.next()?, words.next()?.parse().ok()?);
    let reason = words.next()?;
    let refused = match reason {
        "-" => None,
        word => Some(REASONS.iter().find(|(known, _)| *known == word)?.1),
    };
    Some(Function {
        module,
        kind,
        name,
        arguments,
        refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let faults: Vec<_> = lines.filter(|line| read(line).is_none()).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}
