//! Object tracking with two stereo cameras: 18 stages on a changing number of cores.
//!
//! After the case study of J. Jahn et al., "Malleable Software Pipelines for Efficient Many-core System Utilization"
//! (MARC Symposium 2012), section V: two pairs of cameras, read one after the other, enhancement and transformation of
//! the images, a depth map, objects detected and tracked. `scene` has the images, `stereo` and `objects` the
//! computations of the stages, `vision` the pipeline, `sequential` the same in a plain loop. Invariant: tracking
//! depends on the scene only, not on places, cores, resizes or the clock. `calibrated` has stages that only take time.

#![forbid(unsafe_code)]

mod calibrated;
mod image;
mod motorcycle;
mod objects;
mod picture;
mod run;
mod scene;
mod sequential;
mod sharing;
mod stereo;
#[cfg(test)]
mod tests;
mod vision;

pub use run::PipelineRun;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<PipelineRun>()
}
