# Lists the folders of a tree: those of the first level, and of a folder without files those within. `target` is the
# folder of what is built.
import json
import os
import sys

root = json.load(sys.stdin)["root"]
if not os.path.isabs(root):
    raise SystemExit(f"root is {root}: give an absolute path, as --set root=$PWD")


def folders(path):
    names = [name for name in sorted(os.listdir(os.path.join(root, path))) if not name.startswith(".")]
    names = [os.path.join(path, name) for name in names]
    return [name for name in names if name != "target" and os.path.isdir(os.path.join(root, name))]


def has_files(path):
    entries = os.scandir(os.path.join(root, path))
    return any(entry.is_file() for entry in entries)


result = []
for folder in folders(""):
    result += [folder] if has_files(folder) else folders(folder)
