# Two SSH servers on loopback: a login node of the testbed's Slurm, and a host to jump through.
. scripts/lib/testbed/packages.sh

sshd_start() {
    mkdir -p "$state"
    needs sshd=openssh-server ssh=openssh-client tcsh  # csh is the login shell of many clusters
    rm -rf "$state/sshd"
    start sshd python scripts/lib/testbed/login_nodes.py "$state/sshd" "SLURM_CONF=$state/slurm/slurm.conf"
}

sshd_answers() {
    ssh -F "$state/sshd/home/.ssh/config" testbed-behind true
}

sshd_env() {
    variable NEL_TEST_SSH_CONFIG "$state/sshd/home/.ssh/config"
}
