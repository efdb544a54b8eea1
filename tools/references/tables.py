"""Writes tests/data/tables: Parquet and Arrow files, and beside them their rows as JSON lines.

Run: $(tools/references/venv.sh tables) tools/references/tables.py
Every file NAME.* holds the rows of NAME.jsonl, as Python's json writes what pyarrow reads: `chats` is nested messages in
each format and compression, `types` one column per type that can be written as JSON, `saved` what `datasets` writes,
`dictionaries` a stream whose dictionary grows and is replaced. `refused/` holds files that are whole but have no form in JSON.
"""

import base64
import datetime
import decimal
import json
import pathlib
import shutil
import tempfile

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/tables"


def as_json(value):
    """What JSON has no form for, as Tessera writes it."""
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.timezone.utc).isoformat()
    return value.isoformat()


def write_lines(name, rows):
    with open(FOLDER / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=as_json) + "\n")


def write_arrow(path, table, rows_per_batch, stream=False, **options):
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows_per_batch)


def write_all(name, table, rows_per_group):
    for codec in ("snappy", "zstd", "gzip", "none"):
        pq.write_table(table, FOLDER / f"{name}.{codec}.parquet", row_group_size=rows_per_group, compression=codec)
    pq.write_table(table, FOLDER / f"{name}.pages.parquet", row_group_size=rows_per_group, use_dictionary=False,
                   data_page_version="2.0", data_page_size=256, write_page_checksum=True, store_schema=False)
    write_arrow(FOLDER / f"{name}.file.arrow", table, rows_per_group)
    write_arrow(FOLDER / f"{name}.stream.arrow", table, rows_per_group, stream=True)
    write_arrow(FOLDER / f"{name}.zstd.arrow", table, rows_per_group, compression="zstd")
    write_arrow(FOLDER / f"{name}.lz4.arrow", table, rows_per_group, stream=True, compression="lz4")


def chats():
    """40 conversations: nulls at every level, empty lists, letters that JSON escapes."""
    texts = ["Hello", "", "a \"quoted\" \\ word", "two\nlines\tand\r", "ünïcode ☃ 🙂 中文", "\x00\x01\x1f\x7f\u2028", None]
    rows = []
    for row in range(40):
        messages = []
        for turn in range(row % 5):
            calls = [{"name": f"tool_{turn}", "arguments": "{\"x\": 1}"}] if turn == 3 else None
            messages.append({"role": ["system", "user", "assistant", "tool"][turn % 4],
                             "content": texts[(row + turn) % len(texts)], "tool_calls": calls})
        rows.append({"id": row, "messages": None if row == 11 else messages, "source": ["web", "book", None][row % 3],
                     "score": None if row % 7 == 0 else row / 8, "good": [True, False, None][row % 3],
                     "meta": None if row == 5 else {"tags": ["a", None, "b"][: row % 4], "depth": {"level": row}}})
    call = pa.struct([("name", pa.string()), ("arguments", pa.string())])
    message = pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(call))])
    meta = pa.struct([("tags", pa.list_(pa.string())), ("depth", pa.struct([("level", pa.int16())]))])
    table = pa.Table.from_pylist(rows, schema=pa.schema([
        ("id", pa.int64()), ("messages", pa.list_(message)), ("source", pa.string()), ("score", pa.float64()),
        ("good", pa.bool_()), ("meta", meta)]))
    write_lines("chats", rows)
    write_all("chats", table, 15)
    kinds = table.set_column(2, "source", table["source"].dictionary_encode())
    pq.write_table(kinds, FOLDER / "chats.dictionary.parquet", row_group_size=15)
    write_arrow(FOLDER / "chats.dictionary.arrow", kinds, 15, stream=True)
    return table


