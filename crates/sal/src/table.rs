//! Table of all names: those that work, and those that are refused.

use std::sync::LazyLock;

/// The table.
const TABLE: &str = include_str!("functions.txt");

/// Most arguments of a function that is refused with any number of them.
const MAX_ARGUMENTS: usize = 5;

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
        "it runs a text, a file or a URL as a script; write the code here, or enqueue it as a job",
    ),
    (
        "rhai",
        "Rhai has this function with two arguments; call is_def_fn(name, arguments)",
    ),
    (
        "rsync",
        "it is a builder of herolib 0.3; call rsync(source, destination), or run the program",
    ),
    (
        "ssh",
        "it is a builder of herolib 0.3; call ssh_execute(host, user, command)",
    ),
    (
        "killer",
        "it is a builder of herolib 0.3; call kill(pattern)",
    ),
    (
        "timeout",
        "a command has no limit of its own; give the job --timeout, or run the program `timeout`",
    ),
    (
        "wait",
        "a script of herolib 0.3 waits in it; call sleep(seconds) and http_check(url) in a loop",
    ),
    (
        "measure",
        "it measures the host with the whole of its load; run a tool for that outside of jobs",
    ),
    (
        "beside",
        "a script has no file or folder of its own; its work folder is the current one",
    ),
    (
        "file",
        "it is a function of herolib 0.3; call exist(), file_read(), file_write(), mkdir(), or run the program `ln`",
    ),
    (
        "filesystem",
        "it changes file systems of the host, which needs rights that the sandbox drops; do it outside of jobs",
    ),
    (
        "git",
        "it is a function of herolib 0.3; call git_tree_new(folder), and get(url) of the tree",
    ),
    (
        "heroscript",
        "it reads heroscript, which is not here; pass JSON as input, and call parse_json(INPUT)",
    ),
    (
        "daemon",
        "it is a builder of herolib 0.3; call zinit_* or mycelium_* with a socket or an address",
    ),
    (
        "text",
        "it is a function of herolib 0.3; call name_fix(text)",
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
    lines.filter_map(read).flatten().collect()
});

/// Returns all names.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter()
}

/// Returns the functions of a line: with `*`, one for each number of arguments.
fn read(line: &'static str) -> Option<Vec<Function>> {
    let mut words = line.split(' ');
    let module = words.next()?;
    let kind = match words.next()? {
        "fn" => Kind::Function,
        "get" => Kind::Getter,
        "set" => Kind::Setter,
        "type" => Kind::Type,
        _ => return None,
    };
    let name = words.next()?;
    let arguments = match words.next()? {
        "*" => 0..=MAX_ARGUMENTS,
        number => number.parse().ok().map(|number| number..=number)?,
    };
    let reason = words.next()?;
    let refused = match reason {
        "-" => None,
        word => Some(REASONS.iter().find(|(known, _)| *known == word)?.1),
    };
    let of = |arguments| Function {
        module,
        kind,
        name,
        arguments,
        refused,
    };
    Some(arguments.map(of).collect())
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
