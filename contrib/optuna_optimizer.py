#!/usr/bin/env python3
"""Lets Optuna's TPE choose what pgdyno tries next."""

import warnings

import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from pgdyno_optimizer import amount, talk

# Below what any trial gives: the logarithm of a figure.
FAILED = -100.0


class Tpe:
    """A study that is made anew from all trials before each choice, so that the same trials lead to the same choice."""

    def __init__(self, opening):
        self.seed = opening["seed"] % 2**31
        self.factors = {factor["name"]: factor for factor in opening["factors"]}

    def distribution(self, factor):
        """Levels that are numbers have an order; 0 and below are words to PostgreSQL."""
        if factor["scale"] == "none" or any(level.startswith("-") or level == "0" for level in factor["levels"]):
            return CategoricalDistribution(factor["levels"])
        if all(level[0].isdigit() for level in factor["levels"]):
            return IntDistribution(0, len(factor["levels"]) - 1)
        return CategoricalDistribution(factor["levels"])

    def choose(self, trials, refused):
        distributions = {name: self.distribution(factor) for name, factor in self.factors.items()}
        sampler = optuna.samplers.TPESampler(seed=self.seed + 1000 * len(refused) + len(trials), n_startup_trials=5, multivariate=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        known = [(trial["levels"], trial["value"]) for trial in trials if trial["holds"]]
        for levels, value in known + [(levels, None) for levels in refused]:
            inner = {name: self.inner(name, level, distributions) for name, level in levels.items()}
            study.add_trial(
                create_trial(
                    params=inner,
                    distributions={name: distributions[name] for name in inner},
                    value=FAILED if value is None else value,
                    state=TrialState.COMPLETE,
                )
            )
        chosen = study.ask(distributions).params
        return {name: self.outer(name, value) for name, value in chosen.items()}

    def inner(self, name, level, distributions):
        is_number = isinstance(distributions[name], IntDistribution)
        return self.in_order(name).index(level) if is_number else level

    def outer(self, name, value):
        return self.in_order(name)[value] if isinstance(value, int) else value

    def in_order(self, name):
        return sorted(self.factors[name]["levels"], key=amount)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    talk(Tpe)
