# Counts the files and lines of one folder by language.
import json
import os
import sys

LANGUAGES = {".rs": "Rust", ".lua": "Lua", ".py": "Python", ".md": "Markdown", ".rhai": "Rhai", ".yaml": "YAML", ".toml": "TOML"}

of = json.load(sys.stdin)
result = {}
for path, folders, names in os.walk(os.path.join(of["root"], of["folder"])):
    folders[:] = [name for name in folders if not name.startswith(".")]
    for name in names:
        language = LANGUAGES.get(os.path.splitext(name)[1])
        if language:
            with open(os.path.join(path, name), "rb") as file:
                lines = file.read().count(b"\n")
            files, before = result.get(language, (0, 0))
            result[language] = (files + 1, before + lines)
