# What `run` and `test` share: saying things, and installing what is missing, only when it is missing.
# Sourced by bash; it changes nothing by itself.

say() {
    printf '%s\n' "$*" >&2
}

refuse() {
    say "$*"
    exit 2
}

# Rust comes from its own installer, not from a distribution: the one in Debian 12 is too old.
need_rust() {
    command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    command -v cargo >/dev/null || refuse "cargo is missing: install Rust 1.88 or newer, see https://rustup.rs"
}

# need_package COMMAND PACKAGE...: the Debian packages that bring COMMAND, installed when we may.
need_package() {
    local command=$1
    shift
    command -v "$command" >/dev/null && return
    install_packages "$command" "$@"
}

# install_packages WHAT PACKAGE...: installs the Debian packages that bring WHAT, or says how.
install_packages() {
    local what=$1
    shift
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        refuse "$what is missing: install it, on Debian with: sudo apt-get install $*"
    fi
    say "installing $* (for $what)"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends -y "$@" >/dev/null
}
