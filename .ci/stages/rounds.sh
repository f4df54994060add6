# shellcheck shell=bash disable=SC2154
# Many rounds of random programs, worlds, files and kills. Sourced by test.

# What the optimiser does must not show on a modelled chip: the stage of tests has compared the debug build with the
# same digests.
# simulated COMMAND ARGUMENTS...: a command of cargo for a release build. Both packages are named each time: what they
# use has the features of all that are named, and would be built again where they differ. The worlds are in the package
# `isles`, which a release build optimises fully and in one unit: they then take 110 s to compile and 22 s to run. With
# these options the whole build takes 60 s less, and they run for 25 s.
simulated() {
    local command=$1 package=profile.release.package.isles
    shift
    cargo "$command" --release --locked --config "$package.opt-level=1" --config "$package.codegen-units=4" \
        -p isles -p isles-transport-chip "$@"
}

stage_simulation() {
    ISLES_TEST_SEEDS=${ISLES_TEST_SEEDS:-$channel_worlds} \
        tested cargo test --release --locked -p isles-protocol --lib channel::
    ISLES_TEST_SEEDS=${ISLES_TEST_SEEDS:-$hub_worlds} \
        tested cargo test --release --locked -p isles-protocol --lib hub::
    simulated build --quiet --test worlds --test digests
    ISLES_TEST_SEEDS=${ISLES_TEST_SEEDS:-$seeds} tested simulated test --test worlds -- --skip hosts::
    ISLES_TEST_SEEDS=${ISLES_TEST_SEEDS:-$host_seeds} tested simulated test --test worlds hosts::
    tested simulated test --test digests every_build
}

stage_worlds() {
    ISLES_TEST_SEEDS=$channel_worlds_long tested cargo test --release --locked -p isles-protocol --lib channel::
    ISLES_TEST_SEEDS=$hub_worlds_long tested cargo test --release --locked -p isles-protocol --lib hub::
    ISLES_TEST_SEEDS=$page_programs_long tested cargo test --release --locked -p isles-protocol --lib svm::
    ISLES_TEST_SEEDS=$seeds_long tested simulated test --test worlds -- --skip hosts:: --skip given_up::
    ISLES_TEST_SEEDS=$given_up_seeds_long tested simulated test --test worlds given_up::
    ISLES_TEST_SEEDS=$host_seeds_long tested simulated test --test worlds hosts::
    # The table is synchronised with its disk at each start; in memory that costs nothing.
    TMPDIR=/dev/shm ISLES_TEST_SEEDS=$job_sequences \
        tested cargo test --release --locked -p isles-jobs --lib whatever_is_told
    ISLES_TEST_RUNS=${ISLES_TEST_RUNS:-$job_runs} tested cargo test --release --locked -p isles-jobs --test stress
}

stage_bounds() {
    ISLES_TEST_SEEDS=$bound_cases tested cargo test --release --locked -p isles-chip --lib bound::tests::no_
    cargo run --quiet --release --locked -p isles-lab -- repro bounds --csv "$scratch/bounds" >/dev/null
    if grep -q ',OUT,' "$scratch/bounds"; then
        say "a run that the search found is longer than its bound"
        return 1
    fi
}

# on_machines EXAMPLE PLACES ROUNDS: one machine after the other; ranks of MPI where there is a library.
on_machines() {
    local machine program=$CARGO_TARGET_DIR/release/examples/$1 places=$2 rounds=${ISLES_TEST_ROUNDS:-$3}
    cargo build --quiet --release --locked -p isles --example "$1"
    for machine in threads processes loopback chip:scc; do
        echo "$machine: $(ISLES_PLACES=$places ISLES_MACHINE=$machine "$program" "$rounds" | head -1)"
    done
    has_mpi || return 0
    cargo build --quiet --release --locked -p isles --features mpi --example "$1"
    echo "mpi: $(mpirun -n "$places" "$program" "$rounds" | head -1)"
}

stage_hostile() {
    local machine
    for machine in threads processes loopback chip; do
        ISLES_TEST_HOSTILE=${ISLES_TEST_HOSTILE:-$hostile_long} \
            tested cargo test --quiet --release --locked -p isles --test hostile "$machine"
    done
}

stage_runs() {
    local machine
    for machine in threads processes; do
        ISLES_TEST_CASE="many runs" ISLES_TEST_RUNS=${ISLES_TEST_RUNS:-$runs_long} \
            ISLES_PLACES=3 ISLES_MACHINE=$machine \
            cargo test --quiet --release --locked -p isles --test program
    done
}

# What tests of the command start, as they will find it: in one go, so that it has the features of tests.
release_programs() {
    cargo build --quiet --release --locked --bins --tests -p isles-cli -p isles-bc -p isles-uts
}

stage_kills() {
    # There are four tests of that many rounds.
    export ISLES_TEST_KILLS=${ISLES_TEST_KILLS:-$kills_each}
    release_programs
    tested cargo test --release --locked -p isles-cli --test command kill::
    tested cargo test --release --locked -p isles-transport-shm --lib deaths_at_any_moment
}

stage_glb() {
    tested cargo test --release --locked -p isles-uts --lib -- --ignored the_sample_trees
    ISLES_TEST_SEEDS=$glb_seeds tested cargo test --release --locked -p isles --lib glb::
    release_programs
    ISLES_TEST_KILLS=$glb_kills tested cargo test --release --locked -p isles-cli --test command glb::
}

stage_files() {
    ISLES_TEST_SEEDS=$file_rounds tested cargo test --release --locked -p isles-hf --test mutated
    ISLES_TEST_SEEDS=$file_rounds tested cargo test --release --locked -p isles-graph --test mutated
    ISLES_TEST_SEEDS=$file_rounds tested cargo test --release --locked -p isles-imsuite --test cli damaged
}

stage_clocks() {
    tested cargo test --release --locked -p isles --test model clock_law:: -- --ignored
}

stage_imsuite() {
    tested cargo test --release --locked -p isles-imsuite --test cli -- --ignored a_thousand_networks
}
