"""The one part of Harmonium that is compiled: inner loops. Where no C compiler is found, PyTorch does their work.

The library is loaded by ctypes and knows nothing of Python: its file has no version in its name, and one wheel serves
all versions on a platform.
"""

import os
import sys

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

# PyTorch brings the runtime of OpenMP on Linux; elsewhere one core does it.
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []


class BuildPlain(build_ext):
    """Builds a library that belongs to no version of Python; on one core where the compiler has no OpenMP."""

    def build_extension(self, ext):
        """Compile, with OpenMP if it can be linked."""
        try:
            super().build_extension(ext)
        except (CompileError, LinkError):
            if not OPENMP:
                raise
            ext.extra_compile_args = [flag for flag in ext.extra_compile_args if flag not in OPENMP]
            ext.extra_link_args = []
            super().build_extension(ext)

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
            ["src/harmonium/native.c", "src/harmonium/updates.c"],
            depends=["src/harmonium/native.h"],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", *OPENMP],
            extra_link_args=OPENMP,
            libraries=["m"],
            optional=True,
        )
    ],
)
