"""The same file by safetensors' own loader into tensors of torch, for comparison: folder_bench.py FILE."""

import statistics
import sys
import time

import safetensors.torch

path = sys.argv[1]
with open(path, "rb") as file:
    size = len(file.read()) / 1e9
seconds = []
for _ in range(5):
    begin = time.perf_counter()
    # clone: copies into the model's own memory, as a model needs it; load_file alone maps the file.
    tensors = {name: tensor.clone() for name, tensor in safetensors.torch.load_file(path).items()}
    seconds.append(time.perf_counter() - begin)
    del tensors
print(f"safetensors.torch.load_file and clone   {size / statistics.median(seconds):.2f} GB/s")
