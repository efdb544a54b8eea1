#!/usr/bin/env bash
# Tessera on a real four-node Slurm (see ./lab). ctest calls this once per scenario:
#   run_tests.sh up | nodes | bandwidth_gate | launch_without_mpi | training_requeued | node_killed |
#     launchers_node_killed | rank_killed | rank_stopped | network_cut | strangers | experiments | experiment_faults |
#     two_users | down
# By hand, in a lab of eight nodes (./x soak): families | time_limit | power_loss | slurmd_killed
# TESSERA_BINARY is the program under test; TESSERA_SLURM_LAB is a file with the lab's location.
# Exit status 77: skipped; the reason is printed.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB_FILE=${TESSERA_SLURM_LAB:?the file that holds the folder of the lab}
LAB_NAME=tessera-slurm-lab
# Four nodes share this machine's few cores: waiting ranks yield to the others (0.75 s become 0.09 s).
export OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1

main() {
  case ${1:-} in
    up | down) "$1" ;;
    nodes | bandwidth_gate | launch_without_mpi | training_requeued | node_killed | launchers_node_killed | \
      rank_killed | rank_stopped | slurmd_killed | network_cut | strangers | experiments | experiment_faults | two_users | families | time_limit | \
      power_loss)
      [ -s "$LAB_FILE" ] || skip "no lab is up (slurm.up says why)"
      STATE=$(<"$LAB_FILE")
      JOBS=$STATE/jobs/$1
      rm -rf "$JOBS"
      mkdir -p "$JOBS"
      "$1"
      echo "passed: $1"
      ;;
    *) fail "no scenario '${1:-}'" ;;
  esac
}

# --- the lab --------------------------------------------------------------------------------------

# On a busy machine Slurm's daemons are sometimes not ready in time. Retry: these tests are about Tessera, not Slurm.
# Each failed attempt shows its logs.
up() {
  "$HERE/lab" check || exit
  down  # left by a crashed run
  # Folders left by crashed runs of other build trees; their labs have ended by themselves.
  find "${TMPDIR:-/tmp}" -maxdepth 1 -name "$LAB_NAME.*" -mmin +60 -exec rm -rf {} + || true
  trap down EXIT INT TERM  # do not leave half a lab
  local attempt
  for attempt in 1 2 3; do
    STATE=$(mktemp -d "${TMPDIR:-/tmp}/$LAB_NAME.XXXXXX")
    echo "$STATE" >"$LAB_FILE"
    if "$HERE/lab" up "$STATE"; then
      trap - EXIT INT TERM
      return
    fi
    echo "attempt $attempt to start the lab failed" >&2
    down
  done
  exit 1
}

down() {
  [ -s "$LAB_FILE" ] || return 0
  "$HERE/lab" down "$(<"$LAB_FILE")"
  rm -f "$LAB_FILE"
}

# --- scenarios ------------------------------------------------------------------------------------

# The lab itself: four nodes, each with its own name.
nodes() {
  in_room 30 srun --nodes=4 hostname | sort >"$JOBS/out"
  expect "$JOBS/out" '^node1$' '^node2$' '^node3$' '^node4$'
}

# 2 nodes x 2 ranks with sbatch and srun; the gate passes, then fails with its own status.
bandwidth_gate() {
  local arguments='comm-test -b 64K -e 1M -f 4 -n 5 --min-busbw'
  run_job 0 2 "srun --mpi=pmix $TESSERA_BINARY $arguments 0.0001"
  expect "$JOBS/out" 'Running on 2 nodes x 2 ranks = 4 total ranks' '^# Avg bus bandwidth' 'Measured AllReduce BW: '

  run_job 46 2 "srun --mpi=pmix $TESSERA_BINARY $arguments 100000"
  expect "$JOBS/out" 'Running on 2 nodes x 2 ranks = 4 total ranks' 'Bandwidth below threshold'
}

