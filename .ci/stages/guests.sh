# shellcheck shell=bash disable=SC2154
# Programs on other ground: guests of a virtual machine, bare cores, C. Sourced by test.

# One machine after the other, so that the time of each is told.
stage_guests() {
    tested cargo test --release --locked -p isles-hypervisor --features guests
    cargo test --release --locked -p isles --features guests --test guests
    [ -e /dev/kvm ] || return 0
    # As the page writes it, where ./run has built the command and the application was built without guests.
    cargo build --quiet --release --locked -p isles-cli -p isles-hello
    "$CARGO_TARGET_DIR/release/isles" run hello --machine guests --places 4 >"$scratch/out" 2>&1 || {
        cat "$scratch/out"
        return 1
    }
    grep '; 4 places (guests' "$scratch/out"
}

stage_barriers() {
    ISLES_TEST_ROUNDS=${ISLES_TEST_ROUNDS:-$guest_rounds} \
        cargo test --release --locked -p isles --features guests --test guests
}

# Crates for bare cores are a workspace of their own; those without devices are tested on the host.
stage_bare() {
    local target=x86_64-unknown-none manifest=bare-metal/Cargo.toml
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target"
    cargo fmt --manifest-path "$manifest" --all --check
    cargo clippy --quiet --locked --release --manifest-path "$manifest" --target "$target" \
        -p bare-boot -p bare-core -p bare-c -p bare-examples -- -D warnings
    cargo clippy --quiet --locked --release --manifest-path "$manifest" --all-targets -p bare-map -p bare-mpb -- \
        -D warnings
    tested cargo test --release --locked --manifest-path "$manifest" -p bare-map -p bare-mpb
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$CARGO_TARGET_DIR/loom \
        tested cargo test --release --locked --manifest-path "$manifest" -p bare-mpb --test models
    ISLES_TEST_ROUNDS=${ISLES_TEST_ROUNDS:-$bare_rounds} tested cargo test --release --locked -p isles-bare
}

# compile_rcce COMPILER OPTIONS...: the library of RCCE, with both kinds of flags and without a warning.
compile_rcce() {
    local compiler=$1 flags source
    shift
    for flags in "" -DSINGLEBITFLAGS; do
        for source in c/src/*.c; do
            # shellcheck disable=SC2086
            "$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC $flags -Ic/include "$@" -c "$source" \
                -o "$scratch/object.o"
        done
    done
}

# sanitized SANITIZER MACHINE: programs of the tests and examples, compiled with the library for a sanitizer of gcc.
# Ranks of a chip change stacks, which the one for addresses does not follow. The one for threads sees one process only.
sanitized() {
    local sanitizer=$1 machine=$2 compiler=$scratch/gcc-$1 rcce=$CARGO_TARGET_DIR/release/isles-rcce
    local runtime program ranks
    runtime=$(gcc -print-file-name="$([ "$sanitizer" = address ] && echo libasan.so || echo libubsan.so)")
    printf '#!/bin/sh\nexec gcc -fsanitize=%s -fno-sanitize-recover=all -g "$@"\n' "$sanitizer" >"$compiler"
    chmod +x "$compiler"
    for program in crates/rcce/tests/c/{requests,simple,gory}.c examples/c/{lu,bt,pingpong,stencil}.c; do
        ranks=4
        [[ $program = *pingpong* ]] && ranks=2
        CC=$compiler ISLES_CACHE=$scratch/cache "$rcce" cc "$program" -o "$scratch/program"
        if ! LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 "$rcce" rccerun -n "$ranks" --machine "$machine" -- \
            "$scratch/program" >"$scratch/out" 2>&1; then
            cat "$scratch/out"
            say "$program fails with the sanitizer $sanitizer"
            return 1
        fi
    done
    echo "no finding of the sanitizer $sanitizer on $machine"
}

stage_c() {
    local compiler header
    for compiler in gcc clang; do
        command -v "$compiler" >/dev/null || { echo "$compiler is not here: left out"; continue; }
        compile_rcce "$compiler"
        echo "$compiler: no warning"
    done
    if command -v g++ >/dev/null; then
        for header in RCCE.h RCCE_gory.h RCCE_lib.h iRCCE.h isles.h; do
            echo "#include <$header>" | g++ -Wall -Wextra -Werror -Ic/include -x c++ -fsyntax-only -
        done
        echo "the headers are C++"
    fi
    tested cargo test --release --locked -p isles-rcce
    cargo build --quiet --release --locked -p isles-rcce
    sanitized address processes
    sanitized undefined processes
    sanitized undefined chip:scc
}
