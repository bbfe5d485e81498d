# A bar chart of the languages as an SVG file; its path is the result.
import json
import os
import sys

path = json.load(sys.stdin)["file"]
rows = inputs["merge"]
most = max((lines for _, _, lines in rows), default=0) or 1
bars = []
for at, (name, _, lines) in enumerate(rows):
    y = 10 + 26 * at
    bars.append(f'<text x="10" y="{y + 15}">{name}</text>')
    bars.append(f'<rect x="100" y="{y}" width="{max(1, lines * 400 // most)}" height="20" fill="#4477aa"/>')
    bars.append(f'<text x="510" y="{y + 15}">{lines}</text>')
size = f'width="600" height="{26 * len(rows) + 20}"'
os.makedirs(os.path.dirname(path), exist_ok=True)
with open(path, "w") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="14">')
    file.write("".join(bars) + "</svg>\n")
result = path
