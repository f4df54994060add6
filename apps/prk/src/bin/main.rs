//! The program `prk`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    isles_prk::main()
}
