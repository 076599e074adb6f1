#!/usr/bin/env bash
# Stands in for sbatch where no Slurm answers: accepts what sbatch itself would read of a job script.
while [[ $1 == -* ]]; do shift; done
head -n 1 "$1" | grep -qx '#!/bin/bash' && bash -n "$1" && grep -q '^#SBATCH --time=' "$1" && echo 1
