"""The command line: ``python -m infra.local up`` and ``python -m infra.local token TENANT``."""

import argparse
import json
import logging
import os
import signal
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from core.model.errors import ConfigurationError, InvalidArgument
from core.model.tenant import Tenant
from core.settings import Settings
from infra.local.authorizer import DEFAULT_LIFE_S, DevelopmentKey, KeyUnusable
from infra.local.names import BUCKET

if TYPE_CHECKING:
    from infra.local.stack import Stack

DEFAULT_FOLDER = Path(__file__).parents[2] / ".weft"
DEFAULT_PORT = 8080
LOOK_S = 0.1
"""Between looks whether to end: a signal may come between a look and a wait, and then no wait would end."""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. The answer is the process's exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _token(options) if options.command == "token" else _up(options)
    except (ConfigurationError, InvalidArgument, KeyUnusable) as error:
        print(f"weft: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.local", description="Weft on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, metavar="DIR", help="the folder of the data and of the development key")
    up = commands.add_parser("up", parents=[data], help="start everything and keep it running")
    up.add_argument("--port", type=int, default=DEFAULT_PORT, help="of the API; 0: any free one (default: %(default)s)")
    up.add_argument(
        "--vectors",
        choices=["embedded", "opensearch"],
        default="embedded",
        help="the vector store (default: %(default)s)",
    )
    up.add_argument("--sweep-every", type=float, default=0, metavar="SECONDS", help="default: as template.yaml has it")
    up.add_argument("--json", action="store_true", help="print where things are as one JSON object")
    token = commands.add_parser("token", parents=[data], help="print a token for a tenant")
    token.add_argument("tenant")
    token.add_argument("--expires", type=int, default=DEFAULT_LIFE_S, metavar="SECONDS", help="default: %(default)s")
    return parser


def _token(options: argparse.Namespace) -> int:
    key = DevelopmentKey.in_folder(options.data or DEFAULT_FOLDER)
    print(key.token(Tenant(options.tenant), Settings.read(os.environ).tenant_claim, options.expires))
    return 0


def _up(options: argparse.Namespace) -> int:
    # Only here: a token is wanted in a moment, and these take seconds to import.
    from infra.local.stack import Options, Stack, StartError  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # Plain flags: a signal's handler that waits for a lock which its own thread holds would wait for ever.
    asked = failed = False

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        # A second Ctrl-C ends the process at once; then nothing is saved.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def fail() -> None:
        nonlocal failed
        failed = True

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    stack = Stack(
        Options(
            port=options.port,
            key_folder=options.data or DEFAULT_FOLDER,
            data=options.data,
            vectors=options.vectors,
            sweep_every_s=options.sweep_every,
        ),
        fail,
    )
    # What functions print is their log.
    with redirect_stdout(sys.stderr):
        try:
            stack.start()
        except StartError as error:
            print(f"weft: {error}", file=sys.stderr)
            return 1
        _announce(stack, options)
        while not (asked or failed):
            time.sleep(LOOK_S)
        problems = stack.stop()
    for problem in problems:
        print(f"weft: {problem}", file=sys.stderr, flush=True)
    code = 1 if problems or failed else 0
    if not stack.ended:
        # A handler that never ends must not keep the process.
        os._exit(code)
    return code


def _announce(stack: "Stack", options: argparse.Namespace) -> None:
    if options.json:
        told = {"url": stack.url, "aws_url": stack.aws_url, "bucket": BUCKET, "opensearch_url": stack.opensearch_url}
        lines = [json.dumps(told)]
    else:
        data = f" --data {options.data}" if options.data else ""
        lines = [
            f"Weft answers at {stack.url}",
            f"  a token:  {_command()} token TENANT{data}",
            f"  S3, DynamoDB and SQS: {stack.aws_url} (any credentials), bucket {BUCKET}",
            *([f"  OpenSearch: {stack.opensearch_url}"] if stack.opensearch_url else []),
            "  what it holds is kept when it stops" if data else "  nothing is kept when it stops; --data DIR keeps it",
            "Ctrl-C ends it.",
        ]
    print("\n".join(lines), file=sys.__stdout__, flush=True)


def _command() -> str:
    return f"{os.path.relpath(sys.executable)} -m infra.local"


if __name__ == "__main__":
    sys.exit(main())
