//! The engine of expressions: Rhai without clock, randomness and output, within bounds, and with names that are jobs.

use std::ops::Range;
use std::sync::LazyLock;
use std::thread;

use rhai::packages::{
    BasicArrayPackage, BasicMapPackage, BasicMathPackage, CorePackage, LogicPackage,
    MoreStringPackage, Package,
};
use rhai::{AST, Engine, Module, OptimizationLevel, Position, Scope, Shared};

use super::lexer::{self, Name};
use super::{MAX_OPERATIONS, MAX_VALUE};
use meshwork_runtime::rhai::bounded;

/// The deepest nesting of expressions and calls.
const MAX_DEPTH: usize = 64;
/// The most elements of all lists, and entries of all maps, within one value.
const MAX_ELEMENTS: usize = 100_000;
/// Stack of an expression. Rhai walks values by recursion: a level takes up to 2.2 KiB, and 8.4 KiB in debug builds. Unused
/// stack takes no memory.
const STACK: usize = if cfg!(debug_assertions) {
    1536 << 20
} else {
    512 << 20
};
/// The letter before the names of jobs in what Rhai reads: words of Rhai may be names of jobs, such as `export`.
const MARK: &str = "J";
/// Words of Rhai that are names of jobs only with a dot behind them.
pub(super) const KEYWORDS: [&str; 24] = [
    "true",
    "false",
    "let",
    "const",
    "if",
    "else",
    "switch",
    "do",
    "while",
    "until",
    "loop",
    "for",
    "in",
    "continue",
    "break",
    "return",
    "throw",
    "try",
    "catch",
    "fn",
    "private",
    "this",
    "global",
    "is_shared",
];

/// Functions of expressions: those of Rhai that depend on nothing but their arguments.
static FUNCTIONS: LazyLock<[Shared<Module>; 7]> = LazyLock::new(|| {
    [
        CorePackage::new().as_shared_module(),
        LogicPackage::new().as_shared_module(),
        BasicMathPackage::new().as_shared_module(),
        BasicArrayPackage::new().as_shared_module(),
        BasicMapPackage::new().as_shared_module(),
        MoreStringPackage::new().as_shared_module(),
        bounded::functions().into(),
    ]
});

/// An engine. `failed` is the value of `failed()`.
pub(super) fn new(failed: bool) -> Engine {
    let mut engine = Engine::new_raw();
    for module in FUNCTIONS.iter() {
        engine.register_global_module(Shared::clone(module));
    }
    for keyword in ["eval", "import", "export", "curry", "print", "debug", "fn"] {
        engine.disable_symbol(keyword);
    }
    engine
        .set_max_operations(MAX_OPERATIONS)
        .set_max_call_levels(MAX_DEPTH)
        .set_max_expr_depths(MAX_DEPTH, MAX_DEPTH)
        .set_max_variables(MAX_DEPTH)
        .set_max_functions(MAX_DEPTH)
        .set_max_modules(0)
        .set_max_string_size(MAX_VALUE)
        .set_max_array_size(MAX_ELEMENTS)
        .set_max_map_size(MAX_ELEMENTS)
        .set_strict_variables(true)
        .set_fail_on_invalid_map_property(true)
        .set_optimization_level(OptimizationLevel::None);
    engine.register_fn("failed", move || failed);
    engine.register_fn("always", || true);
    engine.register_fn("matrix", super::matrix::matrix);
    engine
}

/// Runs `work` on a thread whose stack takes the most deeply nested value.
pub(super) fn on_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("expression".to_owned());
        let thread = builder.stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("the system has no thread: {error}"))?;
        thread
            .join()
            .map_err(|_| "the expression ended with a panic".to_owned())
    })
}

/// A change of an expression: the byte at which it begins, the number of bytes that are replaced, and the new text.
type Edit = (usize, usize, &'static str);

/// Returns the changes that put a text in single quotes into double ones. None is shorter than what it replaces.
fn double_quoted(expression: &str, text: Range<usize>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut bytes = expression[text.clone()].bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        let at = text.start + at;
        match byte {
            b'\\' => {
                if let Some((_, b'\'')) = bytes.next() {
                    edits.push((at, 2, "\\x27"));
                }
            }
            b'\'' => edits.push((at, 1, "\"")),
            b'"' => edits.push((at, 0, "\\")),
            _ => {}
        }
    }
    edits
}

/// An expression in the words of Rhai, and the bytes at which a letter was put in.
pub(super) struct Marked {
    text: String,
    marks: Vec<usize>,
}

impl Marked {
    /// Marks the names of jobs in an expression. Texts in single quotes become texts of Rhai, which has characters there.
    pub(super) fn new(expression: &str, is_job: impl Fn(&str) -> bool) -> Self {
        let own = |name: &Name<'_>| {
            !name.called && is_job(name.text) && (name.dotted || !KEYWORDS.contains(&name.text))
        };
        let scan = lexer::whole(expression);
        let names = scan.names.into_iter().filter(own);
        let mut edits: Vec<Edit> = names.map(|name| (name.start, 0, MARK)).collect();
        for text in scan.single_quoted {
            edits.extend(double_quoted(expression, text));
        }
        edits.sort_by_key(|(start, ..)| *start);
        let (mut text, mut copied, mut marks) = (String::new(), 0, Vec::new());
        for (start, length, new) in edits {
            text.push_str(&expression[copied..start]);
            text.push_str(new);
            marks.extend((length..new.len()).map(|_| start));
            copied = start + length;
        }
        text.push_str(&expression[copied..]);
        Self { text, marks }
    }

    /// The line and the column in the expression as it was written, both from 1, of a place in what Rhai read.
    pub(super) fn place(&self, expression: &str, at: Position) -> Option<(usize, usize)> {
        let (line, column) = (at.line()?, at.position()?);
        let start: usize = expression
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let mut found = column;
        for (nth, mark) in self.marks.iter().filter(|mark| **mark >= start).enumerate() {
            let before = expression[start..*mark].chars().count() + nth;
            if before + 1 < column {
                found = column - nth - 1;
            }
        }
        Some((line, found.max(1)))
    }

    /// Reads the expression with these names.
    pub(super) fn compile(
        &self,
        engine: &Engine,
        scope: &Scope<'_>,
    ) -> Result<AST, rhai::ParseError> {
        engine.compile_with_scope(scope, &self.text)
    }
}

/// The name of a job in a scope.
pub(super) fn marked(name: &str) -> String {
    format!("{MARK}{name}")
}

/// The message of an error of Rhai without its place and without marks.
pub(super) fn message(error: &rhai::EvalAltResult) -> String {
    let mut error = error;
    while let rhai::EvalAltResult::ErrorInFunctionCall(_, _, inner, _) = error {
        error = inner;
    }
    let text = error.to_string();
    let end = text.rfind(" (line ").unwrap_or(text.len());
    text[..end].to_owned()
}
