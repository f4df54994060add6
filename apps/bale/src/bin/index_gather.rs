//! The program `index-gather`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    isles_app::main::<isles_bale::IndexGather>()
}
