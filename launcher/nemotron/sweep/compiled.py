"""Points to jobs; whatever can be refused is refused here, before any of them is submitted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from nemotron.catalog import Step
from nemotron.errors import UsageError
from nemotron.launch import compile_step
from nemotron.request import CompiledJob, GeneratedFile, Request
from nemotron.sweep.points import Point

SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class SweptJob:
    point: str
    compiled: CompiledJob

    @property
    def output_dir(self) -> str:
        return self.compiled.job.output_dir


def compile_points(step: Step, points: Sequence[Point], request_of: Callable[[Point], Request]) -> list[SweptJob]:
    jobs, problems = [], []
    for point in points:
        try:
            jobs.append(SweptJob(point.name, _compiled(step, point, request_of(point))))
        except UsageError as error:
            problems.append(f"{point.name}: {error}")
    if problems:
        raise UsageError("\n".join(_shortened(problems)))
    _check_folders(jobs)
    return jobs


def _compiled(step: Step, point: Point, request: Request) -> CompiledJob:
    compiled = compile_step(step, request)
    if isinstance(compiled, GeneratedFile):
        raise UsageError(f"{step.id} writes a file, and is no job: leave -m and --sweep out.")
    return compiled if point.chooses_folder else _below(compiled, point.name)


def _below(compiled: CompiledJob, name: str) -> CompiledJob:
    """In a folder of its own below the one that all points name."""
    folder = str(PurePosixPath(compiled.job.output_dir) / name)
    plan = {**compiled.job.plan, "output_dir": folder}
    return replace(compiled, job=replace(compiled.job, output_dir=folder, plan=plan))


def _check_folders(jobs: Sequence[SweptJob]) -> None:
    """Also on storage that does not tell capitals apart."""
    owners: dict[str, SweptJob] = {}
    for job in jobs:
        earlier = owners.setdefault(job.output_dir.casefold(), job)
        if earlier is not job:
            raise UsageError(
                f"Points {earlier.point!r} and {job.point!r} would both write to {job.output_dir}: give each an "
                "output_dir of its own, or leave it out, and each gets a folder below EVAL_RESULTS_DIR."
            )


def _shortened(problems: list[str]) -> list[str]:
    more = len(problems) - SHOWN_PROBLEMS
    return problems[:SHOWN_PROBLEMS] + ([f"{more} more points have problems."] if more > 0 else [])
