# shellcheck shell=bash
# What stages need, one function for each word of the table in test. It installs what is missing. Where that fails, it
# says so and returns 1, which skips the stage, or exits, which fails it. Sourced by test.

has_cxx() { need_package c++ g++ || exit 1; }

has_python() { need_package python3 python3 || exit 1; }

has_qemu() { need_package qemu-system-x86_64 qemu-system-x86 || exit 1; }

has_networkx() {
    python3 -c 'import networkx' 2>/dev/null || install_packages networkx python3-networkx || exit 1
}

has_mpi() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
        (install_packages "an MPI library" openmpi-bin libopenmpi-dev) || {
            say "skipped: no MPI library is here, and none could be installed (apt-get install openmpi-bin libopenmpi-dev)"
            return 1
        }
    fi
}

has_libclang() {
    if [ -z "${LIBCLANG_PATH:-}" ] && ! compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null; then
        (install_packages libclang libclang-dev) || {
            say "skipped: rsmpi needs libclang, and none could be installed (apt-get install libclang-dev)"
            return 1
        }
    fi
}

has_namespaces() {
    local why
    why=$(.ci/hosts.sh can) || {
        say "skipped: $why"
        return 1
    }
}

has_slurm() {
    local why
    .ci/slurm.sh can >/dev/null && return
    (install_packages Slurm slurmd slurmctld slurm-client munge) || true
    why=$(.ci/slurm.sh can) || {
        say "skipped: $why"
        return 1
    }
}

has_miri() {
    cargo +nightly miri --version >/dev/null 2>&1 || {
        say "Miri is missing: rustup toolchain install nightly --component miri,rust-src; or leave it out: --skip miri"
        exit 1
    }
}
