"""The one part of Harmonium that is compiled: inner loops. Where no C compiler is found, PyTorch does their work."""

import sys

from setuptools import Extension, setup

# PyTorch brings the runtime of OpenMP on Linux; elsewhere one core does it.
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []

setup(
    ext_modules=[
        Extension(
            "harmonium._native",
            ["src/harmonium/native.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", *OPENMP],
            extra_link_args=OPENMP,
            libraries=["m"],
            optional=True,
        )
    ]
)
