# Adds up the counts of all folders, the language with the most lines first.
total = {}
for count in inputs["count"]:
    for language, (files, lines) in count.items():
        before = total.get(language, (0, 0))
        total[language] = (before[0] + files, before[1] + lines)
result = sorted(([name, *of] for name, of in total.items()), key=lambda row: -row[2])
