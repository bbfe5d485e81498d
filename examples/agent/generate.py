# A model that repeats what it reads.
import json
import sys

prompt = json.load(sys.stdin)
result = {"text": "I found " + ", and ".join(prompt["documents"]) + "."}
