#!/bin/bash
#SBATCH --job-name=eval-base-en-llama-3-8b-0a1b2c3d
#SBATCH --output=/shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d/job.log
#SBATCH --chdir=/shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d
#SBATCH --account=eval
#SBATCH --partition=cpu
#SBATCH --comment='nemotron: llama-3-8b to /shared/me/results/run-a'
#SBATCH --time=04:00:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32768M
#SBATCH --requeue
#SBATCH --signal=B:USR2@60
#SBATCH --open-mode=append
#SBATCH --export=NEMOTRON_SEAL

trap '' USR2
exec python3 -I /shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d/step.pyz /shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d
