#!/bin/bash
#SBATCH --job-name=eval-base-en-llama-3-8b-0a1b2c3d
#SBATCH --output=/shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d/job.log
#SBATCH --chdir=/shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d
#SBATCH --account=eval
#SBATCH --partition=cpu,long
#SBATCH --qos=normal
#SBATCH --reservation=night
#SBATCH --constraint='avx512&ib'
#SBATCH --nodelist=n7
#SBATCH --exclude='n[1-3]'
#SBATCH --dependency=afterok:12
#SBATCH --comment='of the team'
#SBATCH --mail-user=me@example.com
#SBATCH --mail-type=END,FAIL
#SBATCH --time=2-00:00:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32768M
#SBATCH --gpus-per-node=1
#SBATCH --no-requeue
#SBATCH --signal=B:USR2@60
#SBATCH --open-mode=append
#SBATCH --export=NEMOTRON_SEAL
#SBATCH --wckey=eval
#SBATCH --licenses=scratch:1
#SBATCH --exclusive

trap '' USR2
exec python3 -I /shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d/step.pyz /shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d
