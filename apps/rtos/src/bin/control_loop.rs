//! The program `control-loop`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    isles_app::main::<isles_rtos::ControlLoop>()
}
