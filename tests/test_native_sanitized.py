"""The C loops under the address and undefined-behavior sanitizers, where a compiler and its runtimes are found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harmonium import native

SOURCE = Path(native.__file__).with_name("native.c")

DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "native.c"
#include "updates.c"

int main(int argc, char **argv) {
    (void)argv;
    uint64_t seed[32];
    for (int i = 0; i < 32; i++) seed[i] = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
    const int64_t lengths[] = {0, 1, 7, 1023, 1024, 1025, 8191, 8192, 8193, 20000};
    for (int i = 0; i < 10; i++) {
        int64_t n = lengths[i];
        uint64_t *words = malloc(sizeof(uint64_t) * (size_t)n + 1);
        float *a = malloc(sizeof(float) * (size_t)n + 1), *b = malloc(sizeof(float) * (size_t)n + 1);
        draw_words(words, 777 * i, n, seed);
        draw_uniform(a, 777 * i, n, seed);
        draw_bernoulli(b, a, 777 * i, n, seed);
        for (int64_t k = 0; k < n; k++) a[k] = k % 3 == 0 ? 1e30f : k % 3 == 1 ? -1e30f : (float)(k % 50) - 25.0f;
        draw_bernoulli_of_field(b, a, 8192 * i, n, seed);
        draw_normal(a, 777 * i, n, seed);
        float *c = malloc(sizeof(float) * (size_t)n + 1);
        draw_step(c, a, b, 0.1f, 0.2f, 777 * i, n, seed);
        int8_t *bytes = malloc((size_t)n + 1);
        int32_t *high = malloc(sizeof(int32_t) * (size_t)n + 1);
        int64_t other;
        for (int64_t k = 0; k < n; k++) {
            a[k] = k % 4 == 0 ? 1e30f : k % 4 == 1 ? NAN : (float)(k % 300) - 150.0f;
            high[k] = k % 2 ? INT32_MAX : INT32_MIN;
        }
        as_bytes(bytes, a, n, &other);
        join_planes(c, high, high, 0.5, n);
        free(words), free(a), free(b), free(c), free(bytes), free(high);
    }
    for (int64_t width = 1; width < 700; width += 99) {
        float *x = calloc((size_t)(300 * width), sizeof(float)), *out = malloc(sizeof(float) * (size_t)width);
        mean_difference(out, x, 200, x, 300, width);
        free(x), free(out);
    }
    const int64_t sizes[][2] = {{1, 1}, {7, 5}, {4, 64}, {9, 83}, {66, 130}};
    for (int i = 0; i < 10; i++) {
        int64_t n_v = sizes[i / 2][0], n_h = sizes[i / 2][1], n_chains = 6, n[] = {n_v * n_h, n_v, n_h}, done;
        float *theta[3], *average[3] = {0}, *chains[2], shares[] = {1.0f, 0.3f, 0.2f};
        for (int k = 0; k < 3; k++) {
            theta[k] = calloc((size_t)n[k], sizeof(float));
            if (i % 2) average[k] = calloc((size_t)n[k], sizeof(float));
        }
        for (int k = 0; k < 2; k++) chains[k] = calloc((size_t)(n_chains * n[k + 1]), sizeof(float));
        float *x = calloc((size_t)(12 * n_v), sizeof(float)), *work = malloc(sizeof(float) * (size_t)(7 * n_v + n_h));
        float *h[] = {malloc(sizeof(float) * (size_t)(5 * n_h)), malloc(sizeof(float) * (size_t)(n_chains * n_h))};
        uint64_t seeds[3 * 2 * 32] = {1, 2, 3};
        pcd_updates(theta, average, shares, 0.1f, x, 12, 5, chains, n_chains, 1, n_v, n_h, h[0], h[1], work, seeds,
                    &done);
        if (done != 3) return 4;
        for (int k = 0; k < 3; k++) free(theta[k]), free(average[k]);
        free(chains[0]), free(chains[1]), free(x), free(work), free(h[0]), free(h[1]);
    }
    uint8_t *rows = calloc(5, 7);
    int64_t index[40], wrong = -1;
    float *picked = malloc(sizeof(float) * 40 * 7);
    for (int i = 0; i < 40; i++) index[i] = i % 5;
    pick_images(picked, rows, index, 40, 1, 7, 5, &wrong);
    if (wrong != -1) return 2;
    uint8_t *images = calloc(5, 3 * 35);
    float *last = malloc(sizeof(float) * 40 * 3 * 35);
    pick_images(last, images, index, 40, 3, 35, 5, &wrong);
    free(images), free(last);
    if (wrong != -1) return 5;
    const int64_t beyond[] = {5, -1, 1000000000000, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 5; i++) {
        index[33] = beyond[i];
        pick_images(picked, rows, index, 40, 1, 7, 5, &wrong);
        if (wrong != 33) return 3;
    }
    if (argc > 1) { /* the control: as if there were a million rows */
        index[33] = 999999;
        pick_images(picked, rows, index, 40, 1, 7, 1000000, &wrong);
    }
    free(rows), free(picked);
    puts("clean");
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the loops with a program that calls them all, under both sanitizers."""
    compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is found")
    folder = tmp_path_factory.mktemp("sanitized")
    (folder / "driver.c").write_text(DRIVER)
    flags = [
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-mavx2",
        "-I",
        str(SOURCE.parent),
    ]
    made = subprocess.run(
        [compiler, *flags, str(folder / "driver.c"), "-lm", "-o", str(folder / "driver")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"{compiler} has no sanitizers here: {made.stderr.strip().splitlines()[-1]}")
    return folder / "driver"


def test_the_loops_are_clean(program: Path) -> None:
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "clean"), done.stderr


def test_the_sanitizer_sees_a_row_that_is_not_there(program: Path) -> None:
    """The negative control."""
    done = subprocess.run([program, "beyond"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr
