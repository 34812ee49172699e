"""What a dispatcher imports before it knows what is configured."""

import subprocess
import sys

LOOK = """
import sys
import dispatcher.channels.opening
print(*(name for name in ("httpx", "jwt") if name in sys.modules))
"""


def test_the_push_services_are_imported_where_one_is_configured() -> None:
    """They would be nearly half of its start."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
