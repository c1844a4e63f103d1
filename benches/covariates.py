#!/usr/bin/env python3
"""What covariates would explain of the noise between equal trials: benches/covariates.py PGDYNO EXPERIMENTS, in the benchmark's store.

Throughput (its logarithm) and each covariate are taken without their blocks' and treatments' means; the slope is fitted on
all experiments but one and applied to that one, so that a covariate that explains nothing makes the noise larger. What is left of the
variance is the share of trials that would still be needed."""

import csv
import math
import subprocess
import sys
from collections import defaultdict

pgdyno, many = sys.argv[1], int(sys.argv[2])


def rows(*arguments):
    """The lines of one of the program's exports, by their columns' names."""
    run = subprocess.run([pgdyno, "export", "--format", "csv", *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return csv.DictReader(run.stdout.splitlines())


def without_means(values, keys):
    """Values by trial without the means of each of their keys; blocks that lack a treatment want several rounds."""
    left = dict(values)
    for _ in range(20):
        for key in keys:
            groups = defaultdict(list)
            for trial in left:
                groups[key[trial]].append(trial)
            for group in groups.values():
                mean = sum(left[trial] for trial in group) / len(group)
                for trial in group:
                    left[trial] -= mean
    return left


SERIES = {"steal in the trial": "cpu.steal_ratio", "time of a disk's flush in the trial": "disk.flush_await_ms", "time of a disk's write in the trial": "disk.write_await_ms"}
# An equal trial just before is as good as a calibration load of a trial's length could be.
BEFORE = {"throughput of the trial before": "tps", "time of a disk's flush in the trial before": "time of a disk's flush in the trial", "steal in the trial before": "steal in the trial"}

pairs = defaultdict(dict)
for experiment in range(1, many + 1):
    trials = [row for row in rows(str(experiment)) if row["status"] == "finished"]
    measured = {row["trial"]: (1000 * float(row["warmup_s"]), 1000 * (float(row["warmup_s"]) + float(row["measured_s"]))) for row in trials}
    points = defaultdict(lambda: defaultdict(list))
    for row in rows(str(experiment), "--series"):
        if row["metric"] in SERIES.values() and row["trial"] in measured and row["value"]:
            points[row["metric"]][row["trial"]].append((float(row["at_ms"]), float(row["value"])))
    figures = {"tps": {row["trial"]: math.log(float(row["tps"])) for row in trials}}
    for name, metric in SERIES.items():
        figures[name] = {}
        for trial, series in points[metric].items():
            begin, end = measured[trial]
            inside = [value for at, value in series if begin < at <= end + 1000] or [value for _, value in series]
            figures[name][trial] = sum(inside) / len(inside)
    order = [row["trial"] for row in trials]
    for name, of in BEFORE.items():
        figures[name] = {trial: figures[of][before] for before, trial in zip(order, order[1:]) if before in figures[of]}
    blocks = {row["trial"]: row["block"] for row in trials}
    treatments = {row["trial"]: row["treatment"] for row in trials}
    for name, covariate in figures.items():
        if name != "tps" and covariate:
            y = without_means({trial: figures["tps"][trial] for trial in covariate}, [blocks, treatments])
            x = without_means(covariate, [blocks, treatments])
            pairs[name][experiment] = [(x[trial], y[trial]) for trial in covariate]

print("covariate, and the share of the noise's variance that is left with it")
for name in [*SERIES, *BEFORE]:
    experiments = pairs[name]
    sums = {e: (sum(x * x for x, _ in p), sum(x * y for x, y in p)) for e, p in experiments.items()}
    xx, xy = (sum(s[i] for s in sums.values()) for i in (0, 1))
    if xx < 1e-12:
        print(f"{name}: never anything but one value here")
        continue
    noise = left = 0.0
    for e, p in experiments.items():
        others = xx - sums[e][0]
        slope = (xy - sums[e][1]) / others if others > 0 else 0.0
        noise += sum(y * y for _, y in p)
        left += sum((y - slope * x) ** 2 for x, y in p)
    print(f"{name}: {left / noise:.3f} ({sum(map(len, experiments.values()))} trials)")
