#!/usr/bin/env python3
"""Checks Tessera's W&B runs with the wandb package: its datastore reads the file, `wandb sync` uploads it.

Run: $(tools/references/venv.sh) tools/references/check_wandb.py build/release/bin/train_core_test
  or: ... check_wandb.py FOLDER     (offline-run-...: shows what is in it)
With the test program: writes the run of tests/data/train/events.json, reads it back record by record and compares. Then
`wandb sync` uploads the run to a local server inside this script, which compares the rows that arrive. Exits with 1 if
anything differs.
"""
import glob
import gzip
import http.server
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from wandb.proto import wandb_internal_pb2 as pb
from wandb.sdk.internal.datastore import DataStore

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data/train/events.json"


def records_of(file):
    store = DataStore()
    store.open_for_scan(file)
    while (data := store.scan_data()) is not None:
        record = pb.Record()
        record.ParseFromString(data)
        yield record


def items(messages):
    return {".".join(each.nested_key) or each.key: json.loads(each.value_json) for each in messages}


def content_of(file):
    content = {"history": [], "summary": {}, "stats": [], "config": {}, "kinds": [], "exit": None}
    for record in records_of(file):
        kind = record.WhichOneof("record_type")
        content["kinds"].append(kind)
        if kind == "run":
            content["config"] = {each.key: json.loads(each.value_json) for each in record.run.config.update}
            content["id"], content["project"], content["name"] = record.run.run_id, record.run.project, record.run.display_name
        elif kind == "history":
            row = items(record.history.item)
            assert row["_step"] == record.history.step.num
            content["history"].append(row)
        elif kind == "summary":
            content["summary"].update(items(record.summary.update))
        elif kind == "stats":
            content["stats"].append({each.key: json.loads(each.value_json) for each in record.stats.item})
        elif kind == "exit":
            content["exit"] = record.exit.exit_code
    return content


def same(first, second):
    return first == second or (isinstance(first, float) and math.isnan(first) and math.isnan(second))


class Server(http.server.BaseHTTPRequestHandler):
    """As much of W&B's server as an upload needs."""
    history = []

    def log_message(self, *arguments):
        pass

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def do_PUT(self):
        self.body()
        self.answer({})

    def do_POST(self):
        sent = json.loads(self.body())
        if not self.path.endswith("/graphql"):
            for line in sent.get("files", {}).get("wandb-history.jsonl", {}).get("content", []):
                Server.history.append(json.loads(line))
            return self.answer({"limits": {}})
        query, variables = sent["query"], sent.get("variables", {})
        if "upsertBucket" in query:
            project = {"id": "p", "name": variables["project"], "entity": {"id": "e", "name": "us"}}
            bucket = {"id": "b", "name": variables["name"], "displayName": "x", "description": None, "config": None,
                      "sweepName": None, "historyLineCount": 0, "project": project}
            return self.answer({"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}})
        if "createRunFiles" in query:
            base = f"http://127.0.0.1:{self.server.server_port}/file/"
            files = [{"name": name, "uploadUrl": base + name} for name in variables["files"]]
            return self.answer({"data": {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}})
        if "iewer" in query:
            return self.answer({"data": {"viewer": {"id": "v", "entity": "us", "flags": "{}", "username": "us",
                                                    "teams": {"edges": []}}}})
        return self.answer({"data": {}})


def sync(run_folder, wanted):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {"WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}", "WANDB_API_KEY": "0" * 40}  # a dummy key
    command = pathlib.Path(sys.executable).parent / "wandb"
    subprocess.run([command, "sync", run_folder], check=True, timeout=120, capture_output=True, env={**os.environ, **settings},
                   cwd=pathlib.Path(run_folder).parent)
    server.shutdown()
    assert len(Server.history) == len(wanted), Server.history
    for ours, arrived in zip(wanted, Server.history):
        assert ours.keys() == arrived.keys() and all(same(ours[key], arrived[key]) for key in ours), (ours, arrived)
    print(f"wandb sync uploads our run: {len(wanted)} rows arrive as written")


def check(program):
    reference = json.loads(DATA.read_text())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.check_call([program, "--gtest_filter=Wandb.AFileIs*", "--gtest_brief=1"],
                              env={**os.environ, "TESSERA_EVENT_FILES": folder}, stdout=subprocess.DEVNULL)
        files = glob.glob(f"{folder}/*/wandb/offline-run-*/run-*.wandb")
        assert len(files) == 1, files
        content = content_of(files[0])
        sync(os.path.dirname(files[0]), content["history"])
    assert content["kinds"][:2] == ["header", "run"] and content["kinds"][-2:] == ["summary", "exit"], content["kinds"]
    assert (content["id"], content["project"], content["name"]) == ("abcd1234", "squad", "small run"), content
    assert content["config"] == {key: value for key, value in reference["config"].items() if key != "WANDB_API_KEY"}
    assert content["exit"] == 0
    steps = [row["_step"] for row in content["history"]]
    assert steps == sorted(set(steps)), steps  # one row per step: W&B drops a second one
    num_compared = 0
    names = {"loss": "train/loss", "eval_loss": "eval/loss", "grad_norm": "train/grad_norm", "learning_rate": "train/learning_rate",
             "epoch": "train/epoch", "train_samples_per_second": "train/samples_per_second",
             "eval_samples_per_second": "eval/samples_per_second", "train/samples_per_second": "train/samples_per_second"}
    for each in reference["run"]:
        for key, value in each.get("record", {}).items():
            value = float(value) if isinstance(value, str) else value
            if each["event"] == "system":
                assert content["stats"][0][key] == value
            elif each["event"] == "summary":
                assert content["summary"][key] == value
            elif key in names:
                row = next(row for row in content["history"] if row["_step"] == each["at"]["step"])
                assert same(row[names[key]], value), (key, row)
            else:
                continue
            num_compared += 1
    print(f"wandb reads our run: {len(content['kinds'])} records, {num_compared} values as written")


if os.path.isdir(sys.argv[1]):
    for name in glob.glob(f"{sys.argv[1]}/run-*.wandb"):
        shown = content_of(name)
        print(json.dumps({**shown, "history": f"{len(shown['history'])} rows", "stats": f"{len(shown['stats'])} rows"}, indent=1))
    sys.exit(0)
check(sys.argv[1])