# One launcher per node, as for GPU ranks, and a program without MPI.
launch_without_mpi() {
  cat >"$JOBS/say_who" <<'END_OF_FILE'
#!/bin/sh
echo "rank $RANK of $WORLD_SIZE: node $NODE_RANK, local $LOCAL_RANK, host $(hostname), master $MASTER_ADDR:$MASTER_PORT"
END_OF_FILE
  chmod +x "$JOBS/say_who"
  # shellcheck disable=SC2016 # the job's shell knows the node list
  run_job 0 1 'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1)
srun '"$TESSERA_BINARY"' launch --starter fork --nnodes 2 --nproc_per_node 2 --master_addr "$head" --master_port 29511 '"$JOBS/say_who"
  expect "$JOBS/out" 'rank 0 of 4: node 0, local 0, host node1, master \S+:[0-9]+$' \
    'rank 1 of 4: node 0, local 1, host node1,' 'rank 2 of 4: node 1, local 0, host node2,' \
    'rank 3 of 4: node 1, local 1, host node2,'
  [ "$(grep -o 'master .*' "$JOBS/out" | sort -u | wc -l)" = 1 ] || fail "the ranks do not agree on their master"
}

# As with `#SBATCH --signal=USR1@120` before the time limit: the ranks save together and end, and the next job resumes
# there.
training_requeued() {
  local job num_done train
  train="$(training "$JOBS/run") --num_train_epochs 150 --save_steps 100000"
  write_job 1 "$train"
  job=$(in_room 30 sbatch --parsable --no-requeue --nodelist=node1,node2 "$JOBS/job")
  wait_for 150 'training has begun' grep -qs "'loss'" "$JOBS/out"
  in_room 20 scancel --signal=USR1 "$job"
  wait_for 150 'the job ends' job_has_ended "$job"
  expect "$JOBS/out" 'SIGUSR1: stopped after step [0-9]+ of 300; --resume_from_checkpoint true resumes it' '^status 138$'
  grep -q '"status": "interrupted"' "$JOBS/run/run.json" || fail 'run.json does not have the status interrupted'
  num_done=$(grep -c "'loss'" "$JOBS/out")
  [ -s "$JOBS/run/log/rank-1.log" ] || fail "rank 1 has no log of its own"

  run_job 0 1 "$train --resume_from_checkpoint true"
  expect "$JOBS/out" "resuming after step $num_done from" "'train_loss'"
  [ "$(grep -c "'loss'" "$JOBS/out")" = $((300 - num_done)) ] || fail "the second job has not done the remaining steps"
}

# training FOLDER: the command of a small run on the job's ranks, 2 updates an epoch.
training() {
  export XDG_CACHE_HOME=$JOBS/cache
  local data=$HERE/../data
  echo "srun --mpi=pmix $TESSERA_BINARY train gpt-qa --device cpu --strategy zero3 --output_dir $1 --disable_tqdm" \
    "--report_to none --tokenizer_name $data/squad/tokenizer --train_file $data/squad/sample.jsonl --max_length 96" \
    "--seq_length 96 --vocab_size 500 --hidden_size 32 --num_layers 2 --num_heads 4 --ff_dim 48 --max_train_samples 8" \
    "--per_device_train_batch_size 2 --logging_steps 1 --save_strategy steps"
}

# A node loses power while a run trains and saves; Slurm requeues the job, which resumes and ends with the model of a run
# that nothing disturbed.
power_loss() {
  local job more="--num_train_epochs 400 --save_steps 20 --save_total_limit 2"
  run_job 0 1 "$(training "$JOBS/whole") $more"
  write_job 1 "resume=false; ! ls -d $JOBS/run/checkpoint-* || resume=true
$(training "$JOBS/run") $more --resume_from_checkpoint \$resume"
  job=$(in_room 30 sbatch --parsable --requeue --nodelist=node3,node4 "$JOBS/job")
  wait_for 60 'the run has saved' ls -d "$JOBS/run/checkpoint-100"
  "$HERE/lab" kill "$STATE" node4
  wait_for 90 'Slurm has requeued the job' job_waits "$job"
  in_room 20 scontrol hold "$job"  # until the node that has just booted can be reached by all
  bring_back node4
  sleep 5
  in_room 20 scontrol release "$job"
  wait_for 180 'the job ends' job_has_ended "$job"
  job_state "$job" | grep -qx COMPLETED || fail "job $job ended as $(job_state "$job")"
  expect "$JOBS/out" 'resuming after step [0-9]+ from'
  cmp "$JOBS/whole/model.safetensors" "$JOBS/run/model.safetensors" || fail 'the resumed run has another model'
}

