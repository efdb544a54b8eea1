# a run
export EXPERIMENT_NAME="bloom $USER"   # for reports
export LOG_DIR=$PWD/log OUT=${LOG_DIR:-x}/out
A='single $X'; B="d \"q\" `date`" C=$(echo $(date)) D=~/x \
  E=a\ b
export F
