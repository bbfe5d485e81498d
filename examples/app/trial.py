"""Starts a worker of shop.py, calls its task, and stops the worker."""

import os
import subprocess
import sys

folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, folder)

from shop import send_mail  # noqa: E402

command = [sys.executable, "-m", "meshwork", "worker", "--app", "shop:app", "--processes", "1"]
worker = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
try:
    print(send_mail.call("ada@example.org"))
finally:
    worker.terminate()
    worker.wait(30)
