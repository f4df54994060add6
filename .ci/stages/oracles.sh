# shellcheck shell=bash disable=SC2154
# Comparisons with programs and figures from outside. Sourced by test.

stage_goldens() {
    tested cargo test --release --locked -p isles-bc -p isles-graph -p isles-hf --lib -- --ignored \
        the_power_grid every_graph all_golden
    tested cargo test --release --locked -p isles-hf --test energies -- --ignored
    grep -q "$(python3 crates/graph/tests/rmat.py)" crates/graph/src/tests.rs
}

stage_transcripts() {
    cargo build --quiet --release --locked --workspace --bins
    tested cargo test --release --locked -p isles-cli --test command transcripts:: -- --ignored
}

stage_oracle() {
    cargo build --quiet --release --locked -p isles-bc --example oracle_scores
    python3 apps/bc/tests/oracle.py "$CARGO_TARGET_DIR/release/examples/oracle_scores" $oracle_rounds
}

# The tests are in the source package of rdflib, which goes into a folder beside what is built.
stage_w3c() {
    local folder=$CARGO_TARGET_DIR/w3c suites=rdflib-7.6.0/test/data/suites/w3c
    if [ ! -d "$folder/$suites" ]; then
        python3 -m pip --version >/dev/null 2>&1 || install_packages "python3 -m pip" python3-pip
        mkdir -p "$folder"
        python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$folder" rdflib==7.6.0
        tar -xzf "$folder/rdflib-7.6.0.tar.gz" -C "$folder" "$suites"
    fi
    W3C_SPARQL_TESTS=$folder/$suites tested cargo test --locked -p isles-rdf --test w3c -- --ignored --nocapture
}

# PySCF goes into a folder of its own beside what is built.
stage_integrals() {
    local python=$CARGO_TARGET_DIR/pyscf/bin/python
    if ! "$python" -c 'import pyscf' 2>/dev/null; then
        python3 -c 'import ensurepip' 2>/dev/null || install_packages "python3 -m venv" python3-venv
        python3 -m venv "$CARGO_TARGET_DIR/pyscf"
        "$python" -m pip install --quiet pyscf==2.14.0
    fi
    "$python" -c 'import ase, basis_set_exchange' 2>/dev/null ||
        "$python" -m pip install --quiet ase==3.29.0 basis_set_exchange==0.12
    # Of these only the files of molecules are wanted.
    "$python" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))' \
        berny geometric pysisyphus molSimplify || "$python" -m pip install --quiet --no-deps \
        pyberny==0.7.0 geometric==1.1.1 pysisyphus==1.0.0 molsimplify==2.0.0
    cargo build --quiet --release --locked -p isles-hf --example integral_elements
    "$python" apps/hf/tests/integrals.py "$CARGO_TARGET_DIR/release/examples/integral_elements"
    cargo build --quiet --release --locked -p isles-hf
    OMP_NUM_THREADS=1 "$python" apps/hf/tests/published.py "$CARGO_TARGET_DIR/release/isles-hf"
}
