# shellcheck shell=bash disable=SC2154
# What is built and tested in one go, and the listings of the book. Sourced by test.

stage_lint() {
    cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
    cargo clippy --quiet --locked -p isles --no-default-features --all-targets -- -D warnings
}

stage_tests() {
    # In one go, so that the programs which tests of the command start have the features of tests.
    cargo build --quiet --locked --workspace --bins --tests --examples --features isles/ndarray
    # One more at a time than there are processors, because many wait.
    RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + 1))} \
        timeout "$tests_seconds_max" cargo test --locked --workspace --features isles/ndarray 2>&1 |
        tee "$scratch/out" || {
        unended_tests
        return 1
    }
}

# unended_tests: names the tests that were running for long and have not said how they ended.
unended_tests() {
    awk '/^test .* has been running for over/ { long[$2] } /^test .* \.\.\. / { delete long[$2] }
        END { for (name in long) print "this test had not ended: " name }' "$scratch/out"
}

stage_documents() {
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps
    if command -v mdbook >/dev/null; then
        mdbook build docs --dest-dir "$CARGO_TARGET_DIR/book"
    else
        say "the book was not built: there is no mdbook here (cargo install mdbook)"
    fi
}

# few_jobs LEAST: whether in the output of docs/listings/workers.rs a place has less than LEAST jobs.
few_jobs() {
    sed -n 's/^jobs by place: \[\(.*\)\]/\1/p' "$scratch/out" | tr -d ' ' | tr ',' '\n' |
        awk -v least="$1" '$1 < least { few = 1 } END { exit !(few || NR < 2) }'
}

# shared_out LEAST COMMAND...: whether docs/listings/workers.rs, run by COMMAND, gives each place LEAST jobs or more in
# one of several runs: the system decides who has a processor.
shared_out() {
    local least=$1 run
    shift
    for run in 1 2 3 4 5; do
        "$@" | tee "$scratch/out"
        few_jobs "$least" || return 0
    done
    return 1
}

# printed_as_written: whether each block of a page behind `<!-- printed by docs/listings/NAME.rs -->` is in what the
# listing prints at two places, wherever the page breaks its lines. The machine is the one that repeats a run.
printed_as_written() {
    local page listing text
    awk '/^<!-- printed by docs.listings/ { of = $0; sub(/.*\//, "", of); sub(/\..*/, "", of); text = "" }
        of && /^```/ { if (inside) { print FILENAME ":" of ":" text; of = "" } inside = !inside; next }
        of && inside { text = text (text ? " " : "") $0 }' docs/*.md >"$scratch/written"
    while IFS=: read -r page listing text; do
        ISLES_SEED=1 ISLES_PLACES=2 ISLES_MACHINE=loopback \
            timeout 60 "$CARGO_TARGET_DIR/debug/examples/$listing" |
            sed 's,crates/isles/\.\./\.\./,,g' | tr '\n' ' ' >"$scratch/out"
        if [ -z "$text" ] || ! grep -qF -- "$text" "$scratch/out"; then
            say "$page does not hold what docs/listings/$listing.rs prints:"
            cat "$scratch/out"
            return 1
        fi
    done <"$scratch/written"
    if [ "$(wc -l <"$scratch/written")" != "$(cat docs/*.md | grep -c '^<!-- printed by docs.listings')" ]; then
        say "a mark in docs has no block behind it"
        return 1
    fi
}

stage_listings() {
    # Of the whole workspace, as in the stage of tests, which has built them: for a part of it, packages of others would
    # have fewer features and be built again. docs/listings/primes.rs serves until it is ended; the tests of its package
    # do so.
    cargo build --quiet --locked --workspace --examples --features isles/ndarray
    local listing name machine least
    for listing in $(grep -l "async fn main" docs/listings/*.rs); do
        name=$(basename "$listing" .rs)
        for machine in threads processes chip:scc; do
            ISLES_PLACES=3 ISLES_MACHINE=$machine timeout 60 \
                "$CARGO_TARGET_DIR/debug/examples/$name" >"$scratch/out" 2>&1 || {
                cat "$scratch/out"
                say "$listing failed on $machine"
                return 1
            }
        done
        echo "$name: ok"
    done
    printed_as_written
    # The place that deals out work takes no more than others: on a chip at least 0.8 of an even share each, on a host,
    # where the system decides who runs, 0.4.
    for machine in threads processes chip:scc; do
        least=$([[ $machine = chip:* ]] && echo 13 || echo 6)
        if ! ISLES_PLACES=3 ISLES_MACHINE=$machine shared_out "$least" "$CARGO_TARGET_DIR/debug/examples/workers"; then
            say "docs/listings/workers.rs gives a place less than $least of 50 jobs on $machine"
            return 1
        fi
    done
    for machine in threads processes; do
        if ! ISLES_PLACES=2 ISLES_MACHINE=$machine shared_out 20 "$CARGO_TARGET_DIR/debug/examples/workers"; then
            say "docs/listings/workers.rs gives one of two places less than 20 of 50 jobs on $machine"
            return 1
        fi
    done
    # What places take from a counter is shared among all of them, also where they share a thread.
    ISLES_PLACES=8 ISLES_MACHINE=chip:scc ISLES_REPORT=chip \
        "$CARGO_TARGET_DIR/debug/examples/betweenness" 2>&1 | tee "$scratch/out" | grep '^busy by place'
    if grep '^busy by place' "$scratch/out" | grep -qE '[ ,]+[0-4]\.[0-9] %'; then
        say "docs/listings/betweenness.rs gives a place of a modelled chip no work"
        return 1
    fi
}
