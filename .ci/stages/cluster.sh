# shellcheck shell=bash disable=SC2154
# Ranks on several hosts: network namespaces, and a Slurm cluster of them. Sourced by test.

# With each library that is here. What a lost link or host leaves of the launcher is taken away with the hosts.
stage_hosts() {
    local library
    hosts_up=1
    for library in openmpi mpich; do
        if command -v "mpirun.$library" >/dev/null && command -v "mpicc.$library" >/dev/null; then
            (on_hosts "$library")
        else
            say "without $library, which is not here"
        fi
    done
    .ci/hosts.sh down
    hosts_up=
}

on_hosts() {
    local library=$1 isles=$CARGO_TARGET_DIR/debug/isles
    export MPICC=mpicc.$library
    cargo build --quiet --locked -p isles-transport-mpi --features library --example conformance
    build_with_mpi --bin isles-jacobi --bin isles-hashtable
    .ci/hosts.sh up 3
    timeout 120 .ci/hosts.sh run "$library" 3 2 "$CARGO_TARGET_DIR/debug/examples/conformance" 2>"$scratch/err" |
        tee "$scratch/out" || true
    grep -q '^[1-9][0-9]* promises kept by 6 ranks' "$scratch/out" || {
        tail -20 "$scratch/err"
        return 1
    }
    local bc="run bc --json $scratch/scores.json"
    "$isles" $bc --places 1 --csv "$scratch/one.csv" >/dev/null
    timeout 120 .ci/hosts.sh run "$library" 3 2 "$isles" $bc --csv "$scratch/six.csv" >"$scratch/out" 2>&1 || {
        tail -20 "$scratch/out"
        return 1
    }
    cmp "$scratch/one.csv" "$scratch/six.csv"
    echo "$library, six ranks on three hosts: the scores of one place"
    timeout 120 .ci/hosts.sh run "$library" 3 2 "$isles" run pi --trace "$scratch/trace" >"$scratch/out" 2>&1 || {
        tail -20 "$scratch/out"
        return 1
    }
    grep -h "the clocks of 3 hosts agree" "$scratch/out"
    aligned "$isles" "$scratch/trace" 6
    pages_on_hosts "$library" "$isles"
    lose "$library" link 0
    # As `isles launch` starts it, which lets the launcher of Open MPI notice, too.
    local words
    words=$("$isles" launch --hosts 127.0.0.1 --dry-run -- x | grep -o -- '--mca oob_tcp_keepalive[^ ]* [0-9]*' || true)
    HOSTS_OPTIONS=${words//$'\n'/ } lose "$library" link 3
    lose "$library" host 3
}

# Arrays in shared pages, whose pages travel over sockets between three hosts: the grid of one place, and a table that
# is locked.
pages_on_hosts() {
    local library=$1 isles=$2 model
    for model in exclusive strong release; do
        timeout 120 .ci/hosts.sh run "$library" 3 2 "$isles" run jacobi --memory svm --model "$model" --order 130 \
            --sweeps 5 --verify --json "$scratch/pages.json" >"$scratch/out" 2>&1 &&
            timeout 120 .ci/hosts.sh run "$library" 3 2 "$isles" run hashtable --model "$model" --operations 500 \
                --verify --json "$scratch/pages.json" >>"$scratch/out" 2>&1 || {
            tail -20 "$scratch/out"
            return 1
        }
    done
    echo "$library, six ranks on three hosts: shared pages of each model, and their locks"
}

# A run whose third host goes away, so many seconds after its begin: all of its ranks end, and a line names a place.
lose() {
    local library=$1 cut=$2 after=$3 run begin
    .ci/hosts.sh up 3
    : >"$scratch/lost"
    .ci/hosts.sh run "$library" 3 2 "$isles" run bc --rmat high --json "$scratch/lost.json" >"$scratch/lost" 2>&1 &
    run=$!
    begin=$SECONDS
    until grep -q '6 places (mpi)' "$scratch/lost"; do
        [ $((SECONDS - begin)) -lt 60 ] || { cat "$scratch/lost"; say "the run did not begin"; return 1; }
        sleep 0.02
    done
    sleep "$after"
    case $cut in
        link) .ci/hosts.sh link 3 down ;;
        host) ip netns pids islehost3 | xargs -r kill -9 ;;
    esac
    begin=$SECONDS
    until [ -z "$(ranks_on_hosts)" ]; do
        [ $((SECONDS - begin)) -le 10 ] || { cat "$scratch/lost"; say "a $cut is gone, and ranks still run"; return 1; }
        sleep 0.2
    done
    echo "$library, a $cut gone after $after s: all ranks have ended within $((SECONDS - begin + 1)) s"
    if [[ $library = openmpi && ${HOSTS_OPTIONS:-} = *keepalive* ]]; then
        until ! kill -0 "$run" 2>/dev/null; do
            [ $((SECONDS - begin)) -le 15 ] || { cat "$scratch/lost"; say "mpirun waits for a host"; return 1; }
            sleep 0.2
        done
        echo "$library, a $cut gone after $after s: mpirun has ended within $((SECONDS - begin + 1)) s"
    fi
    # Else a launcher may wait for a host that is cut off.
    .ci/hosts.sh down
    if wait "$run"; then
        say "the run ended as if nothing had happened"
        return 1
    fi
    if [ "$cut" = link ]; then
        # A launcher that notices may be earlier.
        grep -m 1 'isles: place [0-5]: no sign of life from place [0-5]' "$scratch/lost" ||
            grep -m 1 'Remote daemon:.* on node islehost3' "$scratch/lost"
    fi
}

