"""The one part of Harmonium that is compiled: inner loops. Where no C compiler is found, PyTorch does their work.

The library is loaded by ctypes and knows nothing of Python: its file has no version in its name, and one wheel serves
all versions on a platform.
"""

import os
import sys

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

# PyTorch brings the runtime of OpenMP on Linux; elsewhere one core does it.
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []


class BuildPlain(build_ext):
    """Builds a library that belongs to no version of Python."""

    def get_ext_filename(self, fullname):
        """Return `harmonium/_native.so`, or `.pyd`."""
        return os.path.join(*fullname.split(".")) + (".pyd" if os.name == "nt" else ".so")


class TagPlain(bdist_wheel):
    """Names the wheel `py3-none-PLATFORM`."""

    def get_tag(self):
        """Return the tag: any Python 3, this platform."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": BuildPlain, "bdist_wheel": TagPlain},
    ext_modules=[
        Extension(
            "harmonium._native",
            ["src/harmonium/native.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", *OPENMP],
            extra_link_args=OPENMP,
            libraries=["m"],
            optional=True,
        )
    ],
)