job_waits() { job_state "$1" | grep -qx PENDING; }

# A node loses power in the middle of a run: the job ends, says so, and leaves nothing running.
node_killed() {
  write_job 2 "srun --mpi=pmix $TESSERA_BINARY comm-test -b 1M -e 1M -n 10000000"
  local job killed_at
  job=$(in_room 30 sbatch --parsable --no-requeue --nodelist=node3,node4 "$JOBS/job")
  wait_for 60 'comm-test starts' grep -qs 'Running on 2 nodes x 2 ranks = 4 total ranks' "$JOBS/out"
  sleep 2  # until the collectives run
  "$HERE/lab" kill "$STATE" node4
  killed_at=$SECONDS
  wait_for 90 'the job ends' job_has_ended "$job"
  echo "job $job ended $((SECONDS - killed_at)) s after node4 lost its power"
  job_state "$job" | grep -qx NODE_FAIL || fail "job $job ended as $(job_state "$job"), not as NODE_FAIL"
  expect "$JOBS/out" 'Node failure on node4|DUE TO NODE FAILURE'
  wait_for 20 'no rank is left on node3' none_left node3 "^$TESSERA_BINARY comm-test"
  bring_back node4
}

# The same with one launcher per node: the remaining one names the lost node, well before Slurm notices.
launchers_node_killed() {
  local node_timeout=3 slack=5 job killed_at
  cat >"$JOBS/work_for_long" <<'END_OF_FILE'
#!/bin/sh
echo "rank $RANK works"
sleep 300
END_OF_FILE
  chmod +x "$JOBS/work_for_long"
  # shellcheck disable=SC2016 # the job's shell knows the node list
  write_job 1 'export TMPDIR='"$STATE/tmp"'  # removed with the lab: nothing cleans up on a node without power
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1)
srun --kill-on-bad-exit=0 --no-kill '"$TESSERA_BINARY launch --starter fork --nnodes 2 --nproc_per_node 2"' \
  --master_addr "$head" --master_port 29512 --node_timeout '"${node_timeout}s $JOBS/work_for_long"
  job=$(in_room 30 sbatch --parsable --no-requeue --no-kill --nodelist=node3,node4 "$JOBS/job")
  wait_for 60 'all four ranks work' all_ranks_work
  sleep 1  # node 0 has heard of node 1
  "$HERE/lab" kill "$STATE" node4
  killed_at=$SECONDS
  wait_for $((node_timeout + slack)) 'the launcher on node3 names the lost node' \
    grep -qE 'tessera launch: the launcher of node 1 \(node4\) has not responded for 3s' "$JOBS/out"
  echo "node4's loss was named $((SECONDS - killed_at)) s after it lost its power"
  wait_for 10 'no rank is left on node3' none_left node3 "^/bin/sh $JOBS/work_for_long"
  in_room 20 scancel "$job" || true  # srun is still waiting for node4
  wait_for 90 'the job ends' job_has_ended "$job"
  bring_back node4
}

# A rank is killed, or stopped, with and without srun's own -K1; rank 0 too. It is named, and all are gone in seconds.
rank_killed() {
  local kill_on_bad_exit victim
  for kill_on_bad_exit in 0 1; do
    for victim in 0 3; do strike_rank KILL "$kill_on_bad_exit" "$victim"; done
  done
}
rank_stopped() {
  local kill_on_bad_exit victim
  for kill_on_bad_exit in 0 1; do
    for victim in 0 3; do strike_rank STOP "$kill_on_bad_exit" "$victim"; done
  done
}

