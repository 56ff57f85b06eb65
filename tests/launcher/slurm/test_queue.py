"""How jobs are, where Slurm is late, forgetful, down, or uses its numbers again. A job's own marker decides then."""

import getpass
import json
import time
from pathlib import Path

import pytest

from nemotron.job import Phase
from nemotron.slurm import evidence
from nemotron.slurm.queue import states_of

LONG_AGO = 7200.0


@pytest.fixture
def state(session):
    return lambda ref: states_of(session, [ref])[ref]


def mark(ref, *, is_over, exit_code=None, reason="", restarts=0, age=0.0):
    marker = {"job_id": ref.job_id, "restarts": restarts, "is_over": is_over, "exit_code": exit_code}
    content = marker | {"reason": reason, "updated": time.time() - age}
    (Path(ref.folder) / "marker.json").write_text(json.dumps(content))


def aged(ref, seconds=LONG_AGO):
    """The same job, submitted earlier."""
    return type(ref)(ref.job_id, ref.user, ref.name, ref.submitted - seconds, ref.folder, ref.cluster)


class TestTheController:
    @pytest.mark.parametrize("word", ["PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"])
    def test_a_job_that_waits(self, job, state, word):
        assert state(job(word)).phase is Phase.QUEUED

    @pytest.mark.parametrize("word", ["RUNNING", "SUSPENDED", "STOPPED", "STAGE_OUT", "COMPLETING"])
    def test_a_job_at_work(self, job, state, word):
        assert state(job(word)).phase is Phase.RUNNING

    def test_a_sequence_with_a_preemption_is_a_success_in_the_end(self, fake, job, state):
        ref = job("PENDING")
        lived = ["PENDING", "RUNNING", "PREEMPTED", "PENDING", "RUNNING", "COMPLETED"]
        fake.plays(int(ref.job_id), "PENDING", "RUNNING", "COMPLETING", "PENDING", "RUNNING", "COMPLETED")
        seen = [state(ref) for _ in lived]
        assert [state.phase for state in seen] == [
            Phase.QUEUED,
            Phase.RUNNING,
            Phase.RUNNING,
            Phase.QUEUED,
            Phase.RUNNING,
            Phase.COMPLETED,
        ]

    def test_a_preempted_job_is_not_over_while_slurm_may_start_it_again(self, fake, job, state):
        ref = job("RUNNING")
        fake.become(int(ref.job_id), "PREEMPTED")
        fake.become(int(ref.job_id), "COMPLETING")
        assert not state(ref).phase.is_final
        fake.become(int(ref.job_id), "PENDING", reason="BeginTime")
        waiting = state(ref)
        assert (waiting.phase, waiting.restarts) == (Phase.QUEUED, 1)
        assert "after a restart" in waiting.reason

    def test_one_that_is_preempted_for_good_is(self, fake, job, state):
        ended = state(job("PREEMPTED"))
        assert ended.phase is Phase.STOPPED
        assert "preempted" in ended.reason

    def test_the_time_between_end_and_accounting_is_no_failure(self, fake, job, state):
        fake.turn(accounting="stale")
        assert state(job("FAILED", exit="1:0")).phase is Phase.RUNNING

    def test_success_needs_no_explanation(self, fake, job, state):
        fake.turn(accounting="stale")
        assert state(job("COMPLETED")).phase is Phase.COMPLETED

    def test_without_accounting_the_controllers_word_is_the_last(self, fake, job, state):
        fake.turn(accounting="off")
        state = state(job("FAILED", exit="75:0"))
        assert (state.phase, state.exit_code) == (Phase.STOPPED, 75)

    def test_a_node_that_never_ends_its_tidying_up_holds_nobody_up(self, fake, job, state):
        ref = job("RUNNING")
        fake.become(int(ref.job_id), "COMPLETING")
        mark(ref, is_over=True, exit_code=0, age=evidence.ACCOUNTING_SECONDS - 30)
        assert state(ref).phase is Phase.RUNNING
        mark(ref, is_over=True, exit_code=0, age=evidence.ACCOUNTING_SECONDS + 1)
        assert state(ref).phase is Phase.COMPLETED

    def test_who_cancelled_a_job_is_waited_for_while_its_node_cleans_up(self, fake, job, state):
        ref = job("RUNNING")
        fake.become(int(ref.job_id), "CANCELLED")
        fake.become(int(ref.job_id), "COMPLETING")
        assert not state(ref).phase.is_final
        fake.become(int(ref.job_id), "CANCELLED", by="0")
        assert state(ref).reason.startswith("cancelled by root")


