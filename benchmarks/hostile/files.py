"""Hostile files for every reader: chosen ones that must be refused, and mutations of good ones."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
from PIL import Image

from benchmarks.hostile.attack import Attack, mutated, train

MEGABYTE = 2**20


def npy(array: np.ndarray) -> bytes:
    """Return an array as a .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    """Return arrays as a packed .npz file."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def header(text: str, body: bytes = b"") -> bytes:
    """Return a .npy file with any header."""
    raw = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + body


def zipped(**parts: bytes) -> bytes:
    """Return a zip file of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def idx(code: int, shape: tuple[int, ...], body: bytes) -> bytes:
    """Return an IDX file."""
    return bytes([0, 0, code, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + body


def parquet_of(columns: dict[str, object], **options: object) -> bytes:
    """Return a table as a Parquet file."""
    file = io.BytesIO()
    parquet.write_table(arrow.table(columns), file, **options)
    return file.getvalue()


def picture(suffix: str, size: tuple[int, int] = (9, 7)) -> bytes:
    """Return a small picture."""
    rows, columns = np.mgrid[: size[1], : size[0]]
    pixels = np.stack([rows * 20, columns * 20, rows * columns], -1).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, {"jpg": "jpeg", "tif": "tiff", "pgm": "ppm"}.get(suffix, suffix))
    return file.getvalue()


def png_of(width: int, height: int) -> bytes:
    """Return a PNG of one color that is as large as its header says, and packed as well as can be."""
    packer = zlib.compressobj(9)
    row = bytes(1 + width // 8 + 1)
    body = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def csv_of(rows: list[list[object]]) -> bytes:
    """Return rows as CSV."""
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue().encode()


def bomb(packer: Callable[[bytes], bytes], line: bytes, megabytes: int) -> bytes:
    """Return many copies of a line, packed; both formats may be written one after the other."""
    return packer(line * (8 * MEGABYTE // len(line))) * (megabytes // 8)


def good() -> dict[str, bytes]:
    """Return a good small file of every format."""
    i = np.arange(24)
    bits = (i[:, None] * np.arange(1, 7) % 5 < 2).astype(np.uint8)
    table = [["size", "color", "n"], *([f"{k * 0.37:.2f}", "rgb"[k % 3], k % 4] for k in range(24))]
    text = csv_of(table)
    plain = b"\n".join(b" ".join(str(v).encode() for v in row) for row in bits) + b"\n"
    columns = {"size": [k * 0.37 for k in range(24)], "color": ["rgb"[k % 3] for k in range(24)]}
    ratings = [["user", "item", "rating"], *([u, k, 1 + (u + k) % 5] for u in range(8) for k in range(4))]
    return {
        "bits.npy": npy(bits),
        "reals.npy": npy(np.sin(i[:, None] * np.arange(1.0, 4))),
        "half.npy": npy(np.sin(i[:, None] * np.arange(1.0, 4)).astype(np.float16)),
        "labeled.npz": npz(x=bits, labels=i % 3),
        "table.csv": text,
        "table.tsv": text.replace(b",", b"\t"),
        "table.csv.gz": gzip.compress(text),
        "ratings.csv": csv_of(ratings),
        "table.parquet": parquet_of(columns),
        "bits.idx": idx(8, bits.shape, bits.tobytes()),
        "x-ubyte.gz": gzip.compress(idx(8, bits.shape, bits.tobytes())),
        "bits.amat": plain,
        "bits.amat.bz2": bz2.compress(plain),
        **{f"pictures/a.{suffix}": picture(suffix) for suffix in ("png", "jpg", "webp", "gif", "bmp", "tif", "ppm")},
    }


def refused() -> dict[str, tuple[str, bytes]]:
    """Return files that must be refused, by their names: the kind, and the content."""
    bits = (np.arange(60).reshape(12, 5) % 2).astype(np.uint8)
    real = np.linspace(0, 1, 36).reshape(12, 3)
    wide = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
    line, many = b"0 1 0 1\n", [[1.5, 2.5]] * 12
    found: dict[str, tuple[str, bytes]] = {}

    def add(kind: str, suffix: str, content: bytes) -> None:
        found[f"{len(found):03}{suffix}"] = (kind, content)

    for suffix in (".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".idx", "-ubyte.gz", ".amat", ".amat.bz2"):
        for content in (b"", b"\0", b"\n\n\n", b"hello, world", b"\xff" * 100, b"PK\x03\x04" + bytes(50)):
            if suffix == ".csv" and content in (b"hello, world", b"\xff" * 100, b"PK\x03\x04" + bytes(50), b"\0"):
                continue  # a header or a cell, refused for another reason
            add("no file of its format", suffix, content)
    for shape in ("(10**12,)", "(1000000000000, 1000)", "(-5, 3)", "(2**70, 2)", "(0, 0)", "(12,)", "()", "(1,)*65"):
        add("shapes that lie", ".npy", header(wide % ("<f8", shape), bytes(100)))
    for descr in ("|O", "<U9", "<c16", "<M8[ns]", "|V8", "|S3", "<f16"):
        add("values that are no numbers", ".npy", header(wide % (descr, "(3, 4)"), bytes(200)))
    add("values that are no numbers", ".npy", npy(np.array([["a", "b"]] * 12)))
    add("values that are no numbers", ".npy", header("__import__('os').system('touch owned')", bytes(100)))
    add("infinite values", ".npy", npy(np.where(real > 0.9, np.inf, real)))
    add("nothing but missing values", ".npy", npy(np.full((12, 3), np.nan)))
    add("beyond 64 bits", ".npy", npy(np.full((12, 3), 2**64 - 1, np.uint64)))
    add("no samples", ".npy", npy(np.zeros((0, 5))))
    add("no samples", ".npy", npy(np.zeros((5, 0))))
    add("no samples", ".npy", npy(np.float64(3)))
    for labels in (np.full(12, -7), np.full(12, 10**12), np.full(12, np.nan), np.arange(12) + 0.5, np.arange(11)):
        add("labels that are none", ".npz", npz(x=bits, labels=labels))
    add("labels that are none", ".npz", npz(x=bits, labels=np.zeros((12, 2), int)))
    add("two arrays of samples", ".npz", npz(a=bits, b=bits))
    add("bombs", ".npz", zipped(x=header(wide % ("|u1", f"({400 * MEGABYTE // 4}, 4)"), bytes(400 * MEGABYTE))))
    add("bombs", ".amat.bz2", bomb(bz2.compress, line, 600))
    add("bombs", ".csv.gz", bomb(gzip.compress, b"1,2\n", 400))
    add("bombs", "-ubyte.gz", gzip.compress(idx(8, (600, 1024, 1024), b"")) + bomb(gzip.compress, b"\0", 600))
    add("bombs", ".idx", idx(8, (2**32 - 1, 2**32 - 1, 2**32 - 1), bytes(10)))
    add("bombs", ".parquet", parquet_of({"x": arrow.array(np.zeros(30_000_000, np.int8))}, compression="zstd"))
    text = arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(20_000_000, np.int32)), ["x" * 1000])
    add("bombs", ".parquet", parquet_of({"x": text}, compression="zstd"))
    add("infinite values", ".csv", csv_of([["a", "b"], *many, [1e400, 1]]))
    add("infinite values", ".csv", csv_of([["a", "b"], *many, ["9" * 6000, 1]]))
    add("ragged rows", ".csv", b"a,b\n1,2\n1,2,3\n")
    add("names twice", ".csv", csv_of([["a", "a"], *many]))
    add("names twice", ".parquet", parquet_twice())
    add("no rows", ".csv", b"a,b\n")
    add("no rows", ".parquet", parquet_of({"a": arrow.array([], arrow.float64())}))
    add("nested columns", ".parquet", parquet_of({"a": [[1], [2]]}))
    add("nested columns", ".parquet", parquet_of({"a": [{"b": 1}, {"b": 2}]}))
    add("nested columns", ".parquet", parquet_of({"a": arrow.array([b"\0"] * 9, arrow.binary())}))
    add("nothing but missing values", ".csv", csv_of([["a", "b"], *[["", "NA"]] * 9]))
    add("nothing but constants", ".csv", csv_of([["a", "b"], *[[1, "x"]] * 9]))
    add("texts that no unit stands for", ".csv", csv_of([["a"], *[[f"some words {i}"] for i in range(200)]]))
    for row in (["", 1, 2], [1, "", 2], [1, 2, "x"], [1, 1, 5]):
        add("ratings that are none", ".csv", csv_of([["user", "item", "rating"], [1, 1, 3], [2, 1, 4], row]))
    add("ragged rows", ".amat", b"0 1 1\n0 1\n")
    add("values that are no numbers", ".amat", b"0 1 x\n")
    add("lengths that lie", ".idx", idx(8, (12, 5), bits.tobytes()[:-1]))
    add("lengths that lie", ".idx", idx(8, (12, 5), bits.tobytes() + b"\0"))
    add("lengths that lie", ".idx", idx(8, (1,) * 255, b"\0"))
    add("lengths that lie", ".idx", idx(0x20, (12, 5), bits.tobytes()))
    add("an ending that nobody reads", ".pkl", b"cos\nsystem\n(S'touch owned'\ntR.")
    add("an ending that nobody reads", ".exe", b"MZ")
    return found


def parquet_twice() -> bytes:
    """Return a Parquet file with two columns of one name."""
    file = io.BytesIO()
    column = arrow.array([1.5, 2.5] * 6)
    parquet.write_table(arrow.Table.from_arrays([column, column], ["a", "a"]), file)
    return file.getvalue()


def picture_bombs() -> dict[str, bytes]:
    """Return pictures whose headers tell of sizes that they are not worth."""
    bmp = b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 60000, 60000, 1, 24, *[0] * 6)
    return {
        "large.png": png_of(20_000, 20_000),
        "larger.png": png_of(200_000, 500),
        "large.bmp": bmp,
        "large.ppm": b"P6 100000 100000 255\n",
        "large.gif": b"GIF89a" + struct.pack("<HH", 65535, 65535) + bytes(40),
        "text.jpg": b"not a picture",
        "empty.png": b"",
    }


def write_refused(folder: Path) -> None:
    """Write the files that must be refused, in a process of its own: bombs are large before they are packed."""
    child = os.fork()
    if child == 0:
        index = {}
        for name, (kind, content) in refused().items():
            (folder / name).write_bytes(content)
            index[name] = kind
        for name, content in picture_bombs().items():
            place = folder / f"pictures-{name}"
            place.mkdir()
            (place / "a.png").write_bytes(picture("png"))
            (place / name).write_bytes(content)
        (folder / "index.json").write_text(json.dumps(index))
        os._exit(0)
    os.waitpid(child, 0)


def chosen_files(folder: Path) -> Iterator[Attack]:
    """Write the files that must be refused, and yield what is run on each."""
    write_refused(folder)
    for name, kind in json.loads((folder / "index.json").read_text()).items():
        more = ("--model", "class-rbm") if kind == "labels that are none" else ()
        yield Attack(kind, name, train(folder / name, *more), refuse=True)
    for place in sorted(folder.glob("pictures-*")):
        yield Attack("pictures that lie", place.name, train(place, "--binarize", "threshold"), refuse=True)
    yield from odd_paths(folder)


def odd_paths(folder: Path) -> Iterator[Attack]:
    """Yield paths that are no plain files."""
    empty = folder / "empty"
    empty.mkdir()
    yield Attack("paths that are no files", "an empty folder", train(empty), refuse=True)
    for suffix in (".npy", ".csv", ".idx", ".amat", ".parquet", ".npz"):
        (folder / f"folder{suffix}").mkdir()
        os.mkfifo(folder / f"pipe{suffix}")
        (folder / f"zero{suffix}").symlink_to("/dev/zero")
        (folder / f"loop{suffix}").symlink_to(folder / f"loop{suffix}")
        for what in ("folder", "pipe", "zero", "loop", "nowhere"):
            name = f"{what}{suffix}"
            yield Attack("paths that are no files", name, train(folder / name), refuse=True)
    for name in (
        "/proc/self/mem",
        "/dev/zero",
        "/dev/stdin",
        "x" * 5000,
        "a\0b",
        "",
        " ",
        "..",
        "/proc",
        "~nobody/x.npy",
    ):
        yield Attack("paths that are no files", repr(name[:20]), train(name), refuse=True)


def mutated_files(folder: Path, n: int, rng: random.Random) -> Iterator[Attack]:
    """Write mutations of good files, in turn of each format, and yield what is run on each."""
    templates = list(good().items())
    for i in range(n):
        name, content = templates[i % len(templates)]
        path = folder / f"mutated-{i}" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(mutated(content, rng))
        data = path.parent if "pictures" in name else path
        more = ("--binarize", "threshold") if "pictures" in name else ()
        yield Attack(f"mutations of {Path(name).suffix}", f"{i}", train(data, *more))
