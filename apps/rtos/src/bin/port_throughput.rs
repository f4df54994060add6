//! The program `port-throughput`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    isles_app::main::<isles_rtos::PortThroughput>()
}
