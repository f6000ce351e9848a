"""What README.md tells a newcomer to type works as it is written."""

import os
import re
import subprocess
from pathlib import Path

from core.settings import Settings
from tests.local.running import ROOT, command

README = (ROOT / "README.md").read_text(encoding="utf-8")
LONGEST_S = 180


def test_the_curl_examples_work_as_written_against_make_up(tmp_path: Path) -> None:
    script = "set -euo pipefail\n" + "\n".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL))
    assert script.count("curl ") >= 2
    log = tmp_path / "log"
    with log.open("w") as errors:
        stack = subprocess.Popen(
            command("up", "--port", "0"), cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert stack.stdout is not None
    try:
        url = stack.stdout.readline().split()[-1]
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=ROOT,
            env={**os.environ, "WEFT": url, "no_proxy": "127.0.0.1"},
            check=False,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
    finally:
        stack.terminate()
        code = stack.wait(60)
        stack.stdout.close()
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}\n{log.read_text()}"
    assert code == 0
    for said in (
        '"state":"ready"',
        '"signals":{"vector":{"rank":1,',
        '"code":"fewer_than_top_k"',
        '"code":"same_rank"',
        '"same_search":false',
        '"citations":[',
        '"document_count":2',
        '"complete":true',
    ):
        assert said in ran.stdout, f"{said} is missing in\n{ran.stdout}"


def test_every_setting_is_in_the_table() -> None:
    named = set(re.findall(r"`(WEFT_[A-Z_]+)`", README))
    assert {f"WEFT_{name.upper()}" for name in Settings.model_fields} <= named


def test_every_command_that_is_named_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE)) <= targets


def test_every_file_that_is_named_is_there() -> None:
    table = README[README.index("## Where to find what") :]
    for name in re.findall(r"^\| (?:\[([^\]]+)\]\(.*?\)|`([^`]+)`) \|", table, re.MULTILINE):
        assert (ROOT / "".join(name)).exists(), name
