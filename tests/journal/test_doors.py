"""Nobody is let in unasked from another machine, unless that was said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.ports import free_ports
from embedded.stack import Settings, Stack
from fleet import health
from journal.doors import PASSWORD, PASSWORD_FILE, SQL_HINT, check_address, is_loopback, password_from
from journal.errors import InvalidUsage

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    monkeypatch.delenv(PASSWORD_FILE, raising=False)


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("[::1]", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("", False), ("10.0.0.7", False), ("db.example", False),
        ("127.0.0.1.x", False), ("::ffff:10.0.0.1", False),
            ],
)  # fmt: skip
def test_what_only_this_machine_reaches(host: str, ours: bool) -> None:
    assert is_loopback(host) is ours


@pytest.mark.parametrize(
    ("host", "password", "insecure", "opens"),
    [
        ("127.0.0.1", None, False, True), ("0.0.0.0", None, False, False), ("0.0.0.0", "s", False, True),
        ("0.0.0.0", None, True, True), ("10.0.0.7", None, False, False),
    ],
)  # fmt: skip
def test_a_door_without_a_password_opens_for_this_machine_alone(host, password, insecure, opens) -> None:
    if opens:
        return check_address(host, password, insecure, SQL_HINT)
    with pytest.raises(InvalidUsage, match="not loopback") as refused:
        check_address(host, password, insecure, SQL_HINT)
    assert "--insecure" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "command",
    [
        ["adapter", "--host", "0.0.0.0"],
        ["controllers.storage", "--host", "0.0.0.0"],
        ["controllers.compute", "--data", "x", "--flight-host", "10.1.2.3"],
    ],
    ids=lambda command: command[0],
)
def test_a_process_that_would_let_anybody_in_does_not_start(command: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", *command, "--kafka", "127.0.0.1:1"],
        capture_output=True, text=True, timeout=120, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    [line] = ended.stderr.splitlines()
    assert "is not loopback" in line and "--insecure" in line


def test_a_stack_that_would_let_anybody_in_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    def settings(**more: object) -> Settings:
        return Settings(data=tmp_path / "data", host="0.0.0.0", port=19_875, **more)

    with pytest.raises(InvalidUsage, match="not loopback"):
        settings().check()
    assert not (tmp_path / "data").exists()
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    secret.chmod(0o600)
    for more in {"insecure": True}, {"password_file": secret}:
        settings(**more).check()


def test_the_password_is_the_first_line_of_a_file_that_is_closed_to_others(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "secret"
    file.write_text("first\nsecond\n")
    file.chmod(0o600)
    assert password_from(file) == "first"
    monkeypatch.setenv(PASSWORD, "other")
    assert (password_from(None), password_from(file)) == ("other", "first")
    monkeypatch.setenv(PASSWORD_FILE, str(file))
    assert password_from(None) == "first"
    for mode in (0o640, 0o604, 0o660, 0o620):
        file.chmod(mode)
        with pytest.raises(InvalidUsage, match=f"open to others .mode {mode:04o}"):
            password_from(file)
    monkeypatch.setattr("journal.doors.os.geteuid", lambda: file.stat().st_uid + 1)  # as an engine mounts a secret
    file.chmod(0o644)
    assert password_from(file) == "first"
    file.chmod(0o664)
    with pytest.raises(InvalidUsage, match="open to others"):
        password_from(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe"])
def test_a_file_without_a_password_is_no_trust(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(InvalidUsage):
        password_from(file)
    with pytest.raises(InvalidUsage, match="cannot be read"):
        password_from(tmp_path / "none")


def test_a_health_check_says_what_is_wrong_with_its_password(tmp_path: Path) -> None:
    options = health.parser().parse_args(["adapter", "127.0.0.1:1", "--password-file", str(tmp_path / "none")])
    with pytest.raises(InvalidUsage, match="cannot be read"):
        health.check(options)


def test_the_password_is_on_no_command_line(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    file.chmod(0o600)
    stack = Stack(Settings(data=tmp_path / "data", kafka="127.0.0.1:1", port=free_ports(1)[0], password_file=file))
    try:
        specs = [make() for _, make in stack._specs()]
        assert "s3cret" in stack.dsn()
    finally:
        stack.stop()
    assert not [spec.name for spec in specs if "s3cret" in " ".join(spec.argv) or "s3cret" in str(spec.env)]
    assert [spec.name for spec in specs if str(file) in spec.argv] == ["adapter-1"]
