//! The application `pipeline`: its arguments, the run with its resizes, and its output.
//!
//! Invariant: the objects found depend on the scene only. Groups, pauses and costs of the pipeline are reported
//! separately.

use crate::calibrated::Calibrated;
use crate::motorcycle;
use crate::picture::write_png;
use crate::scene::{Background, Scene};
use crate::sequential;
use crate::sharing::{self, SharedFound};
use crate::vision::{FrameResult, STAGES, Vision, places_max};
use clap::{Args, ValueEnum, value_parser};
use isles::Machine;
use isles::pipeline::{self, Options, Pipeline, PipelineReport, RunningPipeline, StageReport};
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunMeter, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// Frames before which the stages are recombined by their costs: several, because the last stages are not measured
/// before frames have filled the queues of all groups.
const BALANCED_AT: [u64; 3] = [8, 32, 128];

/// Largest accepted share of bad pixels in the real images. With windows of one size and no global optimisation, about
/// a sixth is bad.
const REAL_BAD_MAX: f64 = 0.30;

/// Returns the largest accepted share of bad pixels in front of a wall: the columns at the left that only one camera
/// sees, or whose windows include such columns, and 3% at the edges of objects.
fn bad_max(width: usize) -> f64 {
    10.0 / width as f64 + 0.03
}

/// Default number of frames of a run.
const FRAMES: u64 = 60;

/// Maximum number of frames of a run.
const FRAMES_MAX: u64 = 1_000_000;

/// Default number of frames after the last resize.
const FRAMES_BEHIND_RESIZE: u64 = 20;

/// Minimum number of frames of a run with two pipelines.
const SHARED_FRAMES_MIN: u64 = 12;

/// Number of disparities searched, from 0.
const DISPARITIES: [usize; 2] = [24, 64];

/// Maximum cycles of a stage that only consumes time.
const CYCLES_MAX: u64 = 1_000_000_000_000;

/// The arguments of `isles run pipeline`.
#[derive(Args, Clone, Debug)]
pub struct PipelineRun {
    /// The number of frames [default: 60, or 20 more than the frame of the last resize]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=FRAMES_MAX))]
    frames: Option<u64>,

    /// Columns of an image
    #[arg(long, value_name = "N", default_value = "320", value_parser = value_parser!(u32).range(128..=4096))]
    width: u32,

    /// Rows of an image
    #[arg(long, value_name = "N", default_value = "240", value_parser = value_parser!(u32).range(64..=4096))]
    height: u32,

    /// The number of objects that move in front of the background
    #[arg(long, value_name = "N", default_value = "3", value_parser = value_parser!(u32).range(0..=8))]
    objects: u32,

    /// The seed of textures and movements
    #[arg(long, value_name = "N", default_value = "1")]
    random_seed: u64,

    /// The folder with the images and disparities of a real background, as `skimage/data` in the Python package
    /// scikit-image: motorcycle_left.png, motorcycle_right.png, motorcycle_disp.npz
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["width", "height"])]
    images: Option<String>,

    /// The number of cores that the pipeline starts on [default: all places that the stages can use]
    #[arg(long, value_name = "N")]
    cores: Option<usize>,

    /// Resizes: number of cores from a frame on, such as 10@100,14@300
    #[arg(long, value_name = "CORES@FRAME,..", value_delimiter = ',')]
    resize: Vec<String>,

    /// Save the states of all stages after every N frames, and continue if a place dies
    #[arg(long, value_name = "FRAMES", value_parser = value_parser!(u64).range(1..))]
    checkpoint: Option<u64>,

    /// The most replicas of each of the two stages that match images, which take longest: further places then take
    /// turns at their frames
    #[arg(long, value_name = "N", default_value = "1", value_parser = value_parser!(u32).range(1..=64))]
    replicas: u32,

    /// Number of pipelines: with 2, a second one runs for some time from a third of the frames on; both share the
    /// places
    #[arg(long, value_name = "N", default_value = "1", value_parser = value_parser!(u32).range(1..=2),
        conflicts_with_all = ["cores", "resize", "stage_costs", "checkpoint"])]
    apps: u32,

    /// Goal when dividing the places between two pipelines
    #[arg(long, value_name = "GOAL", default_value = "throughput")]
    objective: Goal,

    /// On a modelled chip: stages that take these cycles for each frame and process no image, 18 numbers
    #[arg(long, value_name = "CYCLES,..", value_delimiter = ',', conflicts_with_all = ["images", "png"])]
    stage_costs: Vec<u64>,

    /// Also draw the disparities and the objects of the last frame, as PNG; - is standard output
    #[arg(long, value_name = "FILE")]
    png: Option<String>,
}

