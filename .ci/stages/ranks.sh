# shellcheck shell=bash disable=SC2154
# Ranks of MPI on one host. Sourced by test.

# build_with_mpi MORE...: the command, the applications that these stages run, and MORE programs, with ranks as places.
# Of the whole workspace, so that what does not know of MPI is that of the stage of tests.
build_with_mpi() {
    cargo build --quiet --locked --workspace --features isles-cli/mpi,isles-transport-mpi/library \
        --bin isles --bin isles-bc --bin isles-pi "$@"
}

# cluster_page: the first lines of docs/cluster.md give four ranks, where ./run has built its programs without MPI; one
# rank builds the application, and another application as well.
cluster_page() {
    local line lines
    cargo build --quiet --release --locked -p isles-cli -p isles-bc -p isles-pi
    if mpirun -n 2 "$CARGO_TARGET_DIR/release/isles" run bc >"$scratch/out" 2>&1; then
        say "ranks of a program without MPI ran"
        return 1
    fi
    grep -q '^error: machine mpi: isles-bc was built without MPI; build it with: cargo build --release -p isles-bc' \
        "$scratch/out"
    lines=$(sed -n '/^```text$/,/^```$/{/^```/d;p}; /^Or let/q' docs/cluster.md)
    while read -r line; do
        timeout 600 bash -c "${line//target\/release/$CARGO_TARGET_DIR/release}" >"$scratch/out" 2>&1 </dev/null || {
            tail -20 "$scratch/out"
            say "this line of docs/cluster.md fails: $line"
            return 1
        }
    done <<<"$lines"
    grep '; 4 places (mpi' "$scratch/out"
    [ "$(grep -c '^building isles-bc, which was built without MPI' "$scratch/out")" -le 1 ]
    timeout 600 mpirun -n 2 "$CARGO_TARGET_DIR/release/isles" run pi >"$scratch/out" 2>&1
    grep '; 2 places (mpi' "$scratch/out"
}

# ranks_on HOSTS COMMAND...: three ranks, told to be on hosts as in 0,0,1; those of different hosts share no memory.
# What they say is in $scratch/out, and shown if they fail. `mpirun` may name another launcher.
ranks_on() {
    local hosts=$1
    shift
    # shellcheck disable=SC2016
    timeout 120 "${mpirun:-mpirun}" -n 3 bash -c 'hosts=($1); shift
        ISLES_TEST_HOST=${hosts[${OMPI_COMM_WORLD_RANK:-$PMI_RANK}]} exec "$@"' \
        - "${hosts//,/ }" "$@" >"$scratch/out" 2>&1 || {
        tail -20 "$scratch/out"
        return 1
    }
}

# refused LINE WHAT COMMAND...: the command fails, and a line of what it says matches LINE; WHAT is said if not.
refused() {
    local line=$1 what=$2
    shift 2
    if timeout 120 "$@" >"$scratch/out" 2>&1 || ! grep "$line" "$scratch/out"; then
        tail -20 "$scratch/out"
        say "$what"
        return 1
    fi
}

# doctor_of_two_hosts ISLES: whether `isles doctor` on two ranks of each of two hosts prints the block that the page of
# clusters shows, apart from names and numbers.
doctor_of_two_hosts() {
    # shellcheck disable=SC2016
    timeout 120 mpirun -n 4 bash -c 'ISLES_TEST_HOST=$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)) exec "$@"' - \
        "$1" doctor >"$scratch/out" 2>&1 || {
        tail -20 "$scratch/out"
        return 1
    }
    local line lines=0
    while IFS= read -r line; do
        lines=$((lines + 1))
        grep -qE "^$line\$" "$scratch/out" || { say "isles doctor prints no line like: $line"; return 1; }
    done < <(awk '/^<!-- printed by .\/test mpi/ { of = 1 } of && /^```/ { inside = !inside; of = inside; next }
        inside && !/^\.\./' docs/cluster.md |
        sed -E 's/^( +[0-9]) .*( memory: .*)/\1 .*\2/; s/^(ok +(processors|host name) +).*/\1.*/')
    ((lines > 0)) || { say "docs/cluster.md has no block of ./test mpi"; return 1; }
}

