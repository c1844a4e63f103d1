#!/usr/bin/env python3
"""Chooses settings by chance and writes all trials to a file, for a response that is fitted to them (benches/surfaces.sh).

Usage: random_optimizer.py FILE. The first choice of a block is the present state, by which the noise is known. Of the others half are anywhere, and
half are near the best so far, where a response must be known well.
"""

import json
import math
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "contrib"))

from pgdyno_optimizer import amount, talk

TRIALS_OF_BLOCK = 6


class Chance:
    def __init__(self, opening):
        self.seed, self.factors, self.trials, self.starts = opening["seed"], opening["factors"], [], None

    def choose(self, trials, refused):
        if self.starts is None:
            self.starts = len(trials)
        self.trials = trials
        self.write()
        chance = random.Random(f"{self.seed} {len(trials)} {len(refused)}")
        if len(trials) % TRIALS_OF_BLOCK == 0 and not refused:
            return {factor["name"]: factor["levels"][0] for factor in self.factors}
        chosen = {factor["name"]: chance.choice(factor["levels"]) for factor in self.factors}
        known = [trial for trial in trials if trial["value"] is not None and trial["holds"]]
        if known and chance.random() < 0.5:
            near = dict(max(known, key=lambda trial: trial["value"])["levels"])
            changed = chance.sample(sorted(chosen), min(chance.randint(1, 3), len(chosen)))
            chosen = near | {name: chosen[name] for name in changed}
        return chosen

    def write(self):
        def coordinates(factor):
            amounts = [amount(level) for level in factor["levels"]]
            placed = [math.log(a) if a > 0 and factor["scale"] == "log" else None for a in amounts]
            known = [a for a in placed if a is not None]
            length = max(known) - min(known) if known else 0
            return [None if a is None or length == 0 else (a - min(known)) / length for a in placed]

        factors = [
            {key: factor[key] for key in ("name", "levels", "weights", "relevance")}
            | {"coordinates": coordinates(factor), "amounts": [amount(level) for level in factor["levels"]]}
            for factor in self.factors
        ]
        trials = [
            {
                "block": trial["block"],
                "value": trial["value"],
                "point": [factor["levels"].index(trial["levels"][factor["name"]]) for factor in self.factors],
            }
            for trial in self.trials
            if trial["holds"]
        ]
        Path(sys.argv[1]).write_text(json.dumps({"factors": factors, "starts": self.starts, "trials": trials}) + "\n")


if __name__ == "__main__":
    begun = []
    talk(lambda opening: begun.append(Chance(opening)) or begun[0])
    begun[0].write()
