"""The map in core/README.md is true: no room of core imports a room of its own layer or of a higher one."""

import ast
import re
from itertools import chain
from pathlib import Path

CORE = Path(__file__).parents[1] / "core"


def layers() -> dict[str, int]:
    """Reads each room's layer from the table in core/README.md."""
    rows = re.findall(r"^\| (\d+) \| ((?:`\w+` ?)+)\|", (CORE / "README.md").read_text(), re.MULTILINE)
    return {room: int(layer) for layer, rooms in rows for room in re.findall(r"`(\w+)`", rooms)}


def room_of(module: Path) -> str:
    return module.relative_to(CORE).parts[0].removesuffix(".py")


def imported_rooms(module: Path) -> set[str]:
    """Lists the rooms of core that a module imports, also inside functions."""
    nodes = list(ast.walk(ast.parse(module.read_text())))
    names = chain(
        (node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)),
        (alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names),
    )
    return {name.split(".")[1] for name in names if name.startswith("core.")}


def test_the_map_names_every_room_of_core_and_no_other() -> None:
    rooms = {room_of(module) for module in CORE.rglob("*.py")} - {"__init__"}
    assert layers().keys() == rooms


def test_no_module_imports_a_room_of_its_own_layer_or_of_a_higher_one() -> None:
    layer = layers()
    wrong = [
        f"{module.relative_to(CORE)} (layer {layer[room_of(module)]}) imports {room} (layer {layer[room]})"
        for module in CORE.rglob("*.py")
        if module.parent != CORE or module.name != "__init__.py"
        for room in imported_rooms(module) - {room_of(module)}
        if layer[room] >= layer[room_of(module)]
    ]
    assert not wrong, wrong


def test_core_imports_nothing_of_the_functions_the_infrastructure_or_the_tests() -> None:
    text = "".join(module.read_text() for module in CORE.rglob("*.py"))
    assert not re.search(r"^\s*(from|import) (functions|infra|tests)\b", text, re.MULTILINE)


def test_no_two_public_classes_of_core_have_the_same_name() -> None:
    modules = list(CORE.rglob("*.py"))
    classes = [
        node.name
        for module in modules
        for node in ast.parse(module.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert not {name for name in classes if classes.count(name) > 1}
