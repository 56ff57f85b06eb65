"""The shape of the code: who may import whom, what is public, and what a command may load."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HARNESS, LAUNCHER = ROOT / "harness/nemo_evaluator", ROOT / "launcher/nemotron"

NOUNS = {"types", "errors", "masking", "__init__"}
MAY_IMPORT = {
    "types": set(),
    "errors": set(),
    "masking": set(),
    "__init__": set(),
    "scoring": NOUNS,
    "metrics": NOUNS,
    "models": NOUNS,
    "config": NOUNS,
    "demo": NOUNS,
    "direct": set(),  # it also runs where nothing else of ours does
    "environments": NOUNS | {"scoring"},
    "benchmarks": NOUNS | {"environments", "scoring"},
    "solvers": NOUNS | {"models"},
    "results": NOUNS | {"metrics"},
    "engine": NOUNS | {"environments", "solvers", "models", "results"},
    "suite": NOUNS | {"config", "engine", "environments", "solvers", "models", "results"},
    "api": NOUNS,
    "proxy": NOUNS | {"config", "models", "results"},
    "frameworks": NOUNS | {"api", "proxy", "suite", "config", "engine", "environments", "models", "results"},
    "cli": NOUNS | {"frameworks", "suite", "config", "engine", "environments", "solvers", "models", "results"},
}

LAUNCHER_LAYERS = (
    {"__init__", "bundled", "errors", "files", "home", "hub", "job", "processes", "scores", "secrets"},
    {"profile_errors"},
    {"catalog", "config", "profiles", "runner", "suite", "supervise", "transport"},
    {"env_file", "images", "plan", "request", "slurm"},
    {"endpoint", "runtimes", "source"},
    {"executors", "preflight", "steps"},
    {"doctor", "jobs", "readiness"},
    {"fetch", "launch", "reports", "states"},
    {"sweep", "waiting"},
    {"cli"},
)
"""Each may import what stands above it."""

PUBLIC = {
    "nemo_evaluator.environments": {
        "EvalEnvironment",
        "ScorerInput",
        "SeedResult",
        "VerifyResult",
        "benchmark",
        "register",
        "scorer",
    },
    "nemo_evaluator.engine": {
        "ModelClient",
        "ModelResponse",
        "ProgressTracker",
        "StepRecord",
        "run_evaluation",
        "write_all",
    },
    "nemo_evaluator.solvers": {"ChatSolver", "CompletionSolver", "SolveResult", "Solver"},
}

HEAVY = {
    "aiohttp",
    "docker",
    "httpx",
    "hydra",
    "omegaconf",
    "datasets",
    "jinja2",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "scipy",
    "yaml",
}


def modules(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def imports(module: Path) -> set[str]:
    """Every module named by an import statement, those inside functions too."""
    named = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            named |= {f"{node.module}.{alias.name}" for alias in node.names}
    return named


def member(module: Path) -> str:
    """The part of the package a module belongs to: its folder, or its name at the top."""
    return module.relative_to(HARNESS).parts[0].removesuffix(".py")


@pytest.mark.parametrize("module", modules(HARNESS), ids=lambda path: str(path.relative_to(HARNESS)))
def test_imports_point_one_way(module):
    targets = {name.split(".")[1] for name in imports(module) if name.startswith("nemo_evaluator.")}
    known = targets & MAY_IMPORT.keys()
    assert known <= MAY_IMPORT[member(module)] | {member(module)}


def layer(name: str) -> int:
    return next(number for number, names in enumerate(LAUNCHER_LAYERS) if name in names)


@pytest.mark.parametrize("module", modules(LAUNCHER), ids=lambda path: str(path.relative_to(LAUNCHER)))
def test_the_launchers_imports_point_one_way(module):
    own = module.relative_to(LAUNCHER).parts[0].removesuffix(".py")
    targets = {name.split(".")[1] for name in imports(module) if name.startswith("nemotron.")} - {own, "__version__"}
    assert not [target for target in targets if layer(target) >= layer(own)]


def test_only_one_module_knows_hydra():
    users = [m.name for m in modules(LAUNCHER) if any(n.split(".")[0] in ("hydra", "omegaconf") for n in imports(m))]
    assert users == ["config.py"]


@pytest.mark.parametrize("module", modules(HARNESS) + modules(LAUNCHER), ids=lambda path: str(path.relative_to(ROOT)))
def test_own_modules_are_imported_at_the_top(module):
    functions = [
        n for n in ast.walk(ast.parse(module.read_text())) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inner = [i for f in functions for i in ast.walk(f) if isinstance(i, ast.ImportFrom)]
    assert not [i.module for i in inner if (i.module or "").startswith(("nemo_evaluator", "nemotron"))]


def test_nothing_depends_on_file_locks():
    """RM-10: network file systems break them, and SQLite with them."""
    locked = {"fcntl", "sqlite3", "filelock"}
    found = [m for m in modules(HARNESS) if locked & {name.split(".")[0] for name in imports(m)}]
    assert not found


def test_the_two_packages_never_meet():
    assert not [m for m in modules(HARNESS) if any(name.split(".")[0] == "nemotron" for name in imports(m))]
    assert not [m for m in modules(LAUNCHER) if any(name.split(".")[0] == "nemo_evaluator" for name in imports(m))]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_the_documented_ones(name):
    module = importlib.import_module(name)
    assert set(module.__all__) == PUBLIC[name]
    assert all(hasattr(module, public) for public in PUBLIC[name])


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("nemo_evaluator", ["--help"]),
        ("nemo_evaluator", ["eval", "--help"]),
        ("nemo_evaluator", ["--version"]),
        ("nemotron", ["--help"]),
        ("nemotron", ["steps", "--help"]),
        ("nemotron", ["steps", "list"]),
    ],
)
def test_help_loads_nothing_heavy(package, arguments):
    code = (
        f"import sys\nfrom {package}.cli.main import main\n"
        f"try: main({arguments!r})\nfinally: print('LOADED', *{{m.split('.')[0] for m in sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rsplit("LOADED", 1)[1].split())
    assert not loaded & HEAVY


def test_compiling_a_job_of_this_machine_loads_no_other_backend():
    """Every hundred milliseconds here are waited for before every job."""
    environ = {"EVAL_ENDPOINT_URL": "http://h/v1/completions", "EVAL_MODEL_HANDLE": "m", "EVAL_RESULTS_DIR": "/results"}
    code = (
        "import sys\nfrom nemotron.cli.main import main\n"
        "try: main(['steps', 'run', 'eval/model_eval', '-d'])\n"
        "finally: print('LOADED', *{m.split('.')[0] for m in sys.modules})"
    )
    environ = os.environ | environ | {"EVAL_API_KEY_NAME": "null"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True)
    loaded = set(done.stdout.rsplit("LOADED", 1)[1].split())
    assert not loaded & {"paramiko", "submitit", "docker", "httpx", "numpy"}


def test_no_function_is_a_novel():
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in modules(HARNESS) + modules(LAUNCHER)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 70
    ]
    assert not long