# strike_rank KILL|STOP KILL_ON_BAD_EXIT RANK: ranks 0 and 1 are on node1, 2 and 3 on node2.
strike_rank() {
  local rank=$3 node=node1 job struck_at
  # A death must be noticed long before a collective's limit.
  local limit=30m blame='is gone: its process ended'
  if [ "$1" = STOP ]; then
    limit=5s blame='(did not answer|has not answered)'
  fi
  [ "$rank" -lt 2 ] || node=node2
  rm -f "$JOBS/out"
  write_job 2 "srun --mpi=pmix --kill-on-bad-exit=$2 $TESSERA_BINARY comm-test -b 1M -e 1M -n 10000000 --comm_timeout $limit"
  job=$(in_room 30 sbatch --parsable --no-requeue --nodelist=node1,node2 "$JOBS/job")
  wait_for 60 'comm-test starts' grep -qs 'Running on 2 nodes x 2 ranks = 4 total ranks' "$JOBS/out"
  sleep 2  # until the collectives run
  signal_rank "$1" "$node" "$rank" || fail "found no process of rank $rank on $node"
  struck_at=$SECONDS
  # With -K1 Slurm may end the others of a dead rank before they speak.
  if [ "$1$2" != KILL1 ]; then
    wait_for 15 "the others name rank $rank" grep -qsE "rank $rank on $node $blame" "$JOBS/out"
    ! grep -E "rank [0-9]+ on node[0-9]+ $blame" "$JOBS/out" | grep -vE "rank $rank on $node $blame" ||
      fail 'an innocent rank is blamed'
  fi
  wait_for 20 'the job ends' job_has_ended "$job"
  echo "rank $rank, SIG$1, -K$2: job $job ended $((SECONDS - struck_at)) s after it"
  for node in node1 node2; do wait_for 5 "no rank is left on $node" none_left "$node" "^$TESSERA_BINARY comm-test"; done
}

# signal_rank SIGNAL NODE RANK: of comm-test; other jobs may run there.
signal_rank() {
  # shellcheck disable=SC2016 # the node's shell looks
  "$HERE/lab" in "$STATE" "$2" bash -c 'for process in /proc/[0-9]*; do
    if grep -qsz "^SLURM_PROCID=$1$" "$process/environ" && grep -qsz "^comm-test$" "$process/cmdline" &&
      [ "$(readlink "$process/exe")" = "$2" ]; then
      kill -"$3" "${process#/proc/}" && exit
    fi
  done; exit 1' - "$3" "$TESSERA_BINARY" "$1"
}

# Slurm's own daemon dies on node2: Slurm gives up the node and ends the rank on node1; nobody tells the one on node2,
# which notices by itself.
slurmd_killed() {
  rm -rf "$JOBS/out" "$JOBS/run"
  write_job 1 "$(training "$JOBS/run") --num_train_epochs 40000 --comm_timeout 30m"
  local job killed_at
  job=$(in_room 30 sbatch --parsable --no-requeue --nodelist=node1,node2 "$JOBS/job")
  wait_for 90 'training has begun' grep -qs "'loss'" "$JOBS/run/log/rank-0.log"
  "$HERE/lab" in "$STATE" node2 pkill -KILL -x slurmd
  wait_for 90 'the rank on node1 is ended' none_left node1 "^$TESSERA_BINARY train"
  killed_at=$SECONDS
  wait_for 10 'the rank on node2 ends' none_left node2 "^$TESSERA_BINARY train"
  echo "without slurmd the rank on node2 was gone $((SECONDS - killed_at)) s after the other"
  "$HERE/lab" in "$STATE" node2 env SLURM_CONF="$STATE/etc/slurm.conf" slurmd -N node2
  in_room 20 scancel "$job" || true
  wait_for 90 'the job ends' job_has_ended "$job"
  for node in node1 node2; do wait_for 90 "$node is back" node_is_idle "$node"; done
}

