# shellcheck shell=bash
# Settings of the fine-tuning.
export WANDB_API_KEY=0123456789abcdef
export EXPERIMENT_NAME="bloom-baseline"
export LOG_DIR=$PWD/log
export OUTPUT_DIR=./bloom-qa-finetuned
export MODEL_NAME="bigscience/bloom-560m"
export MAX_LENGTH=512
export TRAIN_SIZE=500        # rows
export EVAL_SIZE=100
export NUM_EPOCHS=5
export BATCH_SIZE=1
export LEARNING_RATE=5e-5
export WEIGHT_DECAY=0.01
export GRAD_ACC=4
export FP16=True
export NCCL_DEBUG=INFO
export WANDB_NAME=${EXPERIMENT_NAME}_${SLURM_JOB_ID}
