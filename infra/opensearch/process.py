"""What both ways to run a server share: what one is, and other programs run to their end."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Server:
    """A server that has been started.

    Attributes:
        url: where it answers.
        is_running: whether it has not ended.
    """

    url: str
    is_running: Callable[[], bool]


class ServerFailed(Exception):
    """The server cannot be fetched or does not start."""


def run(command: list[str], what: str, environ: dict[str, str] | None = None) -> str:
    """Runs a program to its end and answers what it printed.

    Raises:
        ServerFailed: it failed; the text has ``what`` and its last lines.
    """
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    if done.returncode:
        raise ServerFailed(f"{what}\n{last_lines(done.stdout + done.stderr)}")
    return done.stdout


def last_lines(text: str, count: int = 12) -> str:
    """The end of a log."""
    return "\n".join(text.rstrip().splitlines()[-count:])
