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

# provenance COMMAND...
provenance() {
  echo "# command:  $*"
  echo "# commit:   $(commit_of_tree)"
  echo "# date:     $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "# machine:  $(uname -m), $(nproc --all) cores ($(cpu_model)), $(awk '/^MemTotal/ {printf "%.0f", $2 / 1048576}' /proc/meminfo) GiB"
  echo "# system:   $(. /etc/os-release && echo "$PRETTY_NAME"), kernel $(uname -r)"
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/# GPU:      /'
  fi
}

# For file names: the hardware, since the host name means nothing elsewhere. With a GPU, its name: h200.
machine_name() {
  local gpu
  if gpu=$(nvidia-smi --id=0 --query-gpu=name --format=csv,noheader 2>/dev/null); then
    gpu=${gpu#NVIDIA }
    gpu=${gpu,,}
    echo "${gpu// /-}"
  else
    echo "$(uname -m)-$(nproc --all)cores"
  fi
}
