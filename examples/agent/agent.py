# The agent: searches for each topic of a message, then lets a model answer. All of its calls belong to the task of the
# message; each has a correlation id of its own.
#
#     meshwork service --name query --handler query.rag.execute=examples/agent/search.py &
#     meshwork service --name llm --handler llm.generate.text=examples/agent/generate.py &
#     meshwork service --name execution --handler execution.chat=examples/agent/agent.py &
#     meshwork action call execution.chat '{"message": "Project X and the notes of the meeting"}'
import json
import sys

message = json.load(sys.stdin)["message"]
found = []
for topic in message.split(" and "):
    reply = call_action("query.rag.execute", {"query_text": topic}, timeout=60)
    found.append(reply["answer"])
    notify_action("progress", {"found": len(found)})
result = call_action("llm.generate.text", {"message": message, "documents": found}, timeout=60)
