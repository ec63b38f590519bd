"""SHA-256 sums of the files of known data sets, packed and unpacked, by their path in the data directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

BINARIZED = "binarized-mnist/binarized_mnist"

SHA256: dict[str, str] = {
    "20newsgroups/20news_w100.mat": "6667c5459e22eb544a854bff1443edaaea71735cf1af7b12cc5d986e74af7064",
    "20newsgroups/20news_w1000.mat": "ccdbccc06d2981a9011eb4d515955e5083868e760fb26d4ca5602c433979e6c5",
    f"{BINARIZED}_test.amat": "e6687bfea3f820c174f33b7865140b2a2dd2930ef786f35d45795fc193b5ab2c",
    f"{BINARIZED}_test.amat.bz2": "ec2f379c5902bbbe2480a1f2d535ee41cd59aaaa3ef2927810a47accc246b015",
    f"{BINARIZED}_train.amat": "ad693b29f94c14277b095f5238ddefbbdaaae0939789dd2f4f0205278cee3e4d",
    f"{BINARIZED}_train.amat.bz2": "0138a791cac44a1c40c54417fc583a721976d03af8dff9bc631618fcec506a32",
    f"{BINARIZED}_valid.amat": "1de3d397c40fe8eeb33dafd4099a1f665ec01e96d9be234aaeeac8a34930e2e2",
    f"{BINARIZED}_valid.amat.bz2": "f0a25829824c873ac6a40f528e1a72ff2f61baa5b8f593b33e4715bc33fc86a2",
    "celeba-10k-half/celebA_10k.tar.xz": "e40df0596711ec6c2f706c342e43ebab1f7867d4f1d2d3d3b97033e2090884c3",
    "cifar-10/data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "cifar-10/data_batch_1.webp": "7d659541ed95237ea4e04e2d33389e1104c1953861748ff53d660d6c8d6654f9",
    "cifar-10/data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "cifar-10/data_batch_2.webp": "51af9519a93c50876c6e10004965e1e5959387da1f8d7b96f16f7ca26219af79",
    "cifar-10/data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "cifar-10/data_batch_3.webp": "3c724790d972e645054d7cc995e1535ee05064097410e5a14c537c7145a70db8",
    "cifar-10/data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "cifar-10/data_batch_4.webp": "7e1e0d309a2ac32bb67831184e997f88a9e74324a01f95cc481819c6955db2b3",
    "cifar-10/data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "cifar-10/data_batch_5.webp": "1d3f867bf1d6f975111042b2a5f839fd80c93de1c03f75c667d7840bd55da85c",
    "cifar-10/labels.bin": "3edb456524d5918aefded81f5aef7c32efab2a788211df998a4eb0c8957baa1f",
    "cifar-10/test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    "cifar-10/test_batch.webp": "df199aec7516a004a23ad02816a63a368d2208347ff1c4011eaa91a2503201fc",
    "faces-grey/facesCBCL.mat": "ec1057c969c13acd218b8817a1b7cd473a8d8bb01046451bc4d3ef0d85bd13cf",
    "faces-grey/frey_faces.npz": "3c70375e0a9c4751ad49ad5f1f692bd094c46f133cf4aa8ea77d1cb14e1efcd1",
    "faces-grey/olivetti_faces.npz": "1bc306c8729a0170c186c82adbabe9ca9b4f3a5bd8a01f37278c167a9f8e6404",
    "fashion-mnist/t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "fashion-mnist/t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "fashion-mnist/t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    "fashion-mnist/t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    "fashion-mnist/train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "fashion-mnist/train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "fashion-mnist/train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "fashion-mnist/train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "mnist/t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "mnist/t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "mnist/t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    "mnist/t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    "mnist/train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "mnist/train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "mnist/train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "mnist/train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "movielens-100k/ml-100k.tar.xz": "766a317c6b8a0719a4027f3a4d34781d746886553ae559e64a06237fac1801c8",
}


def sha256(path: Path) -> str:
    """Return the SHA-256 sum of a file, read as a stream."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, relative: str) -> None:
    """Raise unless the file has the SHA-256 sum known for `relative`; a file that is not in the table passes."""
    expected = SHA256.get(relative)
    if expected is None:
        return
    got = sha256(path)
    if got != expected:
        raise ValueError(
            f"{path} is not the file known as {relative}: expected SHA-256 {expected}, got {got}. "
            f"It is damaged or another version: fetch it again. (A file given by its own path is not checked.)"
        )
