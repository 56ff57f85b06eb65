# This project in a virtual environment with the harness wheel that it hosts: the same wheel, another nemo-evaluator.
hosting_packages="nvidia-lm-eval datasets<4 huggingface_hub<1 transformers<5"

# Our own requirements are part of the stamp; our code is not, the installation is editable.
hosting_stamp() {
    echo "$hosting_packages $(cksum <pyproject.toml)"
}

hosting_is_up() {
    [ "$(cat "$state/hosting/installed" 2>/dev/null)" = "$(hosting_stamp)" ]
}

hosting_start() {
    echo "Installing the hosted harness into .testbed/hosting (some minutes, once) ..." >&2
    mkdir -p "$state/hosting"
    python -m venv --clear "$state/hosting/venv"
    # Split at spaces: one word a requirement.
    "$state/hosting/venv/bin/python" -m pip install -qq --disable-pip-version-check $hosting_packages -e . >"$state/hosting/log" 2>&1 ||
        fail "the hosted harness cannot be installed: see $state/hosting/log"
    hosting_stamp >"$state/hosting/installed"
}

hosting_answers() {
    "$state/hosting/venv/bin/nemo-evaluator" ls
}

hosting_env() {
    variable NEL_TEST_HOSTING "$state/hosting/venv/bin"
}