/// Goal of dividing the places between two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// The greatest sum of speed-ups.
    Throughput,
    /// The worst-off pipeline has as great a part of its best speed-up as can be.
    Fairness,
}

/// A resize at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ResizeAt {
    cores: usize,
    frame: u64,
}

/// The input of a run.
#[derive(Clone, Serialize)]
pub struct PipelineInput {
    pub(super) frames: u64,
    width: usize,
    height: usize,
    disparities: usize,
    objects: usize,
    images: Option<String>,
    cores: usize,
    pub(super) replicas: usize,
    resizes: Vec<ResizeAt>,
    checkpoint: Option<u64>,
    stage_costs: Vec<u64>,
    apps: u32,
    pub(super) objective: Goal,
    #[serde(skip)]
    pub(super) scene: Scene,
}

/// The result for all frames, and the statistics of the pipeline.
#[derive(Serialize)]
pub struct PipelineFound {
    /// The objects of each frame.
    frames: Vec<FoundFrame>,
    /// The results of the second pipeline, if there was one, and the places of both while it ran.
    second: Option<SharedFound>,
    /// The mean share of pixels whose disparity is off by more than 2 pixels.
    bad_pixels: f64,
    /// The statistics of the pipeline; they depend on machine and clock.
    pipeline: PipelineReport,
    #[serde(skip)]
    last: FrameResult,
    #[serde(skip)]
    scene: Scene,
}

/// The objects of a frame: number, column, row and sixteenths of disparity of each object.
#[derive(Debug, PartialEq, Serialize)]
pub struct FoundFrame {
    objects: Vec<(u32, i32, i32, i32)>,
    /// A hash of all disparities.
    digest: String,
}

impl FoundFrame {
    pub(super) fn of(result: &FrameResult) -> FoundFrame {
        let plain = |object: &crate::objects::Object| (object.number, object.x, object.y, object.disparity);
        FoundFrame { objects: result.objects.iter().map(plain).collect(), digest: hex(result.digest) }
    }
}

fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Parses one `CORES@FRAME`.
fn parse_resize(text: &str, frames: u64, most: usize) -> Result<ResizeAt, String> {
    let refused = |why: String| format!("--resize {text}: {why}");
    let Some((cores, frame)) = text.trim().split_once('@') else {
        return Err(refused("allowed: cores and frame, such as 10@100".to_owned()));
    };
    let cores = cores.parse().ok().filter(|cores| (1..=most).contains(cores));
    let cores = cores.ok_or_else(|| refused(format!("allowed: 1 to {most} cores")))?;
    let frame = frame.parse().ok().filter(|frame| (1..frames).contains(frame));
    let frame = frame.ok_or_else(|| refused(format!("allowed: frames 1 to {}", frames - 1)))?;
    Ok(ResizeAt { cores, frame })
}

impl PipelineRun {
    /// Returns the number of frames; by default enough for all resizes.
    fn frames(&self) -> u64 {
        let frame_of = |resize: &String| resize.trim().split_once('@')?.1.parse::<u64>().ok();
        let last = self.resize.iter().filter_map(frame_of).max().unwrap_or(0);
        let enough = last.saturating_add(FRAMES_BEHIND_RESIZE).clamp(FRAMES, FRAMES_MAX);
        self.frames.unwrap_or(enough)
    }

