"""What adapters of optimizers have in common: lines of JSON in, a choice out."""

import json
import sys


def talk(begin):
    """Talks to pgdyno until it has no more questions.

    `begin(opening)` returns an object with `choose(trials, refused)`: the level of each factor by name. `trials` are those so far, each with
    levels, value (larger is better, None where it failed) and holds; `refused` are choices for this trial that cannot be tried.
    """
    lines = (json.loads(line) for line in sys.stdin)
    opening = next(lines)
    if opening["format"] != "pgdyno-optimizer/1":
        sys.exit(f"this adapter is for pgdyno-optimizer/1, and this is {opening['format']}")
    optimizer = begin(opening)
    trials, refused = [], []
    for line in lines:
        if "tell" in line:
            trials.append(line["tell"])
            refused = []
        elif "refuse" in line:
            refused.append(line["refuse"]["levels"])
        elif "ask" in line:
            print(json.dumps({"levels": optimizer.choose(trials, refused)}), flush=True)


def amount(level):
    """A level in the order of its amount, as "4MB" or "0.5"."""
    number = level.rstrip("kMGTBmsinhd")
    unit = level[len(number) :]
    times = {"": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40, "us": 1e-3, "ms": 1, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}
    try:
        return float(number) * times.get(unit, 1)
    except ValueError:
        return 0.0