class TestOutOfTheQueue:
    def test_accounting_has_the_rest(self, fake, job, state):
        ref = job("FAILED", exit="2:0")
        fake.forget(int(ref.job_id))
        assert state(ref).exit_code == 2

    def test_accounting_may_not_know_its_name_yet(self, fake, job, state):
        ref = job("FAILED", exit="2:0")
        fake.forget(int(ref.job_id))
        fake.turn(accounting="nameless")
        assert state(ref).exit_code == 2

    def test_not_yet_in_accounting_is_not_failed(self, fake, job, state):
        ref = job("RUNNING")
        fake.forget(int(ref.job_id))
        fake.turn(accounting="late")
        assert (state(ref).phase, state(ref).reason) == (Phase.UNKNOWN, "Slurm does not show it yet")

    @pytest.mark.parametrize("accounting", ["late", "stale", "off", "down"])
    def test_the_marker_decides_where_accounting_does_not(self, fake, job, state, accounting):
        ref = job("RUNNING")
        fake.forget(int(ref.job_id))
        fake.turn(accounting=accounting)
        mark(ref, is_over=True, exit_code=1, reason="hellaswag failed", restarts=2, age=90)
        found = state(ref)
        assert (found.phase, found.exit_code, found.reason) == (Phase.FAILED, 1, "hellaswag failed")
        assert found.restarts == 2

    def test_it_decides_too_where_there_is_no_sacct(self, fake, job, session, state):
        ref = job("COMPLETED")
        fake.forget(int(ref.job_id))
        fake.lacks("sacct")
        session._environ["PATH"] = f"{fake.bin}:/none"  # nor another one
        mark(ref, is_over=True, exit_code=0)
        assert state(ref).phase is Phase.COMPLETED

    def test_a_failure_waits_some_seconds_for_its_cause(self, fake, job, state):
        ref = job("RUNNING")
        fake.forget(int(ref.job_id))
        fake.turn(accounting="late")
        mark(ref, is_over=True, exit_code=137)
        assert state(ref).phase is Phase.RUNNING

    def test_long_forgotten_by_all_but_its_folder(self, fake, job, state):
        ref = job("COMPLETED")
        fake.forget(int(ref.job_id), accounting=True)
        mark(ref, is_over=True, exit_code=0, age=LONG_AGO)
        assert state(aged(ref)).phase is Phase.COMPLETED

    @pytest.mark.parametrize(("has_begun", "words"), [(True, "no word of its end"), (False, "no sign of a start")])
    def test_long_forgotten_by_all(self, fake, job, state, has_begun, words):
        ref = job("COMPLETED")
        fake.forget(int(ref.job_id), accounting=True)
        if has_begun:
            mark(ref, is_over=False)
        found = state(aged(ref))
        assert found.phase is Phase.UNKNOWN
        assert words in found.reason

    def test_half_a_marker_is_none(self, fake, job, state):
        ref = job("RUNNING")
        fake.forget(int(ref.job_id), accounting=True)
        (Path(ref.folder) / "marker.json").write_text('{"job_id": "1", "rest')
        assert state(ref).phase is Phase.UNKNOWN


