"""What a user may write. Every key here changes what a run does; any other key is refused by name."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr


def _no_boolean(value: Any) -> Any:
    """Pydantic takes true for 1; a user who writes `repeats: true` means something else."""
    if isinstance(value, bool):
        raise ValueError("a number is expected")
    return value


def _no_empty_secret(value: Any) -> Any:
    """`${KEY:-}` is how people say: a key if there is one."""
    return None if value == "" else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Int = Annotated[int, BeforeValidator(_no_boolean)]
Float = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
PositiveInt = Annotated[Int, Field(ge=1)]
PositiveFloat = Annotated[Float, Field(gt=0)]
Text = Annotated[str, Field(min_length=1)]
Protocol = Literal["chat_completions", "completions"]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Generation(Section):
    """Sampling parameters; None is not sent, so that the server's own default holds."""

    temperature: Annotated[Float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Float, Field(ge=0, le=1)] | None = None
    max_tokens: PositiveInt | None = None
    seed: Int | None = None
    """Repeat r of a problem is sent seed + r."""
    stop: Annotated[list[Text], BeforeValidator(_as_list)] | None = None
    frequency_penalty: Annotated[Float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[Float, Field(ge=-2, le=2)] | None = None

    def overlaid_by(self, other: "Generation") -> "Generation":
        return self.model_copy(update=other.model_dump(exclude_none=True))


class Proxy(Section):
    """How requests to the endpoint are made. Named after the process that makes them in larger set-ups."""

    request_timeout: PositiveFloat = 120.0
    """Seconds of one attempt, from sending it to its last byte."""
    max_retries: Annotated[Int, Field(ge=0)] | None = None
    """None: as many as `ModelClient` makes by default."""
    max_concurrent_upstream: PositiveInt | None = None
    """Bound on requests in flight to the endpoint, over all benchmarks. None: the largest of their max_concurrent."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    extra_headers: dict[str, str] = Field(default_factory=dict)


class ApiService(Section):
    """An OpenAI-compatible endpoint that already runs."""

    type: Literal["api"]
    url: Text
    """With or without /v1, /chat/completions or /completions."""
    protocol: Protocol
    model: Text
    api_key: Annotated[SecretStr | None, BeforeValidator(_no_empty_secret)] = None
    max_output_tokens: PositiveInt | None = None
    """Upper bound of generation.max_tokens, and its value where that is not set."""
    generation: Generation = Field(default_factory=Generation)
    proxy: Proxy = Field(default_factory=Proxy)
    ca_bundle: Text | None = None
    """PEM file of the certificate authorities to trust for this endpoint."""
    reasoning_pattern: Text | None = None
    """Regular expression; what it matches is cut from answers of servers that do not separate reasoning."""


class SimpleSolver(Section):
    """One request a problem."""

    type: Literal["simple"]
    service: str
    system_prompt: str | None = None
    """Replaces the benchmark's own; the empty string sends none."""
    generation: Generation = Field(default_factory=Generation)


class CustomSolver(Section):
    """A `Solver` of the user's own."""

    type: Literal["custom"]
    service: str | None = None
    class_path: Text
    config: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the class."""


Solver = Annotated[SimpleSolver | CustomSolver, Field(discriminator="type")]


class Benchmark(Section):
    name: Text
    solver: Solver
    repeats: PositiveInt = 1
    max_problems: PositiveInt | None = None
    max_concurrent: PositiveInt = 32
    timeout: PositiveFloat = 1800.0
    """Seconds for one sample, retries included."""
    shuffle_seed: Int | None = None
    """None is dataset order, so that max_problems takes the first N."""
    problem_range: tuple[Annotated[Int, Field(ge=0)], PositiveInt] | None = None
    """Start and end, the end not included."""
    max_error_rate: Annotated[Float, Field(ge=0, le=1)] = 0.05
    """A larger share of samples that ended in an error makes the run failed."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the environment."""


class LocalCluster(Section):
    type: Literal["local"] = "local"


class Output(Section):
    dir: Text = "./eval_results"
    progress_interval: PositiveFloat = 60.0
    """Seconds between progress lines where there is no terminal."""
    timestamped: bool = False
    """Put each run into a folder of its own below `dir`, named by its run id."""


class EvalConfig(Section):
    services: dict[str, ApiService] = Field(default_factory=dict)
    benchmarks: Annotated[list[Benchmark], Field(min_length=1)]
    cluster: LocalCluster = Field(default_factory=LocalCluster)
    output: Output = Field(default_factory=Output)


def effective_generation(config: EvalConfig, benchmark: Benchmark) -> Generation:
    """What is sent for a benchmark: the solver's parameters win over the service's, field by field."""
    if benchmark.solver.service is None:
        return Generation()
    service = config.services[benchmark.solver.service]
    generation = service.generation
    if isinstance(benchmark.solver, SimpleSolver):
        generation = generation.overlaid_by(benchmark.solver.generation)
    if service.max_output_tokens is None:
        return generation
    limit = min(generation.max_tokens or service.max_output_tokens, service.max_output_tokens)
    return generation.model_copy(update={"max_tokens": limit})
