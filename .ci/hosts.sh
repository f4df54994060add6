#!/usr/bin/env bash
# Hosts for tests and measurements of MPI: network namespaces of this machine, joined by veth pairs and a bridge.
#
#   .ci/hosts.sh up N               makes the hosts islehost1 to islehostN; those of an earlier call are gone
#   .ci/hosts.sh down               takes them away, with all processes in them
#   .ci/hosts.sh can                ends well if this machine lets us; else says in a line why not
#   .ci/hosts.sh run openmpi|mpich HOSTS PER_HOST PROGRAM...
#                                   mpirun on the first host, PER_HOST ranks on each of HOSTS hosts
#   .ci/hosts.sh once openmpi|mpich HOSTS PER_HOST PROGRAM...
#                                   makes the hosts, runs, and takes them away
#   .ci/hosts.sh agent HOST COMMAND what mpirun starts a program on another host with, instead of ssh
#   .ci/hosts.sh link N up|down     the cable of a host
#
# Each has an address of 10.77.0.0/24 that exists in these namespaces only, its own name, and its own place for System V
# and POSIX names, so that a library does not take two of them for one host. The monotonic clock of each but the first
# is ahead, by 1,000 seconds a host. HOSTS_OPTIONS is handed on to mpirun.
set -euo pipefail

bridge=islebridge

hosts_there() {
    ip netns list | cut -d' ' -f1 | grep -E '^islehost[0-9]+$' || true
}

can() {
    [ "$(id -u)" = 0 ] || { echo "network namespaces need root"; return 1; }
    command -v ip >/dev/null || { echo "there is no ip (apt-get install iproute2)"; return 1; }
    local why
    why=$(ip netns add isleprobe 2>&1 && ip -n isleprobe link add probe0 type veth peer name probe1 2>&1) || {
        ip netns del isleprobe 2>/dev/null || true
        echo "network namespaces are not permitted here: ${why:-no reason given}"
        return 1
    }
    ip netns del isleprobe
}

down() {
    local host
    for host in $(hosts_there); do
        ip netns pids "$host" | xargs -r kill -9 2>/dev/null || true
        ip netns del "$host"
        rm -rf "/etc/netns/$host"
    done
    ip netns del "$bridge" 2>/dev/null || true
}

up() {
    local count=$1 index host names="127.0.0.1 localhost"
    down
    for index in $(seq "$count"); do
        names+=$'\n'"10.77.0.$index islehost$index"
    done
    ip netns add "$bridge"
    ip -n "$bridge" link add br0 type bridge
    ip -n "$bridge" link set br0 up
    for index in $(seq "$count"); do
        host=islehost$index
        ip netns add "$host"
        ip -n "$bridge" link add "port$index" type veth peer name eth0 netns "$host"
        ip -n "$bridge" link set "port$index" master br0 up
        ip -n "$host" addr add "10.77.0.$index/24" dev eth0
        ip -n "$host" link set eth0 up
        ip -n "$host" link set lo up
        mkdir -p "/etc/netns/$host"
        printf '%s\n' "$names" >"/etc/netns/$host/hosts"
    done
}

# A library may call with options of ssh before the host's name.
agent() {
    while [[ $1 == -* ]]; do shift; done
    local host=$1
    shift
    exec ip netns exec "$host" unshare --uts --ipc --time --monotonic "${host#islehost}000" --fork \
        bash -c "hostname $host; $*"
}

run() {
    local library=$1 hosts=$2 per_host=$3 own list="" index
    shift 3
    own=$(readlink -f "${BASH_SOURCE[0]}")
    for index in $(seq "$hosts"); do
        list+=${list:+,}islehost$index:$per_host
    done
    local agent ranks=$((hosts * per_host))
    # A core each where they fit, the same for whoever is compared; where they do not, waiting gives the core away.
    local yield=1
    if [ "$ranks" -le "$(nproc)" ]; then
        yield=0
        set -- bash -c 'exec taskset -c "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" "$@"' bash "$@"
    fi
    agent=$(mktemp)
    printf '#!/usr/bin/env bash\nexec bash %q agent "$@"\n' "$own" >"$agent"
    chmod +x "$agent"
    local words
    case $library in
        openmpi)
            # shellcheck disable=SC2206
            words=(mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca plm_rsh_agent "$agent"
                --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle "$yield"
                ${HOSTS_OPTIONS:-} --host "$list" -n "$ranks" "$@")
            ;;
        mpich)
            # shellcheck disable=SC2206
            words=(mpirun.mpich -launcher ssh -launcher-exec "$agent" -iface eth0 -hosts "$list" -n "$ranks"
                -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 ${HOSTS_OPTIONS:-} "$@")
            ;;
        *) echo "no library $library: openmpi, mpich" >&2; exit 2 ;;
    esac
    local code=0
    ip netns exec islehost1 unshare --uts --ipc bash -c 'hostname islehost1; exec "$@"' bash "${words[@]}" || code=$?
    rm -f "$agent"
    return "$code"
}

once() {
    up "$2"
    trap down EXIT
    run "$@"
}

case ${1:-} in
    up) up "$2" ;;
    down) down ;;
    can) can ;;
    link) ip -n "$bridge" link set "port$2" "$3" ;;
    agent) shift; agent "$@" ;;
    run) shift; run "$@" ;;
    once) shift; once "$@" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d' >&2; exit 2 ;;
esac
