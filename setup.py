"""The one part of Harmonium that is compiled: random draws. Where no C compiler is found, PyTorch makes them."""

import sys

from setuptools import Extension, setup

# PyTorch brings the runtime of OpenMP on Linux; elsewhere one core draws.
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []

setup(
    ext_modules=[
        Extension(
            "harmonium._draws",
            ["src/harmonium/draws.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", *OPENMP],
            extra_link_args=OPENMP,
            libraries=["m"],
            optional=True,
        )
    ]
)
