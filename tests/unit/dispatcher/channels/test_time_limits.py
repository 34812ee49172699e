"""How long an attempt may take."""

from datetime import timedelta

import pytest
from aiohttp.helpers import calculate_timeout_when

from dispatcher.channels.http import time_limits


@pytest.mark.parametrize("seconds", [0.2, 5, 8, 30])
def test_what_hangs_together_does_not_end_together(seconds: float) -> None:
    """Each by its own beginning: many that end in one instant would delay what is due then."""
    limits = time_limits(timedelta(seconds=seconds))
    begun = [1000 + n / 100 for n in range(100)]
    assert limits.total is not None
    assert limits.connect is not None
    for limit in (limits.total, limits.connect):
        ends = {calculate_timeout_when(at, limit, limits.ceil_threshold) for at in begun}
        assert len(ends) == len(begun)
