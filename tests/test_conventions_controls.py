"""Negative controls of `test_conventions.py`: a bad snippet is caught by its check, a good one passes."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.test_conventions import (
    CHECKS,
    Check,
    crowded,
    forbidden_parameter,
    global_randomness,
    machine_path,
    more_than_names,
    positional_generator,
    too_long,
    undocumented,
    undocumented_names,
    unix_alone,
    unsafe,
    vague_name,
)

BAD: list[tuple[Check, str, str, str]] = [
    (undocumented, "a.py", "x = 1\n", "module has no docstring"),
    (undocumented, "a.py", '"""Doc."""\ndef f(): ...\n', "f has no docstring"),
    (undocumented, "a.py", '"""Doc."""\nasync def f(): ...\n', "f has no docstring"),
    (undocumented, "a.py", '"""Doc."""\nclass A: ...\n', "A has no docstring"),
    (undocumented, "a.py", '"""Doc."""\nclass A:\n    """Doc."""\n    def f(self): ...\n', "A.f has no docstring"),
    (too_long, "a.py", "x = 1\n" * 401, "401 lines"),
    (crowded, "units/spin.py", "class Spin: ...\nclass Bernoulli: ...\n", "2 public classes"),
    (crowded, "units/spin.py", "class Bernoulli: ...\n", "not named after"),
    (crowded, "samplers/base.py", "class A: ...\nclass B: ...\n", "2 public classes"),
    (global_randomness, "a.py", "import random\n", "imports random"),
    (global_randomness, "a.py", "from random import choice\n", "imports random.choice"),
    (global_randomness, "a.py", "import numpy as np\nx = np.random.default_rng(0)\n", "numpy.random"),
    (global_randomness, "a.py", "from numpy.random import rand\n", "numpy.random.rand"),
    (global_randomness, "draws.py", "import torch\ntorch.manual_seed(0)\n", "torch.manual_seed"),
    (global_randomness, "draws.py", "from torch import manual_seed\n", "torch.manual_seed"),
    (global_randomness, "a.py", "import torch as t\nx = t.rand(3)\n", "torch.rand"),
    (global_randomness, "units/types.py", "import torch\nx = torch.randn(3)\n", "torch.randn"),
    (global_randomness, "a.py", "from torch import bernoulli\n", "torch.bernoulli"),
    (global_randomness, "a.py", "def f(x):\n    x.uniform_()\n", "uniform_"),
    (global_randomness, "a.py", "from torch import nn\nnn.init.normal_(w)\n", "torch.nn.init.normal_"),
    (global_randomness, "a.py", "from torch.distributions import Normal\n", "torch.distributions"),
    (positional_generator, "a.py", "def f(x, generator=None): ...\n", "not keyword-only"),
    (positional_generator, "a.py", "def sample(x): ...\n", "sample draws"),
    (positional_generator, "a.py", "def draw_uniform(x): ...\n", "draw_uniform draws"),
    (positional_generator, "a.py", "class A:\n    def step(self, x): ...\n", "step draws"),
    (vague_name, "utils.py", "", "utils"),
    (vague_name, "units/_helpers.py", "", "_helpers"),
    (vague_name, "core/gibbs.py", "", "core"),
    (unsafe, "a.py", "assert x\n", "assert"),
    (unsafe, "a.py", "try:\n    f()\nexcept:\n    pass\n", "bare except"),
    (unsafe, "a.py", "import pickle\n", "pickle"),
    (unsafe, "a.py", "from pickle import loads\n", "pickle"),
    (unsafe, "a.py", "import torch\ntorch.load(p)\n", "weights_only"),
    (unsafe, "a.py", "import torch\ntorch.load(p, weights_only=False)\n", "weights_only"),
    (unsafe, "a.py", "from torch import load\nload(p)\n", "weights_only"),
    (unsafe, "a.py", "import numpy as np\nnp.load(p, allow_pickle=True)\n", "allow_pickle"),
    (forbidden_parameter, "a.py", "def f(*, rng): ...\n", "rng"),
    (forbidden_parameter, "a.py", "def f(key, /): ...\n", "key"),
    (forbidden_parameter, "a.py", "class A:\n    def __init__(self, temp): ...\n", "temp"),
    (forbidden_parameter, "a.py", "def f(num_steps): ...\n", "num_steps"),
    (more_than_names, "__init__.py", "def f(): ...\n", "FunctionDef"),
    (more_than_names, "__init__.py", "class A: ...\n", "ClassDef"),
    *(
        (machine_path, "a.md", f"see {root}x/y\n", root)
        for root in ("/" + d + "/" for d in ("home", "root", "tmp", "work"))
    ),
    (machine_path, "a.sh", 'cd "/' + 'tmp/x"\n', "a.sh:1"),
]

BAD += [
    (unix_alone, "a.py", "import fcntl\n", "imports fcntl"),
    (unix_alone, "a.py", "def f():\n    from resource import getrusage\n", "imports resource"),
    (unix_alone, "a.py", "import os\nos.fork()\n", "os.fork is not on Windows"),
    (unix_alone, "a.py", "import signal as s\nx = s.SIGKILL\n", "signal.SIGKILL is not on Windows"),
]

GOOD: list[tuple[Check, str, str]] = [
    (undocumented, "a.py", '"""Doc."""\ndef _f(): ...\nclass _A:\n    def g(self): ...\n'),
    (undocumented, "a.py", '"""Doc."""\nclass A:\n    """Doc."""\n    def __len__(self): ...\n'),
    (too_long, "a.py", "x = 1\n" * 400),
    (crowded, "units/nrelu.py", "class NReLU: ...\n"),
    (crowded, "models/rbm.py", "class RBM: ...\n"),
    (crowded, "models/machine.py", "class BoltzmannMachine: ...\n"),
    (crowded, "models/class_rbm.py", "class ClassRBM: ...\n"),
    (crowded, "couplings/conv.py", "class Conv2d: ...\n"),
    (crowded, "couplings/third_order.py", "class ThirdOrder: ...\n"),
    (crowded, "samplers/tempering.py", "class TemperingInfo: ...\nclass ParallelTempering: ...\nclass _Ladder: ...\n"),
    (crowded, "samplers/base.py", "class Sampler: ...\nclass Info: ...\n"),
    (crowded, "samplers/sample.py", "def sample(): ...\n"),
    (crowded, "data/toy.py", "class A: ...\nclass B: ...\n"),
    (global_randomness, "draws.py", "import torch\nx = torch.randint(3, (1,)).random_()\n"),
    (global_randomness, "a.py", "import torch\ng = torch.Generator().manual_seed(0)\n"),
    (global_randomness, "a.py", "from harmonium.draws import draw_normal\nx = draw_normal(y)\n"),
    (positional_generator, "a.py", "def sample(x, *, generator=None): ...\ndef samples(x): ...\ndef steps(): ...\n"),
    (positional_generator, "plots/filters.py", "def draw_grid(x): ...\n"),
    (vague_name, "score.py", ""),
    (unsafe, "a.py", "import torch\ntorch.load(p, weights_only=True)\ntry:\n    f()\nexcept ValueError:\n    g()\n"),
    (unix_alone, "a.py", "import os, sys\nif sys.platform != 'win32':\n    import fcntl\n    os.fork()\n"),
    (unix_alone, "a.py", "import os, signal\nos.getpid()\nsignal.SIGTERM\n"),
    (forbidden_parameter, "a.py", "def f(n_steps, keys, template): ...\ndef __getitem__(self, key): ...\n"),
    (more_than_names, "__init__.py", '"""Doc."""\nfrom a import b\n__all__ = ["b"]\n'),
    (more_than_names, "units/__init__.py", "def f(): ...\n"),
    (machine_path, "a.md", "src/work/x ../tmp/y ~/home/z network/root /usr/bin/env\n"),
]


@pytest.mark.parametrize(("check", "path", "source", "words"), BAD)
def test_a_bad_snippet_is_caught(check: Check, path: str, source: str, words: str) -> None:
    complaints = check(source, PurePosixPath(path))
    assert complaints
    assert all(words in line for line in complaints[:1])


@pytest.mark.parametrize(("check", "path", "source"), GOOD)
def test_a_good_snippet_passes(check: Check, path: str, source: str) -> None:
    assert check(source, PurePosixPath(path)) == []


def test_every_check_has_a_negative_control() -> None:
    assert {check for check, *_ in BAD} == {*CHECKS, machine_path}


def test_missing_and_undocumented_names_are_caught() -> None:
    class Module:
        __all__ = ["absent", "bare"]

        @staticmethod
        def bare() -> None: ...

    assert undocumented_names(Module) == ["absent is in __all__ and does not exist", "bare has no docstring"]
