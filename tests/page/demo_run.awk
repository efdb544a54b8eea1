# One made-up run.json; see make_demo_runs.sh.
function noise() { return rand() + rand() - 1 }
function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }

function series(name, base, wobble,   i, text) {
  text = ""
  for (i = 0; i < samples; ++i) {
    text = text (i ? ", " : "") sprintf("%.1f", i < 2 ? base * 0.3 : base + wobble * noise())
  }
  return quoted(name) ": [" text "]"
}

function rank_json(rank,   slow, step, mean, text) {
  slow = option["slow_rank"] != "" && rank == option["slow_rank"] ? 1.12 : 1 + 0.01 * noise()
  step = 1000 * batch / speed
  mean = 0.78 * peak
  text = "{\"rank\": " rank ", \"host\": \"node" int(rank / 4) "\", \"device\": \"NVIDIA H200\", \"numbers\": {"
  text = text sprintf("\"allocated_mean_MB\": %.2f, \"allocated_peak_MB\": %.2f, \"reserved_mean_MB\": %.2f, \"reserved_peak_MB\": %.2f, ", mean, peak * (1 - 0.004 * rank), mean * 1.12, peak * 1.15)
  text = text sprintf("\"used_mean_MB\": %.2f, \"used_peak_MB\": %.2f, \"busy_mean_percent\": %.2f, \"busy_peak_percent\": 99, ", mean * 1.12 + 900, peak * 1.15 + 900, 88 + 6 * noise())
  text = text sprintf("\"capacity_MB\": 143771, \"steps\": %d, \"step_mean_ms\": %.3f, \"step_std_ms\": %.3f}, ", steps, step * slow, step * 0.05)
  text = text "\"parts\": ["
  text = text sprintf("{\"name\": \"data wait\", \"mean_ms\": %.3f, \"std_ms\": 0.4}, ", step * (0.01 + slow - 1 > 0.01 ? slow - 0.99 : 0.01))
  text = text sprintf("{\"name\": \"forward\", \"mean_ms\": %.3f, \"std_ms\": 1}, {\"name\": \"backward\", \"mean_ms\": %.3f, \"std_ms\": 2}, ", step * 0.29, step * 0.52)
  text = text sprintf("{\"name\": \"exposed communication\", \"mean_ms\": %.3f, \"std_ms\": 1}, {\"name\": \"update\", \"mean_ms\": %.3f, \"std_ms\": 0.2}, ", ranks > 1 ? step * 0.09 : 0, step * 0.06)
  text = text sprintf("{\"name\": \"host transfer\", \"mean_ms\": %.3f, \"std_ms\": 0.1}, {\"name\": \"logging, evaluation, checkpoint\", \"mean_ms\": %.3f, \"std_ms\": 0.1}], ", option["offload"] ? step * 0.2 : 0, step * 0.03)
  text = text "\"series\": {\"period_seconds\": 1, " series("allocated_MB", mean, 0.22 * peak) ", " series("reserved_MB", peak * 1.12, 0.03 * peak) ", " series("used_MB", peak * 1.12 + 900, 0.03 * peak) ", " series("busy_percent", 88, 10) "}}"
  return text
}

function metrics(   step, text, loss, epoch, time, per_epoch) {
  text = ""
  per_epoch = steps > 3 ? int(steps / 3) : steps
  for (step = 1; step <= steps; ++step) {
    time = begin + seconds * step / steps
    epoch = step / per_epoch
    loss = 1.1 + 2.9 * exp(-step / (0.25 * steps)) + 0.12 * noise()
    if (text != "") text = text ",\n  "
    text = text sprintf("{\"step\": %d, \"time\": %.3f, \"loss\": %.4f, \"grad_norm\": %.6f, \"learning_rate\": %.17g, \"epoch\": %.4f}", step, time, loss, 1.5 + 6 * exp(-step / 9) + 0.8 * noise(), 5e-5 * (1 - step / steps), epoch)
    text = text sprintf(",\n  {\"step\": %d, \"time\": %.3f, \"train/samples_per_second\": %.4f}", step, time, speed * (step < 3 ? 0.6 : 1 + 0.03 * noise()))
    if (step % per_epoch == 0) {
      text = text sprintf(",\n  {\"step\": %d, \"time\": %.3f, \"eval_loss\": %.6f, \"eval_runtime\": 3.1, \"epoch\": %.4f}", step, time, loss + 0.25, epoch)
      if (job ~ /resnet/) text = text sprintf(",\n  {\"step\": %d, \"time\": %.3f, \"Loss/train\": %.4f, \"Loss/val\": %.4f, \"Accuracy/train\": %.3f, \"Accuracy/val\": %.3f, \"Throughput/images_per_sec\": %.2f, \"LR\": 0.001, \"epoch\": %.2f}", step, time, 5.2 - 0.5 * epoch, 5.3 - 0.4 * epoch, 6 * epoch, 4.5 * epoch, speed, epoch)
    }
  }
  return text
}

