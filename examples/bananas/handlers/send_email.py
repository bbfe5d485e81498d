"""Puts a mail together; a real one would hand it to a mail server."""
import json
import sys
from email.message import EmailMessage

job = json.load(sys.stdin)
mail = EmailMessage()
mail["To"] = job["to"]
mail["Subject"] = job.get("subject", "")
mail.set_content(job.get("body", ""))
result = mail.as_string()
