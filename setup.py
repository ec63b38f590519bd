"""The one part of Harmonium that is compiled: random draws. Where no C compiler is found, PyTorch makes them."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "harmonium._draws",
            ["src/harmonium/draws.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"],
            libraries=["m"],
            optional=True,
        )
    ]
)
