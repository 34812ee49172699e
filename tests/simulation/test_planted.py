"""Each fault planted in the code is found: the simulation would notice if a rule were lost."""

import pytest

from tests.simulation.generate import generate
from tests.simulation.planted import PLANTED, found_at, planted
from tests.simulation.run import run


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    """Within the stated number of seeds, begun shortly before the one that found it last.

    `python -m tests.simulation --planted` counts from 0.
    """
    one = PLANTED[name]
    assert found_at(name, range(one.hunted_from, one.within)) is not None


def test_what_is_planted_is_taken_out_again() -> None:
    """The code under test is itself afterwards."""
    with planted("void-ignored"):
        assert run(generate(PLANTED["void-ignored"].hunted_from)).violations
    assert not run(generate(PLANTED["void-ignored"].hunted_from)).violations