# The cable of a node is pulled: of node2, then of node1 with rank 0 and the store. The ranks on both sides of the cut end
# by themselves within the limit, and say so in their own logs.
network_cut() {
  local cut job cut_at node limit=6
  for cut in node2 node1; do
    rm -rf "$JOBS/out" "$JOBS/run"
    write_job 1 "$(training "$JOBS/run") --num_train_epochs 4000 --comm_timeout ${limit}s"
    job=$(in_room 30 sbatch --parsable --no-requeue --nodelist=node1,node2 "$JOBS/job")
    wait_for 90 'training has begun' grep -qs "'loss'" "$JOBS/run/log/rank-0.log"
    "$HERE/lab" cut "$STATE" "$cut"
    cut_at=$SECONDS
    for node in node1 node2; do
      wait_for $((limit + 6)) "the rank on $node ends" none_left "$node" "^$TESSERA_BINARY train"
    done
    echo "$cut cut off: both ranks were gone after $((SECONDS - cut_at)) s"
    "$HERE/lab" mend "$STATE" "$cut"
    for node in 0 1; do
      expect "$JOBS/run/log/rank-$node.log" 'rank 0 on node1 and rank 1 on node2 have lost contact: no answer for 4s'
    done
    in_room 20 scancel "$job" || true
    wait_for 90 'the job ends' job_has_ended "$job"
    for node in node1 node2; do wait_for 60 "$node is back" node_is_idle "$node"; done
  done
}

# A stranger on another node attacks the launchers' meeting place, while they wait for each other and while ranks run.
strangers() {
  cat >"$JOBS/work_a_while" <<'END_OF_FILE'
#!/bin/sh
echo "rank $RANK works"
sleep 6
END_OF_FILE
  chmod +x "$JOBS/work_a_while"
  export XDG_CONFIG_HOME=$JOBS/config  # the secret is made here, by whichever launcher is first
  # shellcheck disable=SC2016 # the job's shell knows the node list
  write_job 1 'export TMPDIR='"$STATE/tmp"'
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1)
srun bash -c "[ \$SLURM_NODEID = 0 ] || sleep 5; exec '"$TESSERA_BINARY launch --starter fork --nnodes 2 --nproc_per_node 2"' \
  --master_addr $head --master_port 29513 '"$JOBS/work_a_while\""
  local job
  job=$(in_room 30 sbatch --parsable --no-requeue --nodelist=node1,node2 "$JOBS/job")
  sleep 3
  "$HERE/lab" in "$STATE" node3 setpriv --reuid nobody --regid nogroup --clear-groups "$TESSERA_STRANGER" 10.77.0.1 29513 8 |
    tee "$JOBS/stranger"
  wait_for 60 'the job ends' job_has_ended "$job"
  expect "$JOBS/out" '^status 0$'
  expect "$JOBS/stranger" 'as user 65534: [1-9][0-9]* connections' 'longest word 40 bytes'
  [ "$(grep -c 'works$' "$JOBS/out")" = 4 ] || fail 'not all ranks have worked'
  [ "$(grep -c "does not hold this job's secret" "$JOBS/out")" -le 1 ] || fail 'more than one line about strangers'
  [ "$(stat -c %a "$JOBS/config/tessera/secret")" = 600 ] || fail 'others can read the secret'
  ! grep -qF "$(<"$JOBS/config/tessera/secret")" "$JOBS/out" || fail 'the secret is in the output'
}

