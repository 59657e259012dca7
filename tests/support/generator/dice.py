"""The dice of a case, which know how often an expression that raises for ordinary data is taken when it comes up."""

from __future__ import annotations

import random

RISK = 0.08
"""In ANSI mode, where a case that raises shows little else."""


class Dice(random.Random):
    """Dice with a risk of their own."""

    risk = RISK


def risk_of(dice: random.Random) -> float:
    """The risk of some dice."""
    return dice.risk if isinstance(dice, Dice) else RISK
