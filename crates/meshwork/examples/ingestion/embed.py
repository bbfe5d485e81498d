# Embeds a batch of texts: the action's data comes on stdin, that of the answer goes to stdout.
import json
import sys

batch = json.load(sys.stdin)
texts = batch.get("texts", [])
embeddings = [[len(text), at] for at, text in enumerate(texts)]
print(json.dumps({
    "status": "completed",
    "model": batch.get("model"),
    "chunk_ids": batch.get("chunk_ids"),
    "embeddings": embeddings,
    "dimensions": 2,
}))