def types():
    """One column per type. Parquet has no views and no half floats in lists; Arrow's files have all."""
    day, noon = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 5, 250000)
    old = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    exact = decimal.Decimal
    columns = {
        "int8": pa.array([-128, 127, None], pa.int8()), "int16": pa.array([-32768, 32767, None], pa.int16()),
        "int32": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "int64": pa.array([-(2**63), 2**63 - 1, None], pa.int64()), "uint8": pa.array([0, 255, None], pa.uint8()),
        "uint16": pa.array([0, 65535, None], pa.uint16()), "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
        "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()), "half": pa.array([0.5, -65504.0, None], pa.float16()),
        "float": pa.array([0.1, -1e30, None], pa.float32()), "double": pa.array([1e22, 5e-324, -0.0], pa.float64()),
        "nothing": pa.nulls(3), "bool": pa.array([True, False, None]),
        "text": pa.array(["a", "", None]), "large_text": pa.array(["a", "ü" * 20, None], pa.large_string()),
        "kinds": pa.array(["x", None, "x"]).dictionary_encode(),
        "number_kinds": pa.array([7, 9, 7], pa.int32()).dictionary_encode(),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "large_list": pa.array([["a"], [], None], pa.large_list(pa.large_string())),
        "fixed_list": pa.array([[1.5, 2.5], [3.5, None], None], pa.list_(pa.float32(), 2)),
        "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": None}, None],
                           pa.struct([("a", pa.int64()), ("b", pa.string())])),
        "map": pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int64())),
        "date32": pa.array([day, datetime.date(1, 1, 1), None], pa.date32()),
        "date64": pa.array([day, datetime.date(1969, 12, 31), None], pa.date64()),
        "seconds": pa.array([noon.replace(microsecond=0), datetime.datetime(9999, 12, 31), None], pa.timestamp("s")),
        "milliseconds": pa.array([noon, datetime.datetime(1900, 1, 1), None], pa.timestamp("ms")),
        "microseconds": pa.array([noon, old, None], pa.timestamp("us")),
        "zoned": pa.array([noon, old, None], pa.timestamp("us", tz="Europe/Berlin")),
        "time32": pa.array([noon.time(), datetime.time(0), None], pa.time32("ms")),
        "time64": pa.array([noon.time(), datetime.time(23, 59, 59, 999999), None], pa.time64("us")),
        "decimal32": pa.array([exact("1.50"), exact("-0.01"), None], pa.decimal32(5, 2)),
        "decimal128": pa.array([exact("12345678901234567890.123"), exact("0.000"), None], pa.decimal128(30, 3)),
        "decimal256": pa.array([exact("1" * 50), exact("-7"), None], pa.decimal256(60, 0)),
        "boolean8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8())),
    }
    table = pa.table(columns)
    rows = table.to_pylist()
    for row in rows:
        row["map"] = None if row["map"] is None else dict(row["map"])
        row["boolean8"] = None if row["boolean8"] is None else int(row["boolean8"])  # by its storage
    write_lines("types", rows)
    write_arrow(FOLDER / "types.stream.arrow", table, 2, stream=True)
    pq.write_table(table, FOLDER / "types.snappy.parquet", row_group_size=2)
    views = table.append_column("view", pa.array(["short", "longer than twelve letters", None], pa.string_view()))
    views = views.append_column("list_view", pa.array([[1, 2], [], None], pa.list_view(pa.int8())))
    views = views.append_column("large_list_view", pa.array([["a"], None, []], pa.large_list_view(pa.string_view())))
    for row, view in zip(rows, views.select(["view", "list_view", "large_list_view"]).to_pylist()):
        row.update(view)
    write_lines("views", rows)
    write_arrow(FOLDER / "views.file.arrow", views, 2)


def saved():
    """A folder of save_to_disk, a file of the cache, Parquet: what `datasets` itself writes, values of mixed types too."""
    tools = [[{"type": "function", "n": 1, "text": "a\nb"}], None, [], [{"deep": [1, {"x": None}]}], "text"]
    rows = [{"prompt": f"question {row}", "label": row % 2, "tools": tools[row]} for row in range(5)]
    features = datasets.Features({"prompt": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"]),
                                  "tools": datasets.Json()})
    dataset = datasets.Dataset.from_list(rows, features=features)
    write_lines("saved", rows)
    dataset.to_parquet(FOLDER / "saved.datasets.parquet")
    write_arrow(FOLDER / "saved.file.arrow", dataset.data.table, 2)
    with tempfile.TemporaryDirectory() as folder:
        dataset.save_to_disk(folder)
        shutil.copy(pathlib.Path(folder) / "data-00000-of-00001.arrow", FOLDER / "saved.disk.arrow")
        cached = str(pathlib.Path(folder) / "cache.arrow")
        with datasets.arrow_writer.ArrowWriter(path=cached, features=features) as writer:
            for row in dataset:
                writer.write(row)
            writer.finalize()
        shutil.copy(cached, FOLDER / "saved.cache.arrow")


def dictionaries():
    """One stream, three batches: the first dictionary, the same with one word more, another one."""
    words = [["a", "b"], ["a", "b", "c"], ["x", "y"]]
    indices = [[0, 1, None, 0], [2, 0], [1, 1, 0]]
    batches = [pa.record_batch([pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), pa.array(word))], names=["word"])
               for index, word in zip(indices, words)]
    write_lines("dictionaries", [row for batch in batches for row in batch.to_pylist()])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(FOLDER / "dictionaries.stream.arrow", batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def refused():
    folder = FOLDER / "refused"
    folder.mkdir()
    numbers = pa.table({"text": ["a"] * 5, "score": [1.0, 2.0, float("nan"), 4.0, float("-inf")]})
    pq.write_table(numbers, folder / "nan.parquet", row_group_size=2)
    letters = pa.array([b"good", b"bad \xff", b"good"], pa.binary()).view(pa.string())
    write_arrow(folder / "latin1.arrow", pa.table({"prompt": ["a", "b", "c"], "text": letters}), 2)
    pictures = pa.table({"caption": ["a dot"], "image": [{"bytes": base64.b64decode("AAEC"), "path": None}]})
    pq.write_table(pictures, folder / "pictures.parquet")
    pq.write_table(pictures.select(["image"]), folder / "only_pictures.parquet")
    write_arrow(folder / "years.arrow", pa.table({"when": pa.array([0, 10**15], pa.timestamp("s"))}), 2)
    storage = pa.array(['{"a": 1}', '1, "role": "system"'])
    write_arrow(folder / "json.arrow", pa.table({"tools": pa.ExtensionArray.from_storage(pa.json_(), storage)}), 2)
    write_arrow(folder / "twice.arrow", pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), 2)
    write_arrow(folder / "none.stream.arrow", pa.table({"text": pa.array([], pa.string())}), 2, stream=True)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    chats()
    types()
    saved()
    dictionaries()
    refused()


main()
