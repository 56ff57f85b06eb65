# The published harness as its makers wrote it, in a virtual environment of its own: what the default harness image holds.
harness_packages="nvidia-lm-eval nemo-evaluator datasets<4 huggingface_hub<1 transformers<5"

harness_is_up() {
    [ "$(cat "$state/harness/installed" 2>/dev/null)" = "$harness_packages" ]
}

harness_start() {
    echo "Installing the published harness into .testbed/harness (some minutes, once) ..." >&2
    mkdir -p "$state/harness"
    python -m venv --clear "$state/harness/venv"
    # Split at spaces: one word a requirement.
    "$state/harness/venv/bin/python" -m pip install -qq --disable-pip-version-check $harness_packages >"$state/harness/log" 2>&1 ||
        fail "the published harness cannot be installed: see $state/harness/log"
    echo "$harness_packages" >"$state/harness/installed"
}

harness_answers() {
    "$state/harness/venv/bin/nemo-evaluator" ls
}

harness_env() {
    variable NEL_TEST_HARNESS "$state/harness/venv/bin"
}
