# shellcheck shell=bash disable=SC2154
# Models of interleavings, fuzzing, sanitizers. Sourced by test.

# Loom replaces the atomics, so it has a target folder of its own. The bound is on preemptions: most real
# races need two.
stage_models() {
    local packages
    packages=$(grep -l "cfg(loom)" crates/*/Cargo.toml | sed 's|crates/\(.*\)/Cargo.toml|-p isles-\1|')
    # shellcheck disable=SC2086
    RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 CARGO_TARGET_DIR=$CARGO_TARGET_DIR/loom \
        tested cargo test --locked $packages --lib model
}

# The flags are those of cargo-fuzz. RUSTC_BOOTSTRAP lets the stable compiler take the one unstable flag
# among them, so no second toolchain is needed. Leaks are not looked for: a place leaves a few bytes behind on
# purpose, for wakers that outlive it (crates/runtime/src/task/injector.rs).
stage_fuzz() {
    local flags="--cfg fuzzing -Zsanitizer=address -Ccodegen-units=1 -Cdebug-assertions -Cpasses=sancov-module"
    local part
    for part in level=4 inline-8bit-counters pc-table trace-compares; do
        flags="$flags -Cllvm-args=-sanitizer-coverage-$part"
    done
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags CARGO_TARGET_DIR=$CARGO_TARGET_DIR/fuzz \
        cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target "$host"
    local target name
    for target in fuzz/targets/*.rs; do
        name=$(basename "$target" .rs)
        mkdir -p "fuzz/corpus/$name" "fuzz/seeds/$name" fuzz/artifacts
        ASAN_OPTIONS=detect_leaks=0 "$CARGO_TARGET_DIR/fuzz/$host/release/$name" \
            -max_total_time=$fuzz_seconds -rss_limit_mb=2048 -timeout=10 \
            -artifact_prefix=fuzz/artifacts/ "fuzz/corpus/$name" "fuzz/seeds/$name" >"$scratch/out" 2>&1 || {
            tail -40 "$scratch/out"
            say "fuzz target $name failed; its input is in fuzz/artifacts"
            return 1
        }
        echo "$name: $(grep -c . <(ls "fuzz/corpus/$name")) inputs kept, $(tail -1 "$scratch/out")"
    done
}

# address_sanitized ARGUMENTS...: tests under the address sanitizer, which needs a target that is named. Leaks are not
# looked for.
address_sanitized() {
    ASAN_OPTIONS=detect_leaks=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
        CARGO_TARGET_DIR=$CARGO_TARGET_DIR/addresses \
        tested cargo test --locked --target "$host" "$@"
}

# Tests that limit the address space (ulimit -v) leave no room for the sanitizer's own terabytes.
stage_addresses() {
    address_sanitized -p isles-transport-shm -p isles-transport-mpi -p isles-runtime -p isles-services \
        -p isles-svm --lib -- --skip limits_of_the_system_are_named_with_what_was_needed \
        --skip arenas_shrink_until_the_segment_fits_a_limit
    address_sanitized -p isles --test model wakers::
    address_sanitized -p isles-rcce --bins
    address_sanitized -p isles-hypervisor --features guests
}

# Miri has no shared memory, so everything of isles-transport-shm is left to the stage before and to loom. Leaks are
# not looked for, as there.
stage_miri() {
    MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" PROPTEST_CASES=16 CARGO_TARGET_DIR=$CARGO_TARGET_DIR/miri \
        tested cargo +nightly miri test --locked -p isles-runtime --lib -- task:: wire:: plain:: part::
}