    fn scene(&self) -> Result<Scene, Failure> {
        let mut scene = Scene {
            width: self.width as usize,
            height: self.height as usize,
            disparities: DISPARITIES[0],
            objects: self.objects as usize,
            seed: self.random_seed,
            background: Background::Wall,
        };
        if let Some(folder) = &self.images {
            let background = motorcycle::read(Path::new(folder)).map_err(Failure::Usage)?;
            if let Background::Real { pair, .. } = &background {
                (scene.width, scene.height) = (pair.left.width, pair.left.height);
            }
            (scene.background, scene.disparities) = (background, DISPARITIES[1]);
        }
        if scene.width < 2 * scene.disparities || scene.height < 64 {
            let text =
                format!("images of {} by {} pixels; allowed: at least 128 by 64", scene.width, scene.height);
            return Err(Failure::Usage(text));
        }
        Ok(scene)
    }
}

impl Application for PipelineRun {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The tracked objects are the same on any number of cores and with any resizes.",
        ..ApplicationInfo::new("pipeline", env!("CARGO_PKG_DESCRIPTION"), "frames")
    };
    type Input = PipelineInput;
    type Found = PipelineFound;

    fn check_machine(&self, machine: Machine) -> Result<(), Failure> {
        if self.stage_costs.is_empty() {
            return Ok(());
        }
        if self.stage_costs.len() != STAGES || self.stage_costs.iter().any(|cycles| *cycles > CYCLES_MAX) {
            let text = format!("--stage-costs: allowed: {STAGES} numbers, each at most {CYCLES_MAX}");
            return Err(Failure::Usage(text));
        }
        match machine {
            Machine::Chip(_) => Ok(()),
            machine => {
                let name = machine.name();
                Err(Failure::Usage(format!(
                    "--stage-costs: stages take cycles of a modelled chip, but the machine is {name}"
                )))
            }
        }
    }

    fn open(&self, places: u32) -> Result<PipelineInput, Failure> {
        let replicas = self.replicas as usize;
        let most = places_max(replicas).min(places as usize);
        let cores = self.cores.unwrap_or(most);
        if !(1..=most).contains(&cores) {
            let text =
                format!("--cores is {cores}; allowed: 1 to {most}, for {STAGES} stages and {places} places");
            return Err(Failure::Usage(text));
        }
        let resizes = self.resize.iter().map(|text| parse_resize(text, self.frames(), most));
        let resizes = resizes.collect::<Result<Vec<_>, _>>().map_err(Failure::Usage)?;
        if !resizes.is_sorted_by(|one, next| one.frame < next.frame) {
            return Err(Failure::Usage("--resize: the frames must increase".to_owned()));
        }
        if self.apps > places {
            let text =
                format!("--apps is {}; allowed: at most one for each of the {places} places", self.apps);
            return Err(Failure::Usage(text));
        }
        if self.apps == 2 && self.frames() < SHARED_FRAMES_MIN {
            let (frames, least) = (self.frames(), SHARED_FRAMES_MIN);
            return Err(Failure::Usage(format!(
                "--frames is {frames}; allowed with --apps 2: at least {least}"
            )));
        }
        let scene = self.scene()?;
        Ok(PipelineInput {
            frames: self.frames(),
            width: scene.width,
            height: scene.height,
            disparities: scene.disparities,
            objects: scene.objects,
            images: self.images.clone(),
            cores,
            replicas,
            resizes,
            checkpoint: self.checkpoint,
            stage_costs: self.stage_costs.clone(),
            apps: self.apps,
            objective: self.objective,
            scene,
        })
    }

    fn heading(&self, input: &PipelineInput) -> String {
        let PipelineInput { frames, width, height, objects, cores, .. } = input;
        let (frames, objects) =
            (count(*frames, "frame", "frames"), count(*objects as u64, "object", "objects"));
        let cores = count(*cores as u64, "core", "cores");
        format!("{frames} of two pairs of {width} by {height} pixels, {objects}, {STAGES} stages on {cores}")
    }

    async fn compute(
        input: PipelineInput,
        distributor: WorkDistributor,
    ) -> isles::Result<(PipelineFound, WorkDone)> {
        let meter = distributor.meter(Some(input.frames)).await?;
        let options =
            Options { cores: Some(input.cores), checkpoint: input.checkpoint, ..Options::default() };
        let scene = input.scene.clone();
        let started = now();
        if input.apps == 2 {
            let (results, report, second) = sharing::run(input, &meter).await?;
            let done = meter.done(started).await?;
            return Ok((
                PipelineFound { second: Some(second), ..PipelineFound::new(results, report, scene) },
                done,
            ));
        }
        let (results, report) = if input.stage_costs.is_empty() {
            let vision = Vision { scene: scene.clone(), last: input.frames - 1, replicas: input.replicas };
            process(vision, options, input, &meter).await?
        } else {
            let calibrated = Calibrated { cycles: input.stage_costs.clone(), replicas: input.replicas };
            let options = Options { costs: Some(calibrated.costs()), ..options };
            let (items, report) = process(calibrated, options, input, &meter).await?;
            (items.into_iter().map(FrameResult::empty).collect(), report)
        };
        let done = meter.done(started).await?;
        Ok((PipelineFound::new(results, report, scene), done))
    }
}

