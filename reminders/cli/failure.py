"""How a command fails: some lines for a person, and an exit code."""


class CommandError(Exception):
    """Ends the command; the lines go to stderr, the first after `error:`."""

    def __init__(self, *lines: str, exit_code: int = 1) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.exit_code = exit_code
