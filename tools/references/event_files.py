#!/usr/bin/env python3
"""References for event files -> tests/data/train/events.json

Run: $(tools/references/venv.sh) tools/references/event_files.py
A small made-up run, and the bytes that TensorBoard's own record writer and W&B's own datastore produce for its expected
messages. The tests replay the run to Tessera's listeners and compare byte for byte.
"""
import hashlib
import json
import pathlib
import tempfile
import zlib

import google.protobuf
import tensorboard
import wandb
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
from tensorboard.summary.writer.record_writer import RecordWriter
from wandb.proto import wandb_internal_pb2 as pb
from wandb.sdk.internal.datastore import DataStore

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "train" / "events.json"
NAN = float("nan")


def at(step, seconds):
    return {"step": step, "total_steps": 20, "epoch": step / 10, "wall_seconds": 1700000000.25 + seconds}


RUN = [
    {"event": "begin", "at": at(0, 0)},
    {"event": "step", "at": at(1, 1.5)},
    {"event": "log", "at": at(1, 1.5), "record": {"loss": 4.895, "grad_norm": 81.46920776367188, "learning_rate": 5e-05,
                                                  "epoch": 0.1}},
    {"event": "metrics", "at": at(1, 1.5), "record": {"train/samples_per_second": 12.25}},
    {"event": "system", "at": at(1, 1.75), "record": {"gpu.0.memoryAllocatedBytes": 1234567890, "gpu.0.gpu": 97.5}},
    {"event": "step", "at": at(2, 3)},
    {"event": "log", "at": at(2, 3), "record": {"loss": "nan", "grad_norm": "inf", "learning_rate": 0.0, "epoch": 0.2}},
    {"event": "log", "at": at(2, 3.5), "record": {"eval_loss": 9.937565803527832, "eval_runtime": 3.7396,
                                                  "eval_samples_per_second": 26.741, "epoch": 0.2}},
    {"event": "log", "at": at(20, 60), "record": {"train_runtime": 60.0, "train_samples_per_second": 7.5,
                                                  "train_steps_per_second": 1.875, "train_loss": 3.9868627746582033,
                                                  "epoch": 2.0}},
    {"event": "summary", "at": at(20, 61), "record": {"avg_mem_alloc_MB": 2145.5, "avg_gpu_util_%": 88.0}},
    {"event": "end", "at": at(20, 62)},
]


def number(value):
    return float(value) if isinstance(value, str) else value


def name_of(key):
    if "/" in key:
        return key
    if key.startswith("eval_"):
        return "eval/" + key[5:]
    if key in ("train_samples_per_second", "train_steps_per_second"):
        return "train/" + key[6:]
    return "train/" + key


NAMES = {"log": name_of, "metrics": str, "summary": str, "system": lambda key: "system/" + key}


def tensorboard_file(settings):
    with tempfile.NamedTemporaryFile() as file:
        writer = RecordWriter(file)
        writer.write(event_pb2.Event(wall_time=RUN[0]["at"]["wall_seconds"], file_version="brain.Event:2").SerializeToString())
        plugin = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"))
        shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
        text = tensor_pb2.TensorProto(dtype="DT_STRING", tensor_shape=shape, string_val=[settings.encode()])
        value = summary_pb2.Summary.Value(tag="args/text_summary", metadata=plugin, tensor=text)
        writer.write(event_pb2.Event(wall_time=RUN[0]["at"]["wall_seconds"],
                                     summary=summary_pb2.Summary(value=[value])).SerializeToString())
        for each in RUN:
            if "record" not in each:
                continue
            values = [summary_pb2.Summary.Value(tag=NAMES[each["event"]](key), simple_value=number(value))
                      for key, value in each["record"].items()]
            writer.write(event_pb2.Event(wall_time=each["at"]["wall_seconds"], step=each["at"]["step"],
                                         summary=summary_pb2.Summary(value=values)).SerializeToString())
        writer.flush()
        return pathlib.Path(file.name).read_bytes()


def stamp(message, wall_seconds):
    message.seconds = int(wall_seconds)
    message.nanos = int((wall_seconds - int(wall_seconds)) * 1e9)


