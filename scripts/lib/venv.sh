# Sourced by the other scripts: makes .venv with the project and the named extras once, and puts it first on PATH.
# EXTRAS (default "dev") names the extras; a changed pyproject.toml or constraint installs again.
venv=${VENV:-.venv}
extras=${EXTRAS:-dev}
stamp="$venv/.installed-$extras"
if [ ! -f "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || [ scripts/constraints.txt -nt "$stamp" ]; then
    [ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c scripts/constraints.txt -e ".[$extras]"
    touch "$stamp"
fi
PATH="$PWD/$venv/bin:$PATH"
export PATH
