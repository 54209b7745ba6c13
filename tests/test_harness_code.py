"""A change of the harness that can change results comes with a raised PROTOCOL."""

from __future__ import annotations

import json

import harness_code


def test_the_harness_is_that_of_its_protocol():
    assert not harness_code.complaint()


def test_a_change_without_a_raised_protocol_is_told(tmp_path, monkeypatch):
    known = json.loads(harness_code.KNOWN.read_text())
    known["code"]["shots.py"] = known["code"]["adapters/block.py"] = "0" * 64
    changed = tmp_path / "harness_code.json"
    changed.write_text(json.dumps(known))
    monkeypatch.setattr(harness_code, "KNOWN", changed)
    assert harness_code.complaint() == (
        "changed without a raised PROTOCOL: adapters/block.py, shots.py"
    )
    monkeypatch.setattr(harness_code, "PROTOCOL", known["protocol"] + 1)
    assert "PROTOCOL was raised" in harness_code.complaint()