impl RunResult for PipelineRun {
    fn text(&self, found: &PipelineFound) -> String {
        let last = found.frames.last().map_or(0, |frame| frame.objects.len());
        let seen = found
            .frames
            .iter()
            .flat_map(|frame| &frame.objects)
            .map(|object| object.0 + 1)
            .max()
            .unwrap_or(0);
        let mut text = format!(
            "objects  {last} in the last frame, {seen} in all\nbad      {:.2}% of the pixels, off by more than 2\nstages  ",
            found.bad_pixels * 100.0
        );
        if !self.stage_costs.is_empty() {
            text = format!("period   {:.3} ms\nstages  ", found.pipeline.period.as_secs_f64() * 1e3);
        }
        text += &groups_text(&found.pipeline.stages);
        if let Some(second) = &found.second {
            let frames = count(second.frames.len() as u64, "frame", "frames");
            text +=
                &format!("\nsecond   {frames}, on {} places beside {}", second.cores, second.cores_of_first);
        }
        for resize in &found.pipeline.resizes {
            let pause = resize.pause.map_or(0.0, |pause| pause.as_secs_f64() * 1e3);
            let period = resize.period.as_secs_f64() * 1e3;
            text += &format!(
                "\nresize   {} to {} groups at frame {}: {pause:.2} ms between two results, {period:.2} ms before",
                resize.from, resize.to, resize.item
            );
        }
        text
    }

    fn speed(&self, found: &PipelineFound, seconds: f64) -> String {
        format!("{:.1} frames a second", found.frames.len() as f64 / seconds)
    }

