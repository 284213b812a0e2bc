"""``python -m fleet.bucket``: what it says and how it ends."""

from __future__ import annotations

import json

import pytest

from embedded.ports import free_ports
from fleet.bucket import main


def test_it_makes_a_bucket_and_finds_it_made(s3, capsys: pytest.CaptureFixture) -> None:
    url = s3.url("fresh", "/p")
    assert [main(["--store", url]), main(["--store", url])] == [0, 0]
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["made"] for each in told] == [True, False]


@pytest.mark.parametrize(("url", "code"), [("file:///store", 2), ("s3://k:secret@b?region=r", 2), (None, 1)])
def test_what_cannot_be_ends_with_its_code(s3, capsys: pytest.CaptureFixture, url: str | None, code: int) -> None:
    [nobody] = free_ports(1)
    assert main(["--store", url or s3.url("fresh", port=nobody)]) == code
    assert "secret" not in capsys.readouterr().out