def wandb_records(config):
    begun = RUN[0]["at"]["wall_seconds"]
    header = pb.Record()
    header.header.version_info.producer = "tessera"
    header.header.version_info.min_consumer = "0.40.0"
    yield header
    run = pb.Record()
    run.run.run_id, run.run.project, run.run.display_name, run.run.host = "abcd1234", "squad", "small run", "node1"
    for key, value in config.items():
        run.run.config.update.add(key=key, value_json=json.dumps(value))
    stamp(run.run.start_time, begun)
    yield run

    summary, row, row_at = {}, {}, None

    def history():
        full = {**row, "_timestamp": row_at["wall_seconds"], "_runtime": row_at["wall_seconds"] - begun, "_step": row_at["step"]}
        record = pb.Record()
        for key, value in full.items():
            record.history.item.add(nested_key=[key], value_json=json.dumps(value))
        record.history.step.num = row_at["step"]
        summary.update(full)
        return record

    for each in RUN:
        if each["event"] in ("log", "metrics"):
            if row_at and row_at["step"] != each["at"]["step"]:
                yield history()
                row = {}
            row_at = each["at"]
            row.update({NAMES[each["event"]](key): number(value) for key, value in each["record"].items()})
        elif each["event"] == "step" and row_at and row_at["step"] < each["at"]["step"]:
            yield history()
            row, row_at = {}, None
        elif each["event"] == "system":
            record = pb.Record()
            stamp(record.stats.timestamp, each["at"]["wall_seconds"])
            for key, value in each["record"].items():
                record.stats.item.add(key=key, value_json=json.dumps(value))
            yield record
        elif each["event"] == "summary":
            summary.update(each["record"])
        elif each["event"] == "end":
            yield history()
            record = pb.Record()
            # The run time comes last, but an existing key keeps its position.
            for key, value in {**summary, "_runtime": each["at"]["wall_seconds"] - begun}.items():
                record.summary.update.add(nested_key=[key], value_json=json.dumps(value))
            yield record
            record = pb.Record()
            record.exit.exit_code = 0
            record.exit.runtime = int(each["at"]["wall_seconds"] - begun)
            yield record


def wandb_file(config):
    with tempfile.TemporaryDirectory() as folder:
        store = DataStore()
        store.open_for_write(f"{folder}/run.wandb")
        for number_of_record, record in enumerate(wandb_records(config), 1):
            record.num = number_of_record
            store.write(record)
        store.close()
        return pathlib.Path(f"{folder}/run.wandb").read_bytes()


def blocks():
    """Records whose sizes hit block boundaries in every way: byte i of record n is (n * 31 + i) % 251."""
    head = 7
    sizes = [0, 1, 100, 32768 - head - 3 * head - 101 - head - 6, 5, 40000, 32768 * 3, 12000, 32761, 32762, 32760, 20]
    for room in range(0, 9):  # bytes left in a block before the next record
        sizes.append(("up to", room))
        sizes.append(17)
    with tempfile.TemporaryDirectory() as folder:
        store = DataStore()
        store.open_for_write(f"{folder}/run.wandb")
        written = []
        for n, size in enumerate(sizes):
            if isinstance(size, tuple):
                left = 32768 - store._index % 32768 - head - size[1]
                size = left if left >= 0 else left + 32768 - head
            written.append(size)
            store._write_data(bytes((n * 31 + i) % 251 for i in range(size)))
        store.close()
        content = pathlib.Path(f"{folder}/run.wandb").read_bytes()
    return {"sizes": written, "num_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def checksums():
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc32c, masked_crc32c
    for text in ("", "a", "123456789", "The quick brown fox", "x" * 1000):
        data = text.encode()
        yield [text, crc32c(data), int(masked_crc32c(data)), zlib.crc32(data)]


def lines(data):
    text = data.hex()
    return [text[begin:begin + 120] for begin in range(0, len(text), 120)]


settings = "{\"learning_rate\": 5e-05}"
config = {"learning_rate": 5e-05, "model": "bloom \"small\"", "steps": 20, "WANDB_API_KEY": "never"}
document = {
    "versions": {"tensorboard": tensorboard.__version__, "wandb": wandb.__version__, "protobuf": google.protobuf.__version__},
    "run": RUN, "settings": settings, "config": config,
    "tensorboard": lines(tensorboard_file(settings)),
    "wandb": lines(wandb_file({key: value for key, value in config.items() if key != "WANDB_API_KEY"})),
    "blocks": blocks(),
    "checksums": list(checksums()),
}
FILE.write_text(json.dumps(document, indent=0) + "\n")
print(FILE.name, FILE.stat().st_size, "bytes")
