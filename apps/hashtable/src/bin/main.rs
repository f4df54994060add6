//! The program of the application.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    isles_hashtable::main()
}
