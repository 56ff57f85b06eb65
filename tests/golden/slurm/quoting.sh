#!/bin/bash
#SBATCH --job-name=eval-base-en-llama-3-8b-0a1b2c3d
#SBATCH --output=/shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d/job.log
#SBATCH --chdir=/shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d
#SBATCH --constraint='[rack1|rack2]'
#SBATCH --comment='it'"'"'s 100% "ours" #1; $(rm -rf ~) `x` \\ é'
#SBATCH --time=00:01:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --signal=B:USR2@15
#SBATCH --open-mode=append
#SBATCH --export=NEMOTRON_SEAL

trap '' USR2
exec python3 -I /shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d/step.pyz /shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d
