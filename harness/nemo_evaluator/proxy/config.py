"""`adapter_config`: what the proxy does, by the names that users of the published adapter know."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nemo_evaluator.config.keypath import did_you_mean
from nemo_evaluator.errors import UsageError
from nemo_evaluator.proxy.chain import flattened

Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]

LEFT_OUT = {
    "mode": "the proxy always runs beside the harness",
    "discovery": "interceptors are files of nemo_evaluator/proxy/interceptors",
    "post_eval_hooks": "reports are made by `nel report`",
    "generate_html_report": "reports are made by `nel report`",
    "html_report_size": "reports are made by `nel report`",
    "include_json": "replies stay as they are",
    "use_nvcf": "give the endpoint's own URL",
    "use_omni_info": "give the endpoint's own URL",
}
"""Keys of the published adapter that have no meaning here, and what to do instead."""
EMPTY_CHAIN: tuple[str, list[Any]] = ("interceptors", [])
"""The same as none."""


class AdapterConfig(BaseModel):
    """Every key here changes what the proxy does; null is the same as leaving a key out."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    endpoint_type: Text | None = None
    output_dir: Text | None = None
    """For logs and the cache; None is `adapter` in the task's folder."""

    use_caching: bool = True
    caching_dir: Text | None = None
    reuse_cached_responses: bool = True
    """False asks everything again and keeps the new answers."""

    use_request_logging: bool = False
    max_logged_requests: Count | None = None
    """None has no limit."""
    use_response_logging: bool = False
    max_logged_responses: Count | None = None
    save_requests: bool = False
    max_saved_requests: Count | None = None
    save_responses: bool = False
    max_saved_responses: Count | None = None
    log_failed_requests: bool = False

    tracking_requests_stats: bool = True
    """Statistics of the replies in eval_factory_metrics.json, where the proxy runs at all."""
    logging_aggregated_stats_interval: PositiveCount = 100
    """Requests between two lines of statistics in the log."""
    use_progress_tracking: bool = False
    progress_tracking_url: Text | None = None
    """None writes only the file `progress` beside the logs."""
    progress_tracking_interval: PositiveCount = 1

    use_system_prompt: bool = False
    custom_system_prompt: str | None = None
    system_prompt_strategy: Literal["prepend", "append", "replace"] = "prepend"
    """Where it stands to a system message of the harness's own."""
    params_to_add: dict[str, Any] = Field(default_factory=dict)
    params_to_remove: list[str] = Field(default_factory=list)
    params_to_rename: dict[str, str] = Field(default_factory=dict)
    headers_to_remove: list[str] = Field(default_factory=list)
    headers_to_rename: dict[str, str] = Field(default_factory=dict)
    headers_to_add: dict[str, str] = Field(default_factory=dict, repr=False)

    use_reasoning: bool = False
    """Separate reasoning; `process_reasoning_traces` is the same by its other name."""
    process_reasoning_traces: bool = False
    start_reasoning_token: str | None = None
    """None: the template of the model writes it, only the end is seen."""
    end_reasoning_token: Text = "</think>"
    include_if_reasoning_not_finished: bool = True
    """False empties an answer whose reasoning never ended."""
    track_reasoning: bool = True
    """Count reasoning in eval_factory_metrics.json."""
    use_raise_client_errors: bool = False
    """Stop the task at the first refusal (4xx) that asking again cannot mend."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "AdapterConfig":
        """Raises UsageError, in one line, for a key that is unknown or a value that does not fit."""
        given = {key: value for key, value in values.items() if value is not None and (key, value) != EMPTY_CHAIN}
        if "interceptors" in given:
            given = flattened(given)
        for key in given:
            if key in LEFT_OUT:
                raise UsageError(f"adapter_config.{key} has no meaning here: {LEFT_OUT[key]}. Leave it out.")
            if key not in cls.model_fields:
                near = did_you_mean(key, cls.model_fields)
                raise UsageError(f"adapter_config has no key {key!r}{near}; it has {', '.join(cls.model_fields)}.")
        try:
            config = cls.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(f"adapter_config.{where}: {first['msg']}, not {first['input']!r}.") from None
        config._check()
        return config

    def _check(self) -> None:
        if self.use_system_prompt and not self.custom_system_prompt:
            raise UsageError("adapter_config.use_system_prompt needs custom_system_prompt: give the text.")

    @property
    def separates_reasoning(self) -> bool:
        return self.use_reasoning or self.process_reasoning_traces

    @property
    def requests_kept(self) -> int | None:
        return kept((self.use_request_logging, self.max_logged_requests), (self.save_requests, self.max_saved_requests))

    @property
    def responses_kept(self) -> int | None:
        return kept(
            (self.use_response_logging, self.max_logged_responses), (self.save_responses, self.max_saved_responses)
        )

    @property
    def modifies_payload(self) -> bool:
        return bool(self.params_to_add or self.params_to_remove or self.params_to_rename)

    @property
    def is_needed(self) -> bool:
        """False when a harness may as well talk to the endpoint itself."""
        return any(
            (
                self.use_caching,
                self.requests_kept != 0,
                self.responses_kept != 0,
                self.log_failed_requests,
                self.use_progress_tracking,
                self.use_system_prompt,
                self.modifies_payload,
                self.headers_to_add,
                self.headers_to_remove,
                self.headers_to_rename,
                self.separates_reasoning,
                self.use_raise_client_errors,
            )
        )


def kept(*wishes: tuple[bool, int | None]) -> int | None:
    """The larger of the limits that are switched on: 0 for none, None for no limit."""
    limits = [limit for is_on, limit in wishes if is_on]
    return None if None in limits else max((limit for limit in limits if limit is not None), default=0)
