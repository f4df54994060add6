//! The program of the lab.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    isles_lab::main()
}