ranks_on_hosts() {
    local host process
    for host in 1 2 3; do
        for process in $(ip netns pids "islehost$host"); do
            # The command becomes the program of the application.
            case $(cat "/proc/$process/comm" 2>/dev/null) in isles | isles-*) echo "$process" ;; esac
        done
    done
}

# Each library with its way to hear of other ranks from Slurm. The folder is its own, so that no other Slurm is meant.
stage_slurm() {
    local library mpi slurm=.ci/slurm.sh isles=$CARGO_TARGET_DIR/debug/isles
    export SLURM_TEST_FOLDER=$scratch/slurm
    slurm_up=1
    timeout 60 $slurm up 2 4
    for library in openmpi mpich; do
        if ! command -v "mpicc.$library" >/dev/null; then
            say "without $library, which is not here"
            continue
        fi
        mpi=pmix
        [ "$library" = openmpi ] || mpi=pmi2
        MPICC=mpicc.$library build_with_mpi
        local bc="run bc --json $scratch/scores.json"
        "$isles" $bc --places 1 --csv "$scratch/one.csv" >/dev/null
        slurm_runs "$library" srun --mpi="$mpi" -N 2 --ntasks-per-node=2 "$isles" $bc --csv "$scratch/srun.csv"
        cmp "$scratch/one.csv" "$scratch/srun.csv"
        # The job of the book, smaller, and with another graph.
        sed "s|bc --rmat large --json bc.json|${bc#run } --csv $scratch/job.csv|" docs/isles.sbatch >"$scratch/job"
        slurm_runs "$library" sbatch --wait -N 2 --ntasks-per-node=2 -o "$scratch/job.out" \
            "$scratch/job" "$isles" "$mpi"
        cmp "$scratch/one.csv" "$scratch/job.csv"
        grep -q 'islehost1 .* memory: 1; mpi: 2-3' "$scratch/job.out"
        echo "$library, $mpi: four ranks on two hosts by srun and by a job have the scores of one place"
    done
    slurm_runs "$library" srun --mpi=none -n 2 "$isles" run pi
    grep -q '^warning: Slurm started 2 independent tasks' "$scratch/out"
    $slurm down
    slurm_up=
}

# slurm_runs LIBRARY COMMAND...: ends well in time, and what it says is in $scratch/out.
slurm_runs() {
    local library=$1
    shift
    timeout 120 .ci/slurm.sh run "$@" >"$scratch/out" 2>&1 || {
        tail -20 "$scratch/out"
        say "$library: $1 failed"
        return 1
    }
}