# With whichever library `mpicc` compiles for.
stage_mpi() {
    local isles=$CARGO_TARGET_DIR/debug/isles examples=$CARGO_TARGET_DIR/debug/examples
    cargo clippy --quiet --locked -p isles-transport-mpi -p isles -p isles-app -p isles-lab -p isles-cli \
        --features isles-transport-mpi/library,isles/mpi,isles-app/mpi --all-targets -- -D warnings
    build_with_mpi --bin isles-modularity \
        --example conformance --example section --example workers --example guards --example given-up
    timeout 300 mpirun -n 3 "$examples/conformance" 2>"$scratch/err" | tee "$scratch/out" || true
    grep -q '^[1-9][0-9]* promises kept by 3 ranks' "$scratch/out" || {
        tail -20 "$scratch/err"
        return 1
    }
    scores_of_ranks
    ranks_on 0,1,2 "$isles" run pi --trace "$scratch/trace"
    aligned "$isles" "$scratch/trace" 3
    doctor_of_two_hosts "$isles"
    observed "$isles"
    killed_rank "$isles"
    refused_ranks
    if ! shared_out 6 timeout 60 mpirun -n 3 "$examples/workers"; then
        say "docs/listings/workers.rs gives a rank less than 6 of 50 jobs"
        return 1
    fi
    timeout 300 mpirun -n 3 "$examples/given-up" >"$scratch/out" 2>"$scratch/err" || {
        tail -20 "$scratch/err"
        return 1
    }
    cat "$scratch/out"
    clusters_of_ranks
    sections_of_ranks
    cluster_page
}

# Scores of betweenness, bit by bit, with both kinds of collectives.
scores_of_ranks() {
    local hosts bc="run bc --json $scratch/scores.json"
    "$isles" $bc --places 1 --csv "$scratch/one.csv" >/dev/null
    for hosts in 0,0,0 0,0,1 0,1,2; do
        ranks_on "$hosts" "$isles" $bc --csv "$scratch/$hosts.csv"
        cmp "$scratch/one.csv" "$scratch/$hosts.csv"
        echo "ranks on hosts $hosts: the scores of one place"
    done
    ISLES_COLLECTIVES=flat ranks_on 0,0,1 "$isles" $bc --csv "$scratch/flat.csv"
    cmp "$scratch/one.csv" "$scratch/flat.csv"
}

# Each in one line: a launcher among ranks, a wrong setting, ranks of different settings, ranks of two programs, and a
# rank of the launcher of one library that runs a program of the other.
refused_ranks() {
    refused '^error: isles launch does not start MPI ranks; use mpirun' \
        "isles launch among ranks was not refused in a line" \
        mpirun -n 3 "$isles" launch --ui -- "$isles-pi"
    ISLES_COLLECTIVES=strange refused '^error: .*ISLES_COLLECTIVES is "strange"; allowed: hierarchical, flat' \
        "collectives of a strange kind ran" mpirun -n 2 "$isles" run pi
    refused '^error: .*has different ISLES_\* variables' "ranks with different settings ran" \
        mpirun -n 1 -x ISLES_COLLECTIVES=flat "$isles" run pi : -n 1 "$isles" run pi
    refused '^error: .*runs a different program from rank 0' "ranks of two programs ran" \
        mpirun -n 1 "$examples/workers" : -n 1 "$examples/guards"
    refused . "a rank of another library's launcher ran" \
        env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 PMI_RANK=0 PMI_SIZE=3 "$isles" run pi
}

# Guards of shared objects, and a whole program over them.
clusters_of_ranks() {
    local hosts method
    local modularity="$CARGO_TARGET_DIR/debug/isles-modularity --graph power --json $scratch/clusters.json"
    for method in "greedy --steps 60" multilevel; do
        $modularity --method $method --places 1 --csv "$scratch/${method%% *}.csv" >/dev/null
    done
    for hosts in 0,0,0 0,1,2; do
        ranks_on "$hosts" "$examples/guards" 100
        grep '^100 programs over shared objects' "$scratch/out"
        for method in "greedy --steps 60" multilevel; do
            ranks_on "$hosts" $modularity --method $method --csv "$scratch/clusters.csv"
            cmp "$scratch/${method%% *}.csv" "$scratch/clusters.csv"
        done
        echo "ranks on hosts $hosts: the clusters of one place"
    done
}

