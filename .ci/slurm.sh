#!/usr/bin/env bash
# A cluster of Slurm for tests, on hosts of .ci/hosts.sh: network namespaces of this machine.
#
#   .ci/slurm.sh up HOSTS CPUS      starts it on so many hosts, each with so many processors, as it tells Slurm
#   .ci/slurm.sh down               takes it away, with all that runs in it
#   .ci/slurm.sh can                ends well if this machine lets us; else says in a line why not
#   .ci/slurm.sh run COMMAND...     a command on its first host: srun, sbatch, squeue
#
# Keys, sockets and files are in a folder of their own, SLURM_TEST_FOLDER or /tmp/isles-slurm. A Slurm that is installed
# is not asked, and nothing of it is changed.
set -euo pipefail

folder=${SLURM_TEST_FOLDER:-/tmp/isles-slurm}
hosts=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/hosts.sh

can() {
    local program
    for program in munged slurmctld slurmd srun; do
        command -v "$program" >/dev/null || {
            echo "there is no $program (apt-get install slurmd slurmctld slurm-client munge)"
            return 1
        }
    done
    "$hosts" can
}

# What is said of processors need not be true. PMIx has its files in a folder that each host has for itself.
configure() {
    local host=$folder/islehost$1
    mkdir -p "$host/tmp"
    cat >"$host/slurm.conf" <<END
ClusterName=isles
SlurmctldHost=islehost1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SlurmdParameters=config_overrides
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmdLogFile=$folder/slurmd.%n.log
SlurmdSpoolDir=$folder/spool.%n
StateSaveLocation=$folder/state
NodeName=islehost[1-$2] CPUs=$3 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
    # The hosts have none that it could find.
    echo "CgroupPlugin=cgroup/v1" >"$host/cgroup.conf"
    echo "PMIxCliTmpDirBase=$host/tmp" >"$host/mpi.conf"
}

on() {
    local host=$1
    shift
    bash "$hosts" agent "islehost$host" "SLURM_CONF=$folder/islehost$host/slurm.conf" "$(printf '%q ' "$@")"
}

up() {
    local count=$1 cpus=$2 index
    down
    "$hosts" up "$count"
    mkdir -p "$folder/state"
    (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
    for index in $(seq "$count"); do configure "$index" "$count" "$cpus"; done
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"
    on 1 slurmctld
    for index in $(seq "$count"); do on "$index" slurmd; done
    for _ in $(seq 150); do
        if [ "$(on 1 sinfo --noheader --format=%D:%T 2>/dev/null)" = "$count:idle" ]; then return; fi
        sleep 0.1
    done
    echo "Slurm has not $count idle hosts after 15 s:" >&2
    tail -n 3 "$folder"/*.log >&2
    down
    return 1
}

down() {
    "$hosts" down
    if [ -s "$folder/munged.pid" ]; then kill "$(cat "$folder/munged.pid")" 2>/dev/null || true; fi
    # What is just ending may still write.
    rm -rf "$folder" 2>/dev/null || { sleep 1 && rm -rf "$folder"; }
}

case ${1:-} in
    up) up "$2" "$3" ;;
    down) down ;;
    can) can ;;
    run) shift; on 1 "$@" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d' >&2; exit 2 ;;
esac
