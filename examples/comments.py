"""Says how a source file in Rust divides into code, comments, tests and blank lines, and how long its
longest function is.

    meshwork run examples/comments.py --each crates/*/src/*.rs

With --each the script runs once per file; its content is on stdin. The result is the variable `result`: in
the table of `run --each` each of its entries is a column, with --json it is an object. A script that sets
no `result` returns what it prints.
"""

import re
import sys


def kind(line, in_comment):
    """What a line is, and whether a /* comment */ is open after it."""
    text = line.strip()
    if in_comment:
        return "comment", "*/" not in text
    if not text:
        return "blank", False
    if text.startswith("//"):
        return "comment", False
    if text.startswith("/*"):
        return "comment", "*/" not in text
    return "code", False


def longest_function(lines):
    """The name and the number of lines of the longest function, by the indentation that rustfmt gives it."""
    longest, name, start = ("", 0), None, 0
    for number, line in enumerate(lines):
        head = re.match(r"( *)(?:pub(?:\([a-z:_ ]+\))? )?(?:const |async )*fn (\w+)", line)
        if head:
            indent, name, start = head[1], head[2], number
        if name and line.startswith(indent + "}"):
            longest = max(longest, (name, number - start + 1), key=lambda it: it[1])
            name = None
    return longest


counts = {"code": 0, "comment": 0, "blank": 0, "test": 0}
lines = sys.stdin.read().splitlines()
in_comment = in_tests = False
for before, line in zip([""] + lines, lines):
    if before == "#[cfg(test)]" and line.endswith("{"):
        in_tests = True
    sort, in_comment = kind(line, in_comment)
    counts["test" if in_tests and sort == "code" else sort] += 1
    if line == "}":
        in_tests = False

name, length = longest_function(lines)
result = {"lines": len(lines), **counts, "longest_fn": length, "name": name}