# A program of C with sections of Isles in it. A section is not recorded, and says so.
sections_of_ranks() {
    local hosts section=$examples/section
    mpicc -Wall -Werror -o "$section" docs/listings/section.c -L"$examples" -lsection -lm
    for hosts in 0,0,0 0,1,2; do
        ranks_on "$hosts" "$section"
        grep '^[1-9][0-9]* sections: good$' "$scratch/out"
    done
    ISLES_RECORD=$scratch/section \
        refused '^error: ISLES_RECORD is .*; allowed: nothing, because a section of an MPI program' \
        "a section with ISLES_RECORD ran" mpirun -n 2 "$section"
}

# aligned ISLES TRACE PLACES: the trace has so many places, and no message of it is handled before it is sent, beyond
# the error of the clocks, which the run has said in $scratch/out.
aligned() {
    "$1" trace stats --json "$2" >"$scratch/stats.json"
    python3 - "$scratch/stats.json" "$3" "$scratch/out" <<'END'
import json, re, sys
stats = json.load(open(sys.argv[1]))
places = [place["place"] for place in stats["places"]]
assert places == list(range(int(sys.argv[2]))) and not stats["missing"], places
ways = [pair["shortest"] for pair in stats["messages"] if pair["shortest"] is not None]
assert len(ways) >= 2 * (len(places) - 1), stats["messages"]
error = float(re.search(r"hosts agree within ([0-9.]+) us", open(sys.argv[3]).read()).group(1))
assert -max(50, 2 * error) * 1e-6 < min(ways) < 1, (ways, error)
print(f"a trace of {len(places)} places: the shortest way of a message is {min(ways) * 1e6:.1f} us")
END
}

# observed ISLES: what is recorded and shown of three ranks. Those of the first one's host are seen; a line says of
# others that they are missing, and nothing else is said.
observed() {
    local hosts
    for hosts in 0,0,0 0,0,1; do
        rm -rf "$scratch/tape"
        ranks_on "$hosts" "$1" run bc --graph karate --json "$scratch/bc.json" --csv "$scratch/bc.csv" \
            --record "$scratch/tape"
        "$1" report "$scratch/tape" --html "$scratch/report.html"
        python3 - "$scratch" "$hosts" <<'END'
import json, re, sys
scratch, hosts = sys.argv[1], sys.argv[2].split(",")
text = open(scratch + "/report.html").read()
report = json.loads(re.search(r'id="isles-report">(.*?)</script>', text, re.S).group(1))
run, places = report["run"], report["snapshots"][-1]["places"]
assert (run["machine"], run["places"]) == ("mpi", 3), run
seen = [host == hosts[0] for host in hosts]
for counter in ["tasks", "messages_sent", "memory_bytes"]:
    assert [value > 0 for value in places[counter]] == seen, (counter, places[counter])
missing = [place for place, is_seen in enumerate(seen) if not is_seen]
told = re.findall(r"^isles: place (\d) is missing from the recording", open(scratch + "/out").read(), re.M)
assert told == [str(place) for place in missing], told
assert [place for place, host in enumerate(run["host_of"] or []) if "not seen" in host] == missing, run["host_of"]
print(f"a tape of ranks on hosts {','.join(hosts)}: {sum(seen)} of 3 places are seen, missing {missing}")
END
    done
    python3 - "$1" "$scratch" <<'END'
import json, re, subprocess, sys, urllib.request
words = ["mpirun", "-n", "3", sys.argv[1], "run", "bc", "--rmat", "large", "--ui"]
words += ["--json", sys.argv[2] + "/bc.json", "--csv", sys.argv[2] + "/bc.csv"]
run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    told, address = "", None
    while not address:
        line = run.stdout.readline()
        assert line, told
        told += line
        address = re.search(r"(http://127\.0\.0\.1:\d+)/#token=([0-9a-f]+)", line)
    base, token = address.groups()
    asked = urllib.request.Request(base + "/api/v1/stream", headers={"Authorization": "Bearer " + token})
    busy = set()
    for line in urllib.request.urlopen(asked, timeout=30):
        if line.startswith(b"data:"):
            states = json.loads(line[5:])["places"]["state"]
            busy |= {place for place, state in enumerate(states) if state == "busy"}
        if busy == {0, 1, 2}:
            break
    assert busy == {0, 1, 2}, busy
    print("the page of three ranks shows each of them at work")
finally:
    run.terminate()
    run.wait()
END
}

