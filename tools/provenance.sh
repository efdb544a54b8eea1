# shellcheck shell=bash
# Sourced. Prints the header of every published result: command, commit, hardware and date.

commit_of_tree() {
  local commit
  # For a copy without git history, TESSERA_COMMIT names its commit.
  if [ -n "${TESSERA_COMMIT:-}" ]; then
    echo "$TESSERA_COMMIT"
    return
  fi
  commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || commit=
  if [ -z "$commit" ]; then
    echo unknown
  elif [ -n "$(git status --porcelain --untracked-files=no 2>/dev/null)" ]; then
    echo "$commit with local changes"
  else
    echo "$commit"
  fi
}

cpu_model() {
  # On ARM /proc/cpuinfo has no model name; lscpu knows it.
  local model
  model=$(LC_ALL=C lscpu 2>/dev/null | sed -n 's/^Model name: *//p' | grep -vx -- - | head -1)
  echo "${model:-unknown CPU}"
}

# The variables of benchmarks that are set; of files and folders the last name.
settings_of_benchmarks() {
  local name
  for name in TESSERA_TEST_DATA SQUAD TOKENIZER PICTURES TURNS SECONDS_EACH WITH_7B CHECKPOINT_FOLDER RANKS ROWS \
    CLASSES REPETITIONS; do
    [ -z "${!name:-}" ] || printf '%s=%s ' "$name" "$(basename "${!name}")"
  done
}

# provenance COMMAND...
provenance() {
  echo "# command:  $(settings_of_benchmarks)$*"
  echo "# commit:   $(commit_of_tree)"
  echo "# date:     $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "# machine:  $(uname -m), $(nproc --all) cores ($(cpu_model)), $(awk '/^MemTotal/ {printf "%.0f", $2 / 1048576}' /proc/meminfo) GiB"
  echo "# system:   $(. /etc/os-release && echo "$PRETTY_NAME"), kernel $(uname -r)"
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/# GPU:      /'
  fi
}

# For file names: the hardware, since the host name means nothing elsewhere: aarch64-2cores, h200-16cores.
machine_name() {
  local kind
  kind=$(nvidia-smi --id=0 --query-gpu=name --format=csv,noheader 2>/dev/null) || kind=$(uname -m)
  kind=${kind#NVIDIA }
  kind=${kind,,}
  echo "${kind// /-}-$(nproc --all)cores"
}
