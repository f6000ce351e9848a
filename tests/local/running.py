"""A stack in a process of its own, as ``python -m infra.local up`` starts it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
STOP_S = 60.0

Json = dict[str, Any]


@dataclass
class Running:
    """A stack that answers."""

    process: "subprocess.Popen[str]"
    url: str
    aws_url: str
    bucket: str
    opensearch_url: str | None
    key_folder: Path
    log: Path
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.url, trust_env=False, timeout=60)
        self.http.headers["authorization"] = f"Bearer {token('acme', self.key_folder)}"

    def call(self, method: str, path: str, body: Json | None = None, **query: str) -> Json:
        """An accepted call's answer."""
        answer = self.http.request(method, path, json=body, params=query)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}\n{self.log.read_text()}"
        return dict(answer.json())

    def stop(self, kind: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal; the exit code."""
        self.http.close()
        self.process.send_signal(kind)
        code = self.process.wait(STOP_S)
        if self.process.stdout:
            self.process.stdout.close()
        return code


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "infra.local", *arguments]


def token(tenant: str, data: Path) -> str:
    """What ``token`` prints, without the line's end."""
    ran = subprocess.run(
        command("token", tenant, "--data", str(data)), cwd=ROOT, check=True, capture_output=True, text=True
    )
    return ran.stdout.removesuffix("\n")


def start(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> Running:
    """Starts a stack that keeps its data in a folder; returns when it answers."""
    log = folder.with_suffix(".log")
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command("up", "--port", "0", "--json", "--data", str(folder), *arguments),
            cwd=ROOT,
            env={**os.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the stack did not start:\n{log.read_text()}"
    told = json.loads(line)
    return Running(process, told["url"], told["aws_url"], told["bucket"], told["opensearch_url"], folder, log)


@contextmanager
def stack(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Running]:
    """A stack inside the block."""
    running = start(folder, *arguments, environ=environ)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