# killed_rank ISLES: ranks with a page, of which one is killed, end soon, say which it was, and leave nothing.
killed_rank() {
    python3 - "$1" "$scratch" <<'END'
import os, pathlib, re, signal, subprocess, sys, time
isles, scratch = sys.argv[1], pathlib.Path(sys.argv[2]) / "runtime"
scratch.mkdir()
def processes():
    for entry in pathlib.Path("/proc").iterdir():
        try:
            known = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
            if b"XDG_RUNTIME_DIR=%s\0" % bytes(scratch) in known:
                yield int(entry.name), (entry / "comm").read_text().strip(), known
        except OSError:
            pass  # it has gone meanwhile
for rank in range(3):
    run = subprocess.Popen(["mpirun", "-n", "3", isles, "run", "bc", "--rmat", "high", "--ui"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "XDG_RUNTIME_DIR": str(scratch)})
    told = ""
    while not re.search(r"127\.0\.0\.1:\d+/#token=", told):
        line = run.stdout.readline()
        assert line, told
        told += line
    mark = re.compile(rb"(^|\0)(OMPI_COMM_WORLD|PMI)_RANK=%d\0" % rank)
    of_rank = [number for number, name, known in processes() if name == "isles-bc" and mark.search(known)]
    assert len(of_rank) == 1, (rank, of_rank, [named[:2] for named in processes()])
    os.kill(of_rank[0], signal.SIGKILL)
    begun = time.monotonic()
    told += run.communicate(timeout=60)[0]
    ended = time.monotonic()
    took = ended - begun
    assert run.returncode != 0 and re.search("signal:? 9", told, re.I), told
    # The page tidies up a second after its run.
    left = lambda: [named[:2] for named in processes()] + list(scratch.glob("isles-*"))
    while left() and time.monotonic() < ended + 30:
        time.sleep(0.05)
    assert not left(), left()
    print(f"rank {rank} of a run with a page was killed: it has ended after {took:.1f} s, and nothing is left")
END
}

# In a crate of its own, because what rsmpi needs is none of the product. rsmpi does not notice another MPICC, so each
# library has its folder.
stage_rsmpi() {
    local project=$CARGO_TARGET_DIR/rsmpi library place hosts
    mkdir -p "$project/src"
    cp docs/listings/rsmpi.rs "$project/src/main.rs"
    printf '%s\n' '[package]' 'name = "sections"' 'version = "0.1.0"' 'edition = "2024"' '[workspace]' \
        '[dependencies]' "isles = { path = \"$PWD/crates/isles\", features = [\"mpi\"] }" \
        'mpi = { version = "0.8", default-features = false }' >"$project/Cargo.toml"
    for library in openmpi mpich; do
        if ! command -v "mpirun.$library" >/dev/null || ! command -v "mpicc.$library" >/dev/null; then
            say "without $library, which is not here"
            continue
        fi
        place=$project/$library
        MPICC=mpicc.$library CARGO_TARGET_DIR=$place \
            cargo build --quiet --manifest-path "$project/Cargo.toml"
        for hosts in 0,0,0 0,0,1; do
            mpirun=mpirun.$library ranks_on "$hosts" "$place/debug/sections"
            grep -q '^40 sections: good$' "$scratch/out"
            echo "$library, ranks on hosts $hosts: 40 sections"
        done
    done
}
