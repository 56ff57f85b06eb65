from typing import Any

import pytest

from nemo_evaluator.environments import EvalEnvironment, SeedResult, VerifyResult, register


class Echo(EvalEnvironment):
    """Verifies nothing, but shows what it was given."""

    def __len__(self) -> int:
        return 1

    async def seed(self, idx: int) -> SeedResult:
        return SeedResult("Say yes", "yes", {})

    async def verify(self, response: str, expected: str, **metadata: Any) -> VerifyResult:
        return VerifyResult(float(response == expected), metadata=metadata)


async def test_the_example_of_the_api_page_runs_unchanged() -> None:
    @register("my_own_benchmark")
    class MyBenchmark(EvalEnvironment):
        def __init__(self):
            super().__init__()
            self._dataset = [("2+2?", "4")]

        def __len__(self) -> int:
            return len(self._dataset)

        async def seed(self, idx: int) -> SeedResult:
            question, answer = self._dataset[idx]
            return SeedResult(prompt=question, expected_answer=answer, metadata={"category": "sums"})

        async def verify(self, response: str, expected: str, **metadata) -> VerifyResult:
            return VerifyResult(reward=float(response.strip() == expected), metadata=metadata)

    environment = MyBenchmark()
    await environment.prepare()
    verdict = await environment.verify_sample(await environment.seed(0), " 4")
    await environment.close()

    assert environment.name == "my_own_benchmark"
    assert await environment.dataset_size() == 1
    assert (verdict.reward, verdict.metadata) == (1.0, {"category": "sums"})


def test_an_unregistered_environment_has_the_name_of_its_class() -> None:
    assert Echo().name == "Echo"


async def test_an_environment_without_a_gold_response_says_so() -> None:
    assert await Echo().gold_response(0) is None


@pytest.mark.parametrize("key", ["response", "expected", "self"])
async def test_a_column_named_like_a_parameter_gets_an_underscore(key: str) -> None:
    verdict = await Echo().verify_sample(SeedResult("", "yes", {key: 1, "category": 2}), "yes")

    assert verdict.reward == 1.0
    assert verdict.metadata == {f"{key}_": 1, "category": 2}


async def test_the_underscore_hides_no_other_column() -> None:
    verdict = await Echo().verify_sample(SeedResult("", "yes", {"response": 1, "response_": 2}), "yes")

    assert verdict.metadata == {"response__": 1, "response_": 2}


async def test_a_sandbox_column_is_renamed_only_where_it_is_a_parameter() -> None:
    class Sandboxed(Echo):
        async def verify(self, response: str, expected: str, sandbox: Any = None, **metadata: Any) -> VerifyResult:
            return VerifyResult(1.0, metadata={"parameter": sandbox, **metadata})

    seed = SeedResult("", "", {"sandbox": "column"})

    assert (await Echo().verify_sample(seed, "")).metadata == {"sandbox": "column"}
    assert (await Sandboxed().verify_sample(seed, "")).metadata == {"parameter": None, "sandbox_": "column"}


async def test_a_verify_without_keywords_gets_only_what_it_names() -> None:
    class Narrow(Echo):
        async def verify(self, answer: str, gold: str, category: str = "none") -> VerifyResult:
            return VerifyResult(1.0, metadata={"category": category})

    seed = SeedResult("", "", {"category": "sums", "level": 3, "gold": "x"})

    assert (await Narrow().verify_sample(seed, "")).metadata == {"category": "sums"}
