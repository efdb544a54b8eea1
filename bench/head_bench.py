"""One turn of the head with its loss as transformers computes it: `head_bench.py ROWS CLASSES WIDTH (fp32|bf16) COUNTED`.

Logits of all rows, then cross-entropy over float32 logits. Prints seconds and the loss. Its memory is that of the same
operators in C++ (head_bench plain), which are counted there.
"""
import sys
import time

import torch

rows, classes, width = (int(word) for word in sys.argv[1:4])
kind = torch.bfloat16 if sys.argv[4] == "bf16" else torch.float32
counted = int(float(sys.argv[5]) * rows)
torch.manual_seed(1)
hidden = torch.randn(rows, width).to(kind).requires_grad_(True)
weight = (torch.randn(classes, width) * 0.02).to(kind).requires_grad_(True)
targets = torch.randint(classes, (rows,))
targets[: rows - counted] = -100
seconds = 1e30
for _ in range(2):
    hidden.grad = weight.grad = None
    begin = time.perf_counter()
    logits = torch.nn.functional.linear(hidden, weight)
    loss = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum", ignore_index=-100)
    loss.backward()
    seconds = min(seconds, time.perf_counter() - begin)
print(f"{seconds:.4f} {loss.item() / max(1, counted):.6f}")
