"""Adds up numbers."""
import json
import sys

result = sum(json.load(sys.stdin)["numbers"])
