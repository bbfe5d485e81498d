"""An app with a task: `meshwork worker --app shop:app` runs it."""

import os

from meshwork import App

# A folder needs no server; REDIS_URL names one.
app = App("dir:" + os.environ["MESHWORK_DATA"] if "MESHWORK_DATA" in os.environ else None)


@app.task(retries=3, backoff="2s", timeout="30s")
def send_mail(to: str, subject: str = "Hello") -> str:
    print("to", to)
    return f"sent {subject} to {to}"
