"""What is made of the facts: pure judgement."""

from dataclasses import replace

import pytest

from nemotron.doctor import probe
from nemotron.doctor.clock import Reading, clock_findings
from nemotron.doctor.containers import runtime_findings
from nemotron.doctor.endpoint import endpoint_findings
from nemotron.doctor.examination import Check, examine
from nemotron.doctor.facts import Facts, Folder, Reached
from nemotron.doctor.finding import fail, ok
from nemotron.doctor.storage import folder_findings, quota_findings
from nemotron.errors import SubmitError
from nemotron.profiles import SlurmProfile

GIB = 1 << 30
QUOTA = """\
Disk quotas for user me (uid 1000):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
     nas:/home  9800000  9000000 10000000   6days    1234       0       0
"""
LUSTRE = """\
Disk quotas for usr me (uid 1000):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
        /lustre  309200* 307200  309200       -   10101   10240   11264       -
"""


@pytest.fixture
def facts() -> Facts:
    return replace(Facts.of(probe.answers({})), host="n1", user="me")


def severities(findings) -> list[tuple[str, str]]:
    return [(str(finding.severity), finding.code) for finding in findings]


class TestStorage:
    @pytest.mark.parametrize(
        ("free", "found"),
        [(100 * GIB, []), (5 * GIB, [("warn", "space")]), (GIB // 2, [("fail", "space")])],
    )
    def test_room_is_scarce_or_too_little(self, facts, free, found):
        facts = replace(facts, folders={"/r": Folder(True, "/r", "", free, None)})
        assert severities(folder_findings("Results folder", "/r", "EVAL_RESULTS_DIR", facts))[1:] == found

    def test_a_file_system_may_run_out_of_files_before_it_runs_out_of_room(self, facts):
        facts = replace(facts, folders={"/r": Folder(True, "/r", "", 100 * GIB, 12)})
        assert severities(folder_findings("Results folder", "/r", "EVAL_RESULTS_DIR", facts))[1:] == [("warn", "files")]

    def test_what_is_in_the_way_is_named(self, facts):
        facts = replace(facts, folders={"/r/x": Folder(False, "/r", "Read-only file system", GIB, None)})
        (finding,) = folder_findings("Results folder", "/r/x", "EVAL_RESULTS_DIR", facts)
        assert str(finding) == (
            "Results folder /r/x is not there, and /r cannot be written on n1 (Read-only file system): "
            "choose another EVAL_RESULTS_DIR, or make it one that me may write to"
        )

    def test_quotas_of_both_kinds_of_table_are_read(self):
        assert severities(quota_findings(QUOTA)) == [("warn", "quota")]
        assert severities(quota_findings(LUSTRE)) == [("fail", "quota"), ("warn", "quota")]
        assert severities(quota_findings("quota: no file systems\n")) == []


class TestClocks:
    @pytest.mark.parametrize(
        ("there", "severity"), [(1003.0, "ok"), (1000.0, "ok"), (1020.0, "warn"), (985.0, "warn"), (2000.0, "fail")]
    )
    def test_only_what_the_question_did_not_take_is_skew(self, there, severity):
        (finding,) = clock_findings([Reading("n1", there, 1000.0, 1004.0)])
        assert finding.severity == severity


class TestEndpoint:
    @pytest.mark.parametrize(
        ("reached", "found"),
        [
            (Reached("answer", "", 200, ("m",)), [("ok", "")]),
            (Reached("answer", "Not Found", 404, ()), [("ok", "")]),
            (Reached("answer", "", 200, ("m2", "other")), [("ok", ""), ("fail", "endpoint-model")]),
            (Reached("answer", "bad key", 401, ()), [("fail", "endpoint-refused")]),
            (Reached("answer", "", 503, ()), [("warn", "endpoint-loading")]),
            (Reached("name", "Name or service not known", None, ()), [("fail", "endpoint-name")]),
            (Reached("connection", "Connection refused", None, ()), [("fail", "endpoint-connection")]),
            (Reached("tls", "self-signed certificate", None, ()), [("fail", "endpoint-tls")]),
            (Reached("http", "Tunnel connection failed", None, ()), [("fail", "endpoint-http")]),
        ],
    )
    def test_every_step_has_a_finding_of_its_own(self, facts, reached, found):
        model = {"id": "m", "endpoint_url": "http://a/v1", "endpoint_url_variable": None, "api_key_name": "TOKEN_OF_A"}
        assert severities(endpoint_findings(model, replace(facts, endpoint=reached), is_here=False)) == found

    def test_the_nearest_name_that_is_served_is_named(self, facts):
        model = {"id": "m1", "endpoint_url": "http://a/v1", "endpoint_url_variable": None, "api_key_name": None}
        facts = replace(facts, endpoint=Reached("answer", "", 200, ("m2", "other")))
        assert [f.action for f in endpoint_findings(model, facts, is_here=False)][1] == "set EVAL_MODEL_HANDLE to m2"

    def test_loopback_means_the_node_itself(self, facts):
        url = "http://localhost:8000/v1/completions"
        model = {"id": "m", "endpoint_url": url, "endpoint_url_variable": None, "api_key_name": None}
        facts = replace(facts, endpoint=Reached("connection", "Connection refused", None, ()))
        (finding,) = endpoint_findings(model, facts, is_here=False)
        assert "the server's own host name" in finding.action


class TestRuntime:
    def test_a_login_node_needs_no_container_tool(self, facts):
        facts = replace(facts, commands={"apptainer": ""})
        profile = SlurmProfile(container_runtime="apptainer")
        assert severities(runtime_findings(profile, facts, is_node=False)) == [("warn", "runtime")]
        assert severities(runtime_findings(profile, facts, is_node=True)) == [("fail", "runtime")]

    def test_pyxis_is_a_plugin_that_srun_may_lack(self, facts):
        profile, facts = SlurmProfile(), replace(facts, commands={"srun": "/usr/bin/srun"}, has_pyxis=False)
        (finding,) = runtime_findings(profile, facts, is_node=True)
        assert "has no pyxis" in finding.what
        assert severities(runtime_findings(profile, replace(facts, has_pyxis=True), is_node=True)) == [("ok", "")]


class TestExamination:
    def test_a_failure_stops_only_what_needs_it(self):
        def unreachable():
            raise SubmitError("no answer")
            yield

        checks = [
            Check("a", unreachable),
            Check("b", lambda: iter([ok("fine")]), ("a",)),
            Check("c", lambda: iter([ok("fine")])),
            Check("d", lambda: iter([ok("fine")]), ("b", "c")),
        ]
        found = [(one.check, str(one.finding.severity), one.finding.what) for one in examine(checks)]
        assert found == [
            ("a", "fail", "no answer"),
            ("b", "skip", "not looked at, because a failed"),
            ("c", "ok", "fine"),
            ("d", "skip", "not looked at, because b failed"),
        ]

    def test_all_findings_of_a_check_are_told(self):
        check = Check("a", lambda: iter([fail("x", "do this"), ok("y")]))
        assert [one.finding.what for one in examine([check])] == ["x", "y"]
