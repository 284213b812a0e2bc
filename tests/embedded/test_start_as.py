"""Whoever runs a stack may say what its processes are really started as; nothing else changes."""

from __future__ import annotations

from pathlib import Path

from embedded.child import ChildSpec
from embedded.ports import free_ports
from embedded.stack import Settings, Stack


def specs(tmp_path: Path, start_as) -> dict[str, ChildSpec]:
    """Every process after the broker, as it would be started; nothing is."""
    stack = Stack(
        Settings(data=tmp_path / "data", kafka="127.0.0.1:1", port=free_ports(1)[0], start_as=start_as),
    )
    try:
        return {name: make() for name, make in stack._specs()}
    finally:
        stack.stop()


def test_without_a_hook_processes_are_what_they_are(tmp_path: Path) -> None:
    found = specs(tmp_path, None)
    assert set(found) == {"compute", "storage", "subscriber-storage", "subscriber-compute-default", "adapter-1"}
    assert all(spec.argv[1:3] == ["-P", "-m"] for spec in found.values())


def test_a_hook_sees_each_process_and_chooses_its_command_and_environment(tmp_path: Path) -> None:
    def elsewhere(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        if not name.startswith("adapter-"):
            return argv, env
        return ["env", "--", *argv, "--host", "10.0.0.7"], {**env, "LD_PRELOAD": "clock.so"}

    plain, found = specs(tmp_path / "plain", None), specs(tmp_path / "changed", elsewhere)
    adapter = found["adapter-1"]
    assert adapter.argv[:2] == ["env", "--"] and adapter.argv[-2:] == ["--host", "10.0.0.7"]
    assert adapter.env == {**plain["adapter-1"].env, "LD_PRELOAD": "clock.so"}
    assert (adapter.ready_timeout_s, adapter.log.name) == (plain["adapter-1"].ready_timeout_s, "adapter-1.log")
    assert list(found["storage"].argv) == list(plain["storage"].argv)
    assert found["storage"].env == plain["storage"].env


def test_a_hook_is_asked_for_every_life(tmp_path: Path) -> None:
    lives: list[str] = []

    def count(name: str, argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        lives.append(name)
        return [*argv, f"--life={lives.count(name)}"], env

    stack = Stack(Settings(data=tmp_path / "data", kafka="127.0.0.1:1", port=free_ports(1)[0], start_as=count))
    try:
        make = dict(stack._specs())["storage"]
        assert [make().argv[-1], make().argv[-1]] == ["--life=1", "--life=2"]
    finally:
        stack.stop()
