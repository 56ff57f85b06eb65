from nemo_evaluator.config.model import Generation, effective_generation
from tests.harness.config.conftest import SMALLEST, Load


def generation(load: Load, *overrides: str) -> Generation:
    config = load(SMALLEST, *overrides).config
    return effective_generation(config, config.benchmarks[0])


def test_solver_wins_over_service_field_by_field(load: Load) -> None:
    assert generation(
        load,
        "services.m.generation={temperature: 0.2, top_p: 0.9}",
        "benchmarks[0].solver.generation={temperature: 0, seed: 3}",
    ) == Generation(temperature=0.0, top_p=0.9, seed=3)


def test_nothing_is_sent_that_nobody_asked_for(load: Load) -> None:
    assert generation(load).model_dump(exclude_none=True) == {}


def test_output_limit_of_the_service_bounds_and_fills_max_tokens(load: Load) -> None:
    limit = "services.m.max_output_tokens=100"
    assert generation(load, limit).max_tokens == 100
    assert generation(load, limit, "services.m.generation.max_tokens=50").max_tokens == 50
    assert generation(load, limit, "benchmarks[0].solver.generation.max_tokens=500").max_tokens == 100


def test_custom_solver_gets_the_generation_of_its_service(load: Load) -> None:
    with_service = "benchmarks[0].solver={type: custom, class_path: 'mine:Solver', service: m}"
    without = "benchmarks[0].solver={type: custom, class_path: 'mine:Solver'}"
    assert generation(load, "services.m.generation.seed=1", with_service) == Generation(seed=1)
    assert generation(load, "services.m.generation.seed=1", without) == Generation()
