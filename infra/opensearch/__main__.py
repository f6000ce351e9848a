"""The command line: ``python -m infra.opensearch up``."""

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from infra.opensearch.java import CACHE
from infra.opensearch.process import ServerFailed
from infra.opensearch.server import ServerMissing, running_server

DEFAULT_PORT = 9200
LOOK_S = 1.0
DEFAULT_DATA = CACHE / "data"


class Stopped(BaseException):
    """Ctrl-C or SIGTERM."""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. The answer is the process's exit code."""
    options = _parser().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        with running_server(options.data, options.port, say=_say) as server:
            print(server.url, flush=True)
            _say(f"OpenSearch answers at {server.url}; what it holds is in {options.data}. Ctrl-C ends it.")
            while server.is_running():
                time.sleep(LOOK_S)
        _say("weft: OpenSearch has ended by itself")
    except Stopped:
        return 0
    except (ServerMissing, ServerFailed) as error:
        _say(f"weft: {error}")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.opensearch", description="OpenSearch on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a server and keep it running")
    up.add_argument("--port", type=int, default=DEFAULT_PORT, help="0: any free one (default: %(default)s)")
    up.add_argument("--data", type=Path, default=DEFAULT_DATA, metavar="DIR", help="default: %(default)s")
    return parser


def _stop(_signal: int, _frame: FrameType | None) -> None:
    # Whatever the main thread waits for, it ends in order; a second signal does not disturb that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise Stopped


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
