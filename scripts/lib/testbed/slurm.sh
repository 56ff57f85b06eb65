# A Slurm cluster with accounting whose two nodes are this machine.
. scripts/lib/testbed/packages.sh
. scripts/lib/testbed/engine.sh

slurm_start() {
    mkdir -p "$state"
    needs slurmctld slurmd slurmdbd sbatch=slurm-client munged=munge mariadbd=mariadb-server
    # Jobs that run podman find the testbed's settings, as a cluster's admins would see to.
    engine_settings
    rm -rf "$state/slurm"
    start slurm python scripts/lib/testbed/cluster.py "$state/slurm" "CONTAINERS_CONF=$CONTAINERS_CONF" \
        "CONTAINERS_STORAGE_CONF=$CONTAINERS_STORAGE_CONF" "CONTAINERS_REGISTRIES_CONF=$CONTAINERS_REGISTRIES_CONF"
}

slurm_answers() {
    [ -e "$state/slurm/ready" ] && SLURM_CONF=$state/slurm/slurm.conf scontrol ping
}

slurm_env() {
    variable NEL_TEST_SLURM "$state/slurm/slurm.conf"
}
