"""Generated images, and what Pillow and torchvision make of them: tests/data/images/.

Run: $(tools/references/venv.sh) tools/references/images.py
Writes the JPEGs, reference.bin (raw bytes) and reference.json (offsets into it).
"""
import io
import json
import os
import pathlib
import random
import tempfile

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image, features
from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Normalize, RandomResizedCrop, Resize, ToTensor
from torchvision.transforms import functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "images"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def picture(width, height, seed):
    """Waves, discs with hard edges and some noise: smooth and sharp parts, every channel different."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [127 + 90 * np.sin(x / (5 + 3 * c) + seed) * np.cos(y / (9 - 2 * c)) for c in range(3)]
    pixels = np.stack(planes, axis=-1)
    for _ in range(6):
        cx, cy, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(2, max(3, min(width, height) / 4))
        pixels[(x - cx) ** 2 + (y - cy) ** 2 < r * r] = rng.uniform(0, 255, 3)
    pixels += rng.normal(0, 6, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def jpeg(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **{"quality": 85, **options})
    return buffer.getvalue()


def cmyk(width, height, seed):
    rgb = np.asarray(picture(width, height, seed)).astype(int)
    black = (255 - rgb.max(axis=-1)) // 2
    return Image.fromarray(np.concatenate([np.clip(255 - rgb - black[..., None], 0, 255), black[..., None]], -1).astype(np.uint8), "CMYK")


def adobe_segment(data):
    start = data.index(b"\xff\xee")
    return start, start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")


def without_adobe(data):
    start, end = adobe_segment(data)
    return data[:start] + data[end:]


def with_transform(data, transform):
    _, end = adobe_segment(data)
    return data[: end - 1] + bytes([transform]) + data[end:]


def samples():
    four = jpeg(cmyk(61, 47, 7))
    return {
        "colour_420.jpg": jpeg(picture(64, 64, 1), subsampling=2),
        "colour_422.jpg": jpeg(picture(67, 45, 2), subsampling=1),
        "colour_444.jpg": jpeg(picture(45, 67, 3), subsampling=0),
        "progressive.jpg": jpeg(picture(83, 59, 4), progressive=True),
        "restarts.jpg": jpeg(picture(90, 40, 5), restart_marker_blocks=3),
        "stored_rgb.jpg": jpeg(picture(40, 40, 6), keep_rgb=True, subsampling=0),
        "grey.jpg": jpeg(picture(64, 64, 8).convert("L")),
        "cmyk_adobe.jpg": four,
        "cmyk_plain.jpg": without_adobe(four),
        "ycck.jpg": with_transform(four, 2),
        "one_pixel.jpg": jpeg(picture(1, 1, 9)),
        "tall.jpg": jpeg(picture(30, 200, 10)),
        "large.jpg": jpeg(picture(333, 250, 11), subsampling=2, quality=75),
    }


class Bytes:
    def __init__(self):
        self.data = bytearray()

    def add(self, array):
        offset = len(self.data)
        self.data += np.ascontiguousarray(array).tobytes()
        return offset


def training_cases(images, store):
    """Pillow resizes columns first; since 13 rows first if the height shrinks more, which changes bytes by one."""
    rng = random.Random(17)
    for name, image in images.items():
        for i in range(3):
            width, height = rng.randint(1, image.width), rng.randint(1, image.height)
            left, top = rng.randint(0, image.width - width), rng.randint(0, image.height - height)
            size = 224 if name == "colour_420.jpg" and i == 0 or name == "large.jpg" and i == 0 else rng.choice([31, 32, 48])
            mirrored = i == 1
            out = F.resized_crop(image, top, left, height, width, [size, size], InterpolationMode.BILINEAR, antialias=True)
            crop = image.crop((left, top, left + width, top + height))
            columns_first = crop.resize((size, height), Image.BILINEAR).resize((size, size), Image.BILINEAR)
            same = bool((np.asarray(columns_first) == np.asarray(out)).all())
            out = F.hflip(out) if mirrored else out
            yield {"file": name, "columns_first": same, "box": [left, top, width, height], "size": size, "mirrored": mirrored, "offset": store.add(np.asarray(out))}


def validation_cases(images, store):
    for name, image in images.items():
        for resize, crop in [(256, 224)] if name == "large.jpg" else [(36, 32), (53, 32)]:
            out = Compose([Resize(resize), CenterCrop(crop)])(image)
            yield {"file": name, "resize": resize, "crop": crop, "offset": store.add(np.asarray(out))}


def normalised_cases(images, store):
    for name in ["colour_420.jpg", "grey.jpg"]:
        out = Compose([Resize(36), CenterCrop(32), ToTensor(), Normalize(MEAN, STD)])(images[name])
        yield {"file": name, "resize": 36, "crop": 32, "offset": store.add(out.permute(1, 2, 0).numpy())}


def crop_distribution(width, height, draws=20000):
    """Deciles of what RandomResizedCrop draws."""
    torch.manual_seed(5)
    image = Image.new("RGB", (width, height))
    boxes = np.array([RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(draws)])
    top, left, h, w = boxes.T
    quantities = {"width": w, "height": h, "left": left, "top": top, "area": h * w}
    return {"picture": [width, height], "draws": draws,
            "at_most": {k: [[int(q), float((v <= q).mean())] for q in sorted({int(np.quantile(v, p / 10)) for p in range(0, 11)})] for k, v in quantities.items()}}


def folder_listing():
    files = ["train/b/images/x2.JPEG", "train/b/images/x10.JPEG", "train/b/boxes.txt", "train/a-z/1.jpg", "train/a/1.JPG",
             "train/a/sub/2.jpeg", "train/a/sub-a/3.jpg", "train/B/q.jpg", "train/\u00e9/k.jpg", "train/a/0.jpg", "train/notes.txt"]
    with tempfile.TemporaryDirectory() as root:
        for file in files:
            path = os.path.join(root, file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "wb").close()
        listed = torchvision.datasets.ImageFolder(os.path.join(root, "train"))
        return {"files": files, "classes": listed.classes, "samples": [[os.path.relpath(path, root), label] for path, label in listed.samples]}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    store = Bytes()
    files = samples()
    for name, data in files.items():
        (OUT / name).write_bytes(data)
    images = {name: Image.open(io.BytesIO(data)).convert("RGB") for name, data in files.items()}
    reference = {
        "made_with": {"pillow": PIL.__version__, "libjpeg_turbo": features.version("libjpeg_turbo"), "torchvision": torchvision.__version__},
        "decoded": [{"file": n, "width": i.width, "height": i.height, "offset": store.add(np.asarray(i))} for n, i in images.items()],
        "training": list(training_cases(images, store)),
        "validation": list(validation_cases(images, store)),
        "normalised": list(normalised_cases(images, store)),
        "crop_distribution": [crop_distribution(*size) for size in [(64, 64), (500, 375), (30, 300)]],
        "folder": folder_listing(),
    }
    (OUT / "reference.bin").write_bytes(store.data)
    (OUT / "reference.json").write_text(json.dumps(reference, indent=1) + "\n")


main()