    fn verify(&self, found: &PipelineFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        let bound = if self.images.is_some() { REAL_BAD_MAX } else { bad_max(found.scene.width) };
        let mut holds = found.bad_pixels < bound;
        let mut text = format!(
            "{:.2}% of the pixels with a known disparity are off by more than 2; allowed: {:.0}%",
            found.bad_pixels * 100.0,
            bound * 100.0
        );
        if !self.stage_costs.is_empty() {
            let is_all = found.frames.len() as u64 == self.frames();
            let in_order = (0..).zip(&found.frames).all(|(number, frame)| frame.digest == hex(number));
            let text = "all frames have come, in order".to_owned();
            return Ok(Some(Verification { holds: is_all && in_order, text }));
        }
        if is_thorough {
            let mut frames = found.frames.iter();
            let mut is_same = true;
            let bad = sequential::frames(&found.scene, self.frames(), |digest, objects| {
                let same = |frame: &FoundFrame| frame.digest == hex(digest) && frame.objects == objects;
                is_same &= frames.next().is_some_and(same);
            });
            if let Some(second) = &found.second {
                let scene = sharing::second_scene(&found.scene);
                let mut frames = second.frames.iter();
                sequential::frames(&scene, sharing::second_frames(self.frames()), |digest, objects| {
                    let same = |frame: &FoundFrame| frame.digest == hex(digest) && frame.objects == objects;
                    is_same &= frames.next().is_some_and(same);
                });
                is_same &= frames.next().is_none();
            }
            holds &= is_same && frames.next().is_none() && bad.to_bits() == found.bad_pixels.to_bits();
            text += "; compared with the same stages in a plain loop";
        }
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &PipelineFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "frame,object,x,y,disparity")?;
        for (number, frame) in found.frames.iter().enumerate() {
            for (object, x, y, disparity) in &frame.objects {
                writeln!(out, "{number},{object},{x},{y},{}", f64::from(*disparity) / 16.0)?;
            }
        }
        Ok(())
    }

    fn pictures(&self) -> Vec<(&'static str, &str)> {
        self.png.iter().map(|path| ("--png", path.as_str())).collect()
    }

    fn write_picture(&self, _: &str, found: &PipelineFound, out: &mut dyn Write) -> io::Result<()> {
        match &found.last.disparities {
            Some(map) => write_png(map, &found.last.objects, out),
            None => Ok(()),
        }
    }
}

/// Describes the groups of stages, with the number of replicas where there are several.
fn groups_text(stages: &[StageReport]) -> String {
    let mut text = String::new();
    for group in stages.chunk_by(|one, next| one.places == next.places) {
        let names: Vec<&str> = group.iter().map(|stage| stage.name).collect();
        text += if text.is_empty() { " " } else { " | " };
        text += &names.join(" + ");
        if group[0].places.len() > 1 {
            text += &format!(" ({} replicas)", group[0].places.len());
        }
    }
    text
}

/// Sends all frames through a pipeline; returns their results.
async fn process<P: Pipeline<Input = u64>>(
    pipeline: P,
    options: Options,
    input: PipelineInput,
    meter: &RunMeter,
) -> isles::Result<(Vec<P::Output>, PipelineReport)> {
    pipeline::run(pipeline, options, async |flow| {
        finish(async {
            let sender = flow.clone();
            spawn(async move {
                let sent = send(&sender, &input).await;
                sender.close();
                sent
            });
            let mut results = Vec::new();
            let mut last = Instant::now();
            while let Some(result) = flow.recv().await? {
                results.push(result);
                meter.add_done(last);
                last = Instant::now();
            }
            Ok::<_, isles::Error>(results)
        })
        .await
    })
    .await
}

/// Sends all frames, resizing before the given ones.
async fn send<P: Pipeline<Input = u64>>(
    flow: &RunningPipeline<P>,
    input: &PipelineInput,
) -> isles::Result<()> {
    let mut resizes = input.resizes.iter().peekable();
    for frame in 0..input.frames {
        if let Some(resize) = resizes.next_if(|resize| resize.frame == frame) {
            flow.resize(resize.cores).await?;
        } else if BALANCED_AT.contains(&frame) && input.stage_costs.is_empty() {
            flow.rebalance().await?;
        }
        flow.send(frame).await?;
    }
    Ok(())
}

impl PipelineFound {
    fn new(results: Vec<FrameResult>, pipeline: PipelineReport, scene: Scene) -> PipelineFound {
        let sum: f64 = results.iter().map(|result| result.bad_pixels).sum();
        PipelineFound {
            frames: results.iter().map(FoundFrame::of).collect(),
            second: None,
            bad_pixels: sum / results.len().max(1) as f64,
            pipeline,
            last: results.into_iter().next_back().expect("there is at least one frame"),
            scene,
        }
    }
}
