# The table, and the place of the chart.
result = inputs["table"] + "\nchart: " + inputs["chart"]
