# Sourced by the other scripts at the top of the checkout: makes .venv with the project and its extras, and puts it first
# on PATH. EXTRAS (default "dev") names the extras, PYTHON the interpreter. While the stamps of their last complete
# installation fit (same folder, same pyproject.toml, same constraints) nothing is done, and no network needed.
. scripts/lib/fail.sh
extras=${EXTRAS:-dev}
checkout=$(pwd -P)
venv=$checkout/.venv

# True while every extra has the stamp of this folder and these requirements.
is_installed() {
    for extra in $(echo "$extras" | tr , ' '); do
        [ "$(cat "$venv/.installed-$extra" 2>/dev/null)" = "$requirements" ] || return 1
    done
}

install() {
    echo "Installing nemo-evaluator[$extras] into .venv (once) ..." >&2
    is_usable || make_venv
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check -c scripts/constraints.txt -e ".[$extras]" ||
        fail "the installation failed, see above; it needs a package index. The same command goes on from there"
    for extra in $(echo "$extras" | tr , ' '); do
        echo "$requirements" >"$venv/.installed-$extra"
    done
}

# Neither half an environment, nor one that was copied or moved here, whose commands point to the old place.
is_usable() {
    is_recent "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && grep -qF " $venv" "$venv/pyvenv.cfg"
}

make_venv() {
    python=$(find_python)
    "$python" -m venv --clear "$venv" || fail "$python cannot make a virtual environment (on Debian: apt-get install python3-venv)"
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if is_recent "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>&1) || found=missing
    fail "needs Python 3.11 or newer, ${PYTHON:-python3} is $found: install one, or name it with PYTHON=/path/to/python3.11"
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

requirements="$(cat pyproject.toml scripts/constraints.txt | cksum) $checkout"
is_installed || install
PATH=$venv/bin:$PATH
export PATH
