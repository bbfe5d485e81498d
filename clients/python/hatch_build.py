"""Makes the types and methods of the client when its package is built."""

import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from generate import DOCUMENTS, generate  # noqa: E402


class Generated(BuildHookInterface):
    def initialize(self, version, build_data):
        if self.target_name == "sdist":
            document = next(path for path in DOCUMENTS if path.exists())
            build_data["force_include"][str(document)] = "openapi.json"
        else:
            generate()
