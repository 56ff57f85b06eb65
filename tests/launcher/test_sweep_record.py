"""Sweeps as they are remembered."""

import pytest

from nemotron.sweep.record import Place, Sweep, find_sweep, remember_sweep


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"places": [1]}'])
def test_a_record_that_cannot_be_read_hides_no_other(tmp_path, content):
    environ = {"NEMOTRON_HOME": str(tmp_path), "HOME": str(tmp_path)}
    sweep = Sweep.of("cluster", [Place("a", "/results/a")], "2026-11-30T00:00:00+00:00")
    remember_sweep(sweep, environ)
    (written,) = tmp_path.rglob(f"{sweep.id}.json")
    written.with_name("other.json").write_text(content)
    assert find_sweep(None, environ) == sweep