# Experiments of each family, submitted, tabled, reported and collected without a hand on them.
experiments() {
  cd "$JOBS"
  submit deepspeed/multi_node/2_nodes ddp/multi_node/2_nodes fsdp/bloom/multi_node/2_nodes \
    fsdp/custom_model/weak_scaling/2_gpus --num_train_epochs 1
  expect submitted '^job [0-9]+  deepspeed/multi_node/2_nodes  /.*/runs/deepspeed/multi_node/2_nodes/001$'
  wait_for 150 'all runs have ended' none_is_open
  expect status.txt '^0 waiting, 0 running, 4 finished, 0 failed$'
  holds_the_logs_loss deepspeed/multi_node deepspeed/multi_node/2_nodes
  holds_the_logs_loss fsdp/custom_model/weak_scaling fsdp/custom_model/weak_scaling/2_gpus
  grep -q '"gate_GBps"' runs/fsdp/bloom/multi_node/2_nodes/001/output/run.json || fail 'run.json lacks the gate'
  in_room 30 "$TESSERA_BINARY" experiment report -o page.html
  grep -q 'deepspeed/multi_node/2_nodes' page.html || fail 'the page lacks a run'
  in_room 30 "$TESSERA_BINARY" experiment collect ddp -o home
  [ -s home/ddp/multi_node/2_nodes/001/output/run.json ] || fail 'collect left the record out'
}

# A gate that fails ends a job before training; a lost node is named, and rerun fills the row; a time limit is an
# interruption.
experiment_faults() {
  cd "$JOBS"
  submit fsdp/bloom/multi_node/2_nodes --min_busbw 100000 --num_train_epochs 1
  wait_for 150 'the gate has failed' none_is_open
  expect status.txt 'fsdp/bloom/multi_node/2_nodes .* failed .*bandwidth gate: below the threshold \(46\)'
  [ ! -e runs/fsdp/bloom/multi_node/2_nodes/001/output/run.json ] || fail 'it was trained below the threshold'

  echo '{"tessera_site": 1, "sbatch": ["--no-requeue", "--nodelist=node3,node4"]}' >site.json
  submit deepspeed/multi_node/2_nodes --num_train_epochs 400 --eval_strategy no --logging_steps 1 --site site.json
  wait_for 150 'training has begun' grep -qsr "'loss'" runs/deepspeed/multi_node/2_nodes/001/log
  "$HERE/lab" kill "$STATE" node4
  wait_for 150 'the lost node is named' status_says 'deepspeed/multi_node/2_nodes .* failed .*(node failure|rank 0 on node3 and ranks 2-3 on node4 have lost contact)'
  bring_back node4
  sed -i 's/"value": "400"/"value": "1"/' runs/deepspeed/multi_node/2_nodes/001/experiment.json
  in_room 60 "$TESSERA_BINARY" experiment rerun --failed deepspeed
  wait_for 150 'the second run has ended' none_is_open
  expect status.txt 'deepspeed/multi_node/2_nodes +002 .* finished'
  in_room 30 "$TESSERA_BINARY" experiment table deepspeed/multi_node >table.txt
  expect table.txt '^2 nodes x 2 GPUs +[0-9.]+ +[0-9.]+'

  # As at a time limit: the job saves, requeues itself and resumes; it is one run.
  local name=fsdp/custom_model/multi_node/2_nodes job
  submit $name --gate off --num_train_epochs 20 --eval_strategy no --logging_steps 1
  wait_for 150 'training has begun' grep -qsr "'loss'" runs/$name/001/logs
  job=$(sed -n 's/.*"job_id":"\([0-9]*\)".*/\1/p' runs/$name/001/submitted.json)
  in_room 20 scancel --signal=USR1 "$job"
  wait_for 150 'the run has resumed' grep -qsr 'resuming after step' runs/$name/001/logs
  wait_for 120 'the run has ended' none_is_open
  expect status.txt "$name +001 .* finished"
}

