# Embeds a batch of texts: the action's data comes on stdin, that of the answer goes to stdout.
import json
import sys

batch = json.load(sys.stdin)
embeddings = [[len(text), at] for at, text in enumerate(batch["texts"])]
print(json.dumps({
    "status": "completed",
    "model": batch["model"],
    "chunk_ids": batch["chunk_ids"],
    "embeddings": embeddings,
    "dimensions": 2,
}))
