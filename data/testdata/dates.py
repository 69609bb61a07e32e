"""Writes dates.json: dates with slashes, as a .csv, with the years that pandas reads in each order."""
import json
import pandas as pd

orders = {"month/day": (False, "%m/%d/%Y"), "day/month": (True, "%d/%m/%Y")}
moments = pd.to_datetime(["2025-03-14 00:00", "2024-12-31 18:30", "2023-07-02 12:00", "1969-01-13 06:05", "2024-02-29 00:00", "2020-05-06 23:59"])
files = {}
for name, (first, layout) in orders.items():
    texts = [m.strftime(layout + (" %H:%M" if i % 2 == 0 else " %I:%M %p" if i == 3 else "")) for i, m in enumerate(moments)]
    texts[4] = texts[4].split()[0].lstrip("0")
    parsed = [pd.to_datetime(t, dayfirst=first) for t in texts]
    begin = [pd.Timestamp(t.year, 1, 1) for t in parsed]
    years = [t.year + (t - b) / (pd.Timestamp(t.year + 1, 1, 1) - b) for t, b in zip(parsed, begin)]
    files[name] = {"texts": texts, "years": years, "days": [t.strftime("%Y-%m-%d") for t in parsed]}
open("dates.json", "w").write(json.dumps(files, indent=1) + "\n")
