#!/usr/bin/env python3
"""Lets SMAC3's random forest choose what pgdyno tries next."""

import logging
import tempfile

from ConfigSpace import Categorical, Configuration, ConfigurationSpace
from pgdyno_optimizer import amount, talk
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType

# Above what any trial gives: SMAC minimises.
FAILED = 100.0


class Smac:
    """A run that is made anew from all trials before each choice, so that the same trials lead to the same choice."""

    def __init__(self, opening):
        self.seed = opening["seed"] % 2**31
        self.space = ConfigurationSpace(seed=self.seed)
        for factor in opening["factors"]:
            numbers = all(level[0].isdigit() and level != "0" for level in factor["levels"])
            levels = sorted(factor["levels"], key=amount) if numbers else factor["levels"]
            ordered = numbers and factor["scale"] != "none"
            self.space.add(Categorical(factor["name"], levels, default=factor["levels"][0], ordered=ordered))

    def choose(self, trials, refused):
        known = [(trial["levels"], trial["value"]) for trial in trials if trial["holds"]]
        known += [(levels, None) for levels in refused]
        with tempfile.TemporaryDirectory() as directory:
            seed = self.seed + len(known)
            scenario = Scenario(self.space, deterministic=True, n_trials=10_000, seed=seed, output_directory=directory)
            smac = HyperparameterOptimizationFacade(
                scenario,
                lambda config, seed=0: 0.0,
                initial_design=HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=0, additional_configs=[]),
                logging_level=logging.CRITICAL,
                overwrite=True,
            )
            for levels, value in known:
                failed = value is None
                trial = TrialInfo(Configuration(self.space, values=levels), seed=0)
                cost = TrialValue(FAILED if failed else -value, status=StatusType.CRASHED if failed else StatusType.SUCCESS)
                smac.tell(trial, cost)
            return {name: str(level) for name, level in dict(smac.ask().config).items()}


if __name__ == "__main__":
    talk(Smac)