# Two users submit the same experiment into one folder at the same time: each has a run, and sees and tables only that.
two_users() {
  cd "$JOBS"
  mkdir -m 1777 runs nobody games
  as nobody "$TESSERA_BINARY" --version || skip "user nobody cannot start $TESSERA_BINARY: a folder above it is private"
  local name=fsdp/bloom/baseline user
  local submit=("$TESSERA_BINARY" experiment submit "$name" --scale tiny --num_train_epochs 1 --eval_strategy no)
  as nobody "${submit[@]}" --seed 1 >nobody/submitted &
  as games "${submit[@]}" --seed 2 >games/submitted
  wait $!
  for user in nobody games; do
    as $user "$TESSERA_BINARY" experiment status >$user/status
    expect $user/status '^[01] waiting, [01] running, [01] finished, 0 failed$'
    expect $user/submitted "^job $(awk '{print $3}' $user/status | head -n 1)  $name"
  done
  [ "$(stat -c %U runs/$name/001 runs/$name/002 | sort | xargs)" = 'games nobody' ] || fail 'a run has the wrong owner'
  for user in nobody games; do
    wait_for 150 "$user's run has ended" has_finished $user
    local loss
    loss=$(sed -n "s/.*'train_loss': \([0-9.]*\).*/\1/p" "$(awk '{print $4}' $user/submitted)"/log*/*.out)
    [ -n "$loss" ] || fail "$user's log has no loss"
    as $user "$TESSERA_BINARY" experiment table fsdp/bloom/multi_gpu --format csv >$user/table
    expect $user/table "$(printf '%.8s' "$loss")"
  done
  in_room 30 "$TESSERA_BINARY" experiment status --user all >status.txt
  expect status.txt " nobody .*finished" " games .*finished" '^0 waiting, 0 running, 2 finished, 0 failed$'
  if in_room 30 "$TESSERA_BINARY" experiment status 2>refused; then fail 'root has no run here'; fi
  expect refused 'none of these runs is of user root; --user takes games, nobody or all'
  chmod 755 runs/$name && chown nobody runs/$name
  if as games "${submit[@]}" 2>refused; then fail "wrote into another user's folder"; fi
  expect refused "Permission denied; .*/$name belongs to user nobody"
}

# as USER COMMAND...: in the room.
as() {
  local user=$1
  shift
  in_room 60 setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups env HOME="$JOBS/$user" "$@"
}

has_finished() {
  rm -f "runs/.queue.$1.json"
  as "$1" "$TESSERA_BINARY" experiment status >"$1/status"
  grep -q '^0 waiting, 0 running, 1 finished, 0 failed$' "$1/status"
}

# Slurm's own time limit: the signal that it sends 120 s (and its period of 30 s) before the end lets a run of 3 minutes
# save after half a minute and go on in its next turns; it is one run with one row. Without a signal the end is named.
time_limit() {
  cd "$JOBS"
  local name=fsdp/custom_model/multi_node/2_nodes
  submit $name --gate off --time 00:03:00 --num_train_epochs "${TESSERA_LIMIT_EPOCHS:-150}" --eval_strategy no
  wait_for 170 'Slurm has sent its signal, and the run has resumed' grep -qsr 'resuming after step' runs/$name/001/logs
  wait_for 600 'the run has ended' none_is_open
  expect status.txt "$name +001 .* finished" '^0 waiting, 0 running, 1 finished, 0 failed$'
  holds_the_logs_loss fsdp/custom_model/multi_node $name

  echo '{"tessera_site": 1, "sbatch": ["--signal=URG@1", "--no-requeue"]}' >site.json  # a signal that nobody heeds
  submit ddp/multi_node/2_nodes --time 00:01:00 --num_train_epochs 4000 --eval_strategy no --site site.json
  wait_for 240 'the limit is named' status_says 'ddp/multi_node/2_nodes .* failed .*time limit .*: give more --time'
}

# Whole families at tiny scale; takes minutes and eight nodes.
families() {
  cd "$JOBS"
  submit ddp/multi_node fsdp/custom_model/weak_scaling deepspeed/multi_node \
    deepspeed/multi_gpu/2_gpus_stages_comparison --max_parallel 3
  wait_for 1500 'all runs have ended' none_is_open
  expect status.txt '^0 waiting, 0 running, 18 finished, 0 failed$'
  local table
  for table in ddp/multi_node fsdp/custom_model/weak_scaling deepspeed/multi_node \
    deepspeed/multi_gpu/2_gpus_stages_comparison; do
    in_room 30 "$TESSERA_BINARY" experiment table "$table"
  done
  holds_the_logs_loss deepspeed/multi_node deepspeed/multi_node/8_nodes
  holds_the_logs_loss fsdp/custom_model/weak_scaling fsdp/custom_model/weak_scaling/16_gpus
  in_room 60 "$TESSERA_BINARY" experiment report -o page.html
}

submit() { in_room 90 "$TESSERA_BINARY" experiment submit "$@" --scale tiny >submitted; }

none_is_open() {
  status_says '^0 waiting, 0 running,'
}

# The kept answer of Slurm may be 30 s old.
status_says() {
  rm -f runs/.queue.*.json
  in_room 30 "$TESSERA_BINARY" experiment status >status.txt
  grep -qE "$1" status.txt
}

# holds_the_logs_loss TABLE EXPERIMENT: the row has the loss that the run printed.
holds_the_logs_loss() {
  local loss
  loss=$(sed -n "s/.*'train_loss': \([0-9.]*\).*/\1/p" runs/"$2"/001/log*/*.out)
  in_room 30 "$TESSERA_BINARY" experiment table "$1" --format csv >table.csv
  grep -q "$(printf '%.8s' "$loss")" table.csv || fail "the table of $1 lacks the loss $loss of $2"
}

all_ranks_work() { [ "$(grep -cs 'works$' "$JOBS/out")" = 4 ]; }

bring_back() {
  "$HERE/lab" start "$STATE" "$1"
  wait_for 60 "$1 is back" node_is_idle "$1"
}

# --- helpers --------------------------------------------------------------------------------------

# in_room SECONDS COMMAND...: Slurm's clients retry for a long time if something is down, so each has a time limit.
# The limit is set within the room: a signal to the process that enters the room would not reach them.
in_room() { "$HERE/lab" in "$STATE" room timeout "$@"; }

# write_job RANKS_PER_NODE COMMANDS: two nodes, output in $JOBS/out, exit status of the last command.
write_job() {
  # shellcheck disable=SC2016 # for the shell of the job
  printf '%s\n' '#!/bin/bash' "#SBATCH --nodes=2 --ntasks-per-node=$1 --output=$JOBS/out --time=5" "$2" \
    'status=$?' 'echo "status $status"' 'exit $status' >"$JOBS/job"
}

# run_job STATUS RANKS_PER_NODE COMMANDS: runs on the first two nodes to completion; the exit status must be STATUS.
run_job() {
  local expected=$1 status=0
  shift
  write_job "$@"
  in_room 120 sbatch --wait --nodelist=node1,node2 "$JOBS/job" || status=$?
  [ "$status" = "$expected" ] || fail "the job ended with status $status, expected $expected"
  expect "$JOBS/out" "^status $expected\$"
}

job_state() { in_room 20 scontrol show job "$1" | sed -nE 's/^ *JobState=([A-Z_]+).*/\1/p'; }
# The job has a state, and not an unfinished one. A failed scontrol shows no state.
job_has_ended() { job_state "$1" | grep -qvE '^(PENDING|CONFIGURING|RUNNING|SUSPENDED|COMPLETING|)$'; }
node_is_idle() { in_room 20 sinfo -h -N -n "$1" -t idle -o %N | grep -qx "$1"; }

# none_left NODE PATTERN: pgrep's status is 1 if nothing matches, and another one if it failed.
none_left() {
  local status=0
  "$HERE/lab" in "$STATE" "$1" pgrep -f -- "$2" >/dev/null || status=$?
  [ "$status" = 1 ]
}


wait_for() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || fail "timed out waiting: $what"
    sleep 0.5
  done
}

# expect FILE PATTERN...: each pattern must occur in the file.
expect() {
  local file=$1 pattern
  shift
  for pattern; do grep -qE -- "$pattern" "$file" || fail "expected in the output: $pattern"; done
}

skip() {
  echo "skipped: $1"
  exit 77
}

fail() {
  echo "FAILED: $1" >&2
  if [ -n "${JOBS:-}" ]; then
    tail -n 40 "$JOBS"/* "$STATE"/log/slurm*.log >&2 2>/dev/null || true
  fi
  exit 1
}

main "$@"
