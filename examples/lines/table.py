# A table of the languages.
rows = inputs["merge"]
most = max((lines for _, _, lines in rows), default=0) or 1
result = "\n".join(
    [f"{'language':<10}{'files':>7}{'lines':>9}"]
    + [f"{name:<10}{files:>7}{lines:>9}  {'#' * max(1, lines * 40 // most)}" for name, files, lines in rows]
)
