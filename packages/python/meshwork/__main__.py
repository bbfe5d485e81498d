"""``python -m meshwork`` is the command ``meshwork``, with this interpreter for tasks and scripts."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig


def main() -> None:
    name = "meshwork"
    beside = os.path.join(sysconfig.get_path("scripts"), name)
    found = beside if os.path.exists(beside) else shutil.which(name)
    if found is None:
        sys.exit("there is no command `meshwork`: install the package, or put the command on the PATH")
    os.environ.setdefault("MESHWORK_PYTHON", sys.executable)
    os.execv(found, [name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