BEGIN {
  count = split(more, pairs, " ")
  for (i = 1; i <= count; ++i) option[substr(pairs[i], 1, index(pairs[i], "=") - 1)] = substr(pairs[i], index(pairs[i], "=") + 1)
  for (i = 1; i <= length(path); ++i) seed += index("abcdefghijklmnopqrstuvwxyz0123456789_/", substr(path, i, 1)) * i
  srand(seed)
  begin = 1794733200 + seed % 5000
  batch = job ~ /resnet/ ? 2048 : 16
  seconds = steps * batch / speed
  samples = seconds > 400 ? 400 : int(seconds) + 3
  is_old = option["format"] == "1"
  started = strftime("%Y-%m-%dT%H:%M:%SZ", begin, 1)
  updated = strftime("%Y-%m-%dT%H:%M:%SZ", begin + seconds, 1)
  reason = status == "failed" ? "out of memory: step 12: rank 0, forward of unit h.17: cannot allocate 1.2 GiB\\nthe memory plan of a step (zero3): 79.3 GiB at the peak" : ""
  printf("{\"format\": %d, \"status\": \"%s\", \"exit_reason\": \"%s\", \"started\": \"%s\", \"updated\": \"%s\",\n", is_old ? 1 : 2, status, reason, started, updated)
  printf(" \"settings\": {\"strategy\": {\"value\": \"%s\", \"origin\": \"command line\"}, \"per_device_train_batch_size\": {\"value\": \"%d\", \"origin\": \"command line\"}, \"learning_rate\": {\"value\": \"5e-05\", \"origin\": \"default\"}, \"run_name\": {\"value\": %s, \"origin\": \"command line\"}, \"output_dir\": {\"value\": %s, \"origin\": \"command line\"}},\n", strategy, path ~ /batch_16/ ? 16 : 4, quoted(option["run_name"]), quoted(path))
  printf " \"versions\": {\"tessera\": \"0.9.0\", \"torch\": \"2.8.0\", \"cuda\": \"12.8\", \"nccl\": \"2.27.3\"}, \"hosts\": ["
  for (i = 0; i < ranks; ++i) printf "%s\"node%d\"", i ? ", " : "", int(i / 4)
  printf "], \"devices\": ["
  for (i = 0; i < ranks; ++i) printf "%s\"NVIDIA H200\"", i ? ", " : ""
  printf("], \"commit\": \"5c1f2ab\", \"command\": [\"tessera\", \"train\", \"%s\", \"--strategy\", \"%s\", \"--output_dir\", %s], \"total_steps\": %d, \"checkpoints\": [],\n", job, strategy, quoted(path), status == "finished" || status == "stopped_early" ? steps : 156)
  print " \"metrics\": [" metrics() "],"
  printf " \"summary\": {"
  if (status == "finished" || status == "stopped_early") printf("\"train_runtime\": %.4f, \"train_samples_per_second\": %.3f, \"train_steps_per_second\": %.3f, \"train_loss\": %.15g, \"max_mem_alloc_MB\": %.2f, \"avg_mem_alloc_MB\": %.2f", seconds, speed, steps / seconds, 1.6 + 0.05 * noise(), peak, 0.78 * peak)
  printf "}"
  if (!is_old) {
    printf(",\n \"facts\": {\"job\": \"%s\", \"experiment\": \"%s\", \"device\": \"cuda\", \"nodes\": %d, \"ranks\": %d, \"ranks_per_node\": %d, \"strategy\": \"%s\", \"offload_optimizer\": %s, \"pin_memory\": %s, \"precision\": \"fp16\", \"num_parameters\": 559214592, \"train_rows\": 832, \"batch_size\": 4, \"accumulation\": 4, \"global_batch\": %d, \"updates_per_epoch\": 52, \"gate_GBps\": %.2f},\n", job, option["experiment"], ranks > 4 ? 2 : 1, ranks, ranks > 4 ? 4 : ranks, strategy, option["offload"] ? "true" : "false", option["offload"] ? "true" : "false", batch, 11 + noise())
    mb = 1048576
    printf " \"planned_memory\": {\"parameters\": %.0f, \"gradients\": %.0f, \"optimizer\": %.0f, \"in_flight\": %.0f, \"activations\": %.0f, \"total\": %.0f, \"host_total\": 2000000000},\n", peak * 0.09 * mb, peak * 0.09 * mb, peak * 0.34 * mb, peak * 0.05 * mb, peak * 0.40 * mb, peak * 0.97 * mb
    printf " \"ranks\": ["
    for (i = 0; i < ranks; ++i) print (i ? "," : "") rank_json(i)
    printf "],\n \"collectives\": [{\"operation\": \"all_gather\", \"unit\": \"h.0\", \"calls\": %d, \"bytes\": 7864320000, \"seconds\": 3.25}, {\"operation\": \"reduce_scatter\", \"unit\": \"h.0\", \"calls\": %d, \"bytes\": 3932160000, \"seconds\": 2.5}],\n", 2 * steps, steps
    printf " \"memory_logs\": {\"gpu\": [\"gpu_memory/gpu_memory_log.csv\"], \"cpu\": [\"cpu_memory/cpu_memory_log.txt\"]}, \"traces\": [\"trace_rank-0.json.gz\"]"
  }
  print "}"
}
