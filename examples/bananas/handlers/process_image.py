"""Says the size that an image is to have, at most `width` wide."""
import json
import sys

job = json.load(sys.stdin)
width = min(job["width"], 1280)
result = {"width": width, "height": job["height"] * width // job["width"]}
