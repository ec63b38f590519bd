"""What the design promises of the source, read from the source itself.

Each check is a function of one source text and its path that returns complaints, so that a bad snippet can be fed to
it: the negative controls in `test_conventions_controls.py` show that every check can fail.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "harmonium"

Check = Callable[[str, PurePosixPath], list[str]]
"""A function of the source and its path relative to `src/harmonium` that returns one line for each complaint."""

Function = ast.FunctionDef | ast.AsyncFunctionDef

MAX_LINES = 400
ONE_CLASS_PACKAGES = {"units", "couplings", "samplers", "models"}
VAGUE_MODULES = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
ADAPTERS = {"cli", "plots", "runs", "experiments", "sklearn", "web"}
"""Here `draw` may mean a picture, and randomness may enter as a `seed`."""

UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNIX_MODULES = set("curses crypt fcntl grp nis posix pty pwd readline resource spwd syslog termios tty".split())
UNIX_NAMES = {
    f"os.{name}"
    for name in (
        "chown chroot fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getuid initgroups killpg "
        "lchown mkfifo mknod nice pathconf pidfd_open posix_fadvise posix_spawn pread preadv pwrite register_at_fork "
        "sched_getaffinity sched_setaffinity sendfile setgid setsid setuid statvfs sync tcgetpgrp uname wait3 wait4"
    ).split()
} | {
    f"signal.{name}"
    for name in "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 alarm setitimer".split()
}
"""What Windows lacks. `os.sysconf` is allowed where an AttributeError is caught."""

FORBIDDEN_PARAMETERS = re.compile(r"^(rng|key|temp|num_.*)$")
PLATFORM = {"sys.platform", "os.name"}
DRAWS = re.compile(r"^((sample|draw)(_.*)?|step)$")

GLOBAL_RANDOMNESS = {
    "torch.manual_seed",
    "torch.seed",
    "torch.initial_seed",
    "torch.default_generator",
    "torch.get_rng_state",
    "torch.set_rng_state",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
}
RANDOM_MODULES = ("random", "numpy.random", "torch.random", "torch.distributions")
DRAWING = {PurePosixPath("draws.py"), PurePosixPath("native.py")}
TORCH_DRAWS = {
    f"torch.{name}"
    for name in (
        "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal poisson binomial"
    ).split()
}
METHOD_DRAWS = set(
    "random_ uniform_ normal_ bernoulli_ exponential_ geometric_ cauchy_ log_normal_ bernoulli multinomial "
    "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ trunc_normal_ orthogonal_ sparse_".split()
)
MACHINE_PATH = re.compile(r"(?<![\w.~}-])/(?:home|root|tmp|work)/")


# --- reading the source ----------------------------------------------------------------------------------------------
def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method, nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def decorators(node: Function) -> set[str]:
    """Return the last names of the decorators: `setter` for `@x.setter`."""
    names = set()
    for decorator in node.decorator_list:
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.add(inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", ""))
    return names


def aliases(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for: `np` for `numpy`, `rand` for `torch.rand`."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                first = item.name.split(".")[0]
                names[item.asname or first] = item.name if item.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for item in node.names:
                names[item.asname or item.name] = f"{node.module}.{item.name}"
    return names


def dotted(node: ast.AST, names: dict[str, str]) -> str:
    """Return the full dotted name of an expression, or an empty string when it is not one."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        base = dotted(node.value, names)
        return f"{base}.{node.attr}" if base else ""
    return ""


def imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the full name of every absolute import, `from a import b` as `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, item.name) for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{item.name}") for item in node.names)


def within(name: str, module: str) -> bool:
    """Say whether a dotted name is `module` or lies inside it."""
    return name == module or name.startswith(f"{module}.")


# --- the checks ------------------------------------------------------------------------------------------------------
def undocumented(source: str, path: PurePosixPath) -> list[str]:
    """Every public module, class, function and method has a docstring."""
    tree = ast.parse(source)
    complaints = [] if ast.get_docstring(tree) else [f"{path}: the module has no docstring"]

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
                continue
            if isinstance(node, Function) and decorators(node) & {"overload", "setter", "deleter", "override"}:
                continue
            if not ast.get_docstring(node):
                complaints.append(f"{path}:{node.lineno}: {prefix}{node.name} has no docstring")
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")

    visit(tree.body, "")
    return complaints


def too_long(source: str, path: PurePosixPath) -> list[str]:
    """No file is longer than 400 lines."""
    n_lines = len(source.splitlines())
    return [f"{path}: {n_lines} lines, more than {MAX_LINES}"] if n_lines > MAX_LINES else []


def crowded(source: str, path: PurePosixPath) -> list[str]:
    """In the families, one public class a file, and the file has its name; `*Info` and `*State` go with it."""
    if path.parts[0] not in ONE_CLASS_PACKAGES or path.name == "__init__.py":
        return []
    public = [
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and not node.name.endswith(("Info", "State"))
    ]
    if len(public) > 1:
        return [f"{path}: {len(public)} public classes ({', '.join(public)}), not one"]
    stem = path.stem.replace("_", "")
    for name in public:
        flat = name.lower()
        if path.stem != "base" and not (len(stem) >= 3 and (flat.startswith(stem) or flat.endswith(stem))):
            return [f"{path}: the file is not named after its public class {name}"]
    return []


def global_randomness(source: str, path: PurePosixPath) -> list[str]:
    """Random numbers come from a generator that was passed, through the functions of `harmonium.draws`."""
    tree = ast.parse(source)
    names = aliases(tree)
    complaints = [
        f"{path}:{line}: imports {name}"
        for line, name in imported_modules(tree)
        if any(within(name, module) for module in RANDOM_MODULES)
        or name in GLOBAL_RANDOMNESS
        or (name in TORCH_DRAWS and path not in DRAWING)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = dotted(node, names)
            if name in GLOBAL_RANDOMNESS or any(within(name, module) for module in RANDOM_MODULES):
                complaints.append(f"{path}:{node.lineno}: uses {name}")
        if isinstance(node, ast.Call) and path not in DRAWING:
            name = dotted(node.func, names)
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name in TORCH_DRAWS or (method in METHOD_DRAWS and not within(name, "harmonium")):
                complaints.append(f"{path}:{node.lineno}: draws with {name or method}, not with harmonium.draws")
    return complaints


def positional_generator(source: str, path: PurePosixPath) -> list[str]:
    """In public functions `generator` is keyword-only, and whatever draws has it."""
    complaints = []
    private = {
        f
        for c in ast.walk(ast.parse(source))
        if isinstance(c, ast.ClassDef) and c.name.startswith("_")
        for f in (n.lineno for n in ast.walk(c) if isinstance(n, ast.FunctionDef))
    }
    for node in functions(ast.parse(source)):
        if node.lineno in private or (node.name.startswith("_") and node.name != "__init__"):
            continue
        keyword_only = {argument.arg for argument in node.args.kwonlyargs}
        positional = {argument.arg for argument in node.args.posonlyargs + node.args.args}
        if "generator" in positional:
            complaints.append(f"{path}:{node.lineno}: `generator` of {node.name} is not keyword-only")
        elif PurePosixPath(path.parts[0]).stem not in ADAPTERS and DRAWS.match(node.name):
            is_value = decorators(node) & {"property", "cached_property"}
            if "generator" not in keyword_only and not is_value:
                complaints.append(f"{path}:{node.lineno}: {node.name} draws and has no keyword-only `generator`")
    return complaints


def vague_name(source: str, path: PurePosixPath) -> list[str]:
    """No module is called utils, helpers, common or core."""
    return [f"{path}: {part} says nothing" for part in path.with_suffix("").parts if part.lstrip("_") in VAGUE_MODULES]


def unsafe(source: str, path: PurePosixPath) -> list[str]:
    """No `assert`, no bare `except`, no pickle in any form."""
    tree = ast.parse(source)
    names = aliases(tree)
    complaints = [
        f"{path}:{line}: imports {name}"
        for line, name in imported_modules(tree)
        if any(within(name, module) for module in UNSAFE_MODULES)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            complaints.append(f"{path}:{node.lineno}: assert; raise ValueError or TypeError")
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            complaints.append(f"{path}:{node.lineno}: bare except")
        elif isinstance(node, ast.Call):
            name = dotted(node.func, names)
            flags = {
                item.arg: item.value.value
                for item in node.keywords
                if isinstance(item.value, ast.Constant) and item.arg
            }
            if name == "torch.load" and flags.get("weights_only") is not True:
                complaints.append(f"{path}:{node.lineno}: torch.load without weights_only=True")
            if name == "numpy.load" and flags.get("allow_pickle", False) is not False:
                complaints.append(f"{path}:{node.lineno}: numpy.load with allow_pickle")
    return complaints


def unix_alone(source: str, path: PurePosixPath) -> list[str]:
    """Nothing is used that Windows lacks, unless the platform is asked first (`sys.platform`, `os.name`)."""
    tree = ast.parse(source)
    names = aliases(tree)
    asked: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and any(dotted(n, names) in PLATFORM for n in ast.walk(node.test)):
            asked |= set(ast.walk(node))
    free = [node for node in ast.walk(tree) if node not in asked]
    complaints = [
        f"{path}:{line}: imports {name}"
        for node in free
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line, name in imported_modules(ast.Module([node], []))
        if name.split(".")[0] in UNIX_MODULES
    ]
    for node in free:
        if isinstance(node, ast.Attribute) and dotted(node, names) in UNIX_NAMES:
            complaints.append(f"{path}:{node.lineno}: {dotted(node, names)} is not on Windows")
    return complaints


def forbidden_parameter(source: str, path: PurePosixPath) -> list[str]:
    """Parameters are called `generator`, `beta`, `n_steps`: never rng, key, temp or num_*."""
    complaints = []
    for node in functions(ast.parse(source)):
        if node.name.startswith("__") and node.name != "__init__":
            continue
        arguments = node.args
        for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
            if FORBIDDEN_PARAMETERS.match(argument.arg):
                complaints.append(f"{path}:{node.lineno}: {node.name} has a parameter called {argument.arg}")
    return complaints


def more_than_names(source: str, path: PurePosixPath) -> list[str]:
    """`harmonium/__init__.py` holds the public names, and nothing else; it imports no room, since all take long."""
    if path != PurePosixPath("__init__.py"):
        return []
    complaints = []
    for node in ast.parse(source).body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_name = isinstance(node, ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.If)
        is_lazy = isinstance(node, ast.FunctionDef) and node.name in {"__getattr__", "__dir__"}
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("harmonium"):
            complaints.append(f"{path}:{node.lineno}: imports {node.module}; public names are imported in names.py")
        if not (is_docstring or is_name or is_lazy):
            complaints.append(f"{path}:{node.lineno}: {type(node).__name__} belongs in a module")
    return complaints


def machine_path(source: str, path: PurePosixPath) -> list[str]:
    """No file names a folder of the machine that it was written on."""
    return [
        f"{path}:{number}: {line.strip()}"
        for number, line in enumerate(source.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]


CHECKS: list[Check] = [
    undocumented,
    too_long,
    crowded,
    global_randomness,
    positional_generator,
    vague_name,
    unsafe,
    unix_alone,
    forbidden_parameter,
    more_than_names,
]


# --- the source keeps its promises -----------------------------------------------------------------------------------
def sources() -> list[tuple[str, PurePosixPath]]:
    """Return the text of every module with its path relative to the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return [(file.read_text(encoding="utf-8"), PurePosixPath(file.relative_to(PACKAGE).as_posix())) for file in files]


def tracked() -> list[Path]:
    """Return the files that git tracks or would track; without git, every file outside hidden folders."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = (file.relative_to(ROOT) for file in ROOT.rglob("*"))
        paths = [ROOT / file for file in found if not any(part.startswith(".") for part in file.parts)]
    else:
        paths = [ROOT / name for name in listing.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_the_source_is_found() -> None:
    assert PurePosixPath("types.py") in [path for _, path in sources()]
    assert PACKAGE / "types.py" in tracked()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_source(check: Check) -> None:
    complaints = [line for source, path in sources() for line in check(source, path)]
    assert not complaints, f"{check.__doc__}\n" + "\n".join(complaints)


def test_no_machine_paths() -> None:
    complaints = []
    for file in tracked():
        data = file.read_bytes()
        if b"\0" not in data:
            complaints += machine_path(
                data.decode("utf-8", "replace"), PurePosixPath(file.relative_to(ROOT).as_posix())
            )
    assert not complaints, "\n".join(complaints)


def undocumented_names(module: object) -> list[str]:
    """Return the names of `__all__` that are missing, or are a class, function or module without a docstring."""
    complaints = []
    for name in module.__all__:  # type: ignore[attr-defined]
        if not hasattr(module, name):
            complaints.append(f"{name} is in __all__ and does not exist")
            continue
        value = getattr(module, name)
        if (inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)) and not value.__doc__:
            complaints.append(f"{name} has no docstring")
    return complaints


def test_public_names_resolve_and_are_documented() -> None:
    harmonium = importlib.import_module("harmonium")
    assert len(harmonium.__all__) == len(set(harmonium.__all__))
    assert not undocumented_names(harmonium)