class TestWhenTheControllerIsDown:
    def test_accounting_still_says_what_has_ended(self, fake, job, state):
        ref = job("TIMEOUT")
        fake.turn(controller="down")
        assert "time limit" in state(ref).reason

    @pytest.mark.parametrize(("word", "phase"), [("RUNNING", Phase.RUNNING), ("PENDING", Phase.QUEUED)])
    def test_and_what_has_not(self, fake, job, state, word, phase):
        ref = job(word)
        fake.turn(controller="down")
        found = state(ref)
        assert found.phase is phase
        assert "Unable to contact slurm controller" in found.reason

    def test_a_preempted_job_may_come_back(self, fake, job, state):
        ref = job("PREEMPTED")
        mark(ref, is_over=True, exit_code=75)
        fake.turn(controller="down")
        assert state(ref).phase is Phase.QUEUED

    @pytest.mark.parametrize(("has_begun", "phase"), [(True, Phase.RUNNING), (False, Phase.QUEUED)])
    def test_without_accounting_the_folder_tells(self, fake, job, state, has_begun, phase):
        ref = job("RUNNING")
        fake.turn(controller="down", accounting="down")
        if has_begun:
            mark(ref, is_over=False)
        assert state(ref).phase is phase


class TestUsedNumbers:
    def test_anothers_job_with_the_same_number_is_not_ours(self, fake, job, state):
        ours = job("COMPLETED", id=7)
        fake.forget(7)
        fake.add("theirs", "RUNNING", id=7, user="somebody")
        assert state(ours).phase is Phase.COMPLETED

    def test_nor_is_an_earlier_one_of_the_same_user(self, fake, job, state):
        fake.add("earlier", "FAILED", id=7, submit=time.time() - 40 * 86400, exit="1:0")
        fake.forget(7)
        ours = job("COMPLETED", id=7)
        fake.forget(7)
        assert state(ours).phase is Phase.COMPLETED

    def test_nor_one_that_happens_to_have_its_name(self, fake, job, state):
        fake.add("mine", "FAILED", id=7, submit=time.time() - 40 * 86400, exit="1:0")
        ref = job("COMPLETED", id=8)
        ours = type(ref)("7", *[getattr(ref, name) for name in ("user", "name", "submitted", "folder")])
        assert state(ours).phase is Phase.UNKNOWN


class TestMany:
    def test_one_squeue_and_one_sacct_for_all(self, fake, job, session):
        refs = [job(word, name=f"job-{n}") for n, word in enumerate(["RUNNING", "COMPLETED", "FAILED"] * 10)]
        states = states_of(session, refs)
        assert [states[ref].phase for ref in refs] == [Phase.RUNNING, Phase.COMPLETED, Phase.FAILED] * 10
        assert (len(fake.calls("squeue")), len(fake.calls("sacct"))) == (1, 1)

    def test_accounting_is_not_asked_about_jobs_at_work(self, fake, job, session):
        states_of(session, [job("RUNNING"), job("PENDING", name="other")])
        assert not fake.calls("sacct")

    def test_accounting_is_asked_as_far_back_as_needed(self, fake, job, session):
        ref = aged(job("COMPLETED"), 10 * 86400)
        states_of(session, [ref])
        assert "--starttime=now-265hours" in fake.calls("sacct")[0].argv
        assert f"--user={getpass.getuser()}" in fake.calls("sacct")[0].argv

    def test_each_cluster_is_asked_about_its_own(self, fake, job, session):
        refs = [job("RUNNING", cluster="one"), job("RUNNING", name="b", cluster="two")]
        states_of(session, refs)
        assert [call.argv[0] for call in fake.calls("squeue")] == ["--clusters=one", "--clusters=two"]

    def test_nobody_is_asked_about_nothing(self, fake, session):
        assert states_of(session, []) == {}
        assert not fake.calls("squeue")

    def test_a_banner_and_another_language_change_nothing(self, fake, job, state):
        fake.turn(banner="Willkommen auf dem Cluster\n12 Jobs warten | heute")
        assert state(job("RUNNING")).phase is Phase.RUNNING
        assert fake.calls("squeue")[0].environ["LC_ALL"] == "C"
