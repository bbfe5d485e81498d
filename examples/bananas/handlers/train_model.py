"""Fits a line through points by least squares."""
import json
import sys

points = json.load(sys.stdin)["points"]
count = len(points)
mean_x = sum(x for x, _ in points) / count
mean_y = sum(y for _, y in points) / count
slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
result = {"slope": slope, "intercept": mean_y - slope * mean_x}
