//! The application `automaton`: the field, the run over all places, and its check against one processor.
//!
//! Each place has a strip of rows, divided as evenly as possible. Invariant: the result depends only on the field and
//! the number of generations.

use crate::halo::{Exchange, Links};
use crate::pattern::{self, BUILT_IN, Pattern};
use crate::picture::{self, Cells};
use crate::rule::Rule;
use crate::strip::{Field, Start, Strip, Sums};
use clap::{Args, value_parser};
use isles::prelude::*;
use isles::{Claim, Machine};
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use isles_app::input;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::ops::Range;
use std::time::Instant;

/// Most rows, columns, cells and steps of a run.
const SIDE_MAX: i64 = 1 << 16;
const CELLS_MAX: usize = 1 << 30;
const STEPS_MAX: u64 = 10_000_000;

/// Largest accepted pattern file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Default number of pictures of a GIF, and the maximum.
const FRAMES: u64 = 50;
const FRAMES_MAX: u64 = 1000;

/// Cells per word of the hash, which divides the number of columns; also cells per byte of a picture.
const WORD: usize = 8;

/// The arguments of `isles run automaton`.
#[derive(Args, Clone, Debug)]
pub struct Automaton {
    /// Initial contents of the field: glider, gosper-gun, breeder, or random
    #[arg(long, value_name = "NAME", default_value = "gosper-gun")]
    pattern: String,

    /// RLE file with a pattern, instead of --pattern
    #[arg(long, value_name = "FILE", conflicts_with = "pattern")]
    file: Option<String>,

    /// Rule: numbers of living neighbours for birth and survival [default: that of the pattern, or B3/S23]
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,

    /// Seed of random cells
    #[arg(long, value_name = "N", default_value = "1")]
    random_seed: u64,

    /// Rows of the field, at least one for each place; the last row is above the first
    #[arg(long, value_name = "N", default_value = "1024", value_parser = value_parser!(u32).range(1..=SIDE_MAX))]
    rows: u32,

    /// Columns of the field, a multiple of 8; each is one byte of an edge
    #[arg(long, value_name = "N", default_value = "8192", value_parser = value_parser!(u32).range(8..=SIDE_MAX))]
    columns: u32,

    /// Number of steps
    #[arg(long, value_name = "N", default_value = "100", value_parser = value_parser!(u64).range(..=STEPS_MAX))]
    generations: u64,

    /// Method of sending edges to neighbours
    #[arg(long, value_name = "HOW", default_value = "one-sided")]
    exchange: Exchange,

    /// Also draw the living cells of the last generation, as PNG; - is standard output
    #[arg(long, value_name = "FILE")]
    png: Option<String>,

    /// Also draw the living cells of the run, as GIF; - is standard output
    #[arg(long, value_name = "FILE")]
    gif: Option<String>,

    /// Steps from one picture of the GIF to the next [default: as many as make 50 pictures]
    #[arg(long, value_name = "N", requires = "gif", value_parser = value_parser!(u64).range(1..))]
    gif_every: Option<u64>,
}

/// Settings of a run.
#[derive(Clone, Serialize)]
pub struct AutomatonInput {
    pattern: String,
    rule: Rule,
    rows: usize,
    columns: usize,
    generations: u64,
    exchange: Exchange,
    #[serde(skip)]
    field: Field,
    /// The generations that are drawn.
    #[serde(skip)]
    drawn: Vec<u64>,
}

/// Results of the rows of one place, or of several.
#[derive(Clone, Default, Serialize, Deserialize)]
struct StripRecord {
    /// Sums of each generation.
    sums: Vec<Sums>,
    /// Bits of each generation that is drawn.
    #[serde(with = "isles::plain")]
    packed: Vec<u8>,
    /// Number of bytes of `packed` for each of these generations.
    packed_each: usize,
}

impl StripRecord {
    /// Appends the record of the rows below.
    fn merge(mut self, below: StripRecord) -> StripRecord {
        // A place without a strip has no record.
        if self.sums.is_empty() {
            return below;
        }
        if below.sums.is_empty() {
            return self;
        }
        self.sums.iter_mut().zip(below.sums).for_each(|(one, other)| *one = one.plus(other));
        let frames = self.packed.chunks(self.packed_each.max(1));
        let others = below.packed.chunks(below.packed_each.max(1));
        let packed = frames.zip(others).flat_map(|(one, other)| [one, other]).flatten().copied().collect();
        StripRecord { sums: self.sums, packed, packed_each: self.packed_each + below.packed_each }
    }
}

/// Result of a run.
#[derive(Serialize)]
pub struct AutomatonFound {
    /// The last generation.
    generation: u64,
    population: u64,
    hash: String,
    /// Population of each generation, from the first.
    populations: Vec<u64>,
    hashes: Vec<String>,
    #[serde(skip)]
    record: StripRecord,
    #[serde(skip)]
    field: Field,
}

impl AutomatonFound {
    fn new(record: StripRecord, field: Field) -> AutomatonFound {
        let hash = |sums: &Sums| format!("{:016x}", sums.hash);
        let last = record.sums.last().copied().unwrap_or_default();
        AutomatonFound {
            generation: record.sums.len() as u64 - 1,
            population: last.population,
            hash: hash(&last),
            populations: record.sums.iter().map(|sums| sums.population).collect(),
            hashes: record.sums.iter().map(hash).collect(),
            record,
            field,
        }
    }
}

impl Automaton {
    /// Returns the initial contents of the field, and the rule given with them.
    fn start(&self) -> Result<(Start, Option<Rule>), Failure> {
        if let Some(file) = &self.file {
            let bytes = input::bytes(file, FILE_BYTES_MAX);
            let bytes = bytes.map_err(|fault| Failure::Usage(format!("{file}: {fault}")))?;
            let read = pattern::read(&input::text(&bytes));
            let (pattern, rule) = read.map_err(|fault| Failure::Usage(format!("{file}: {fault}")))?;
            return Ok((Start::Pattern(pattern), rule));
        }
        if self.pattern == "random" {
            return Ok((Start::Random(self.random_seed), None));
        }
        let Some((_, text)) = BUILT_IN.iter().find(|(name, _)| *name == self.pattern) else {
            let names = BUILT_IN.map(|(name, _)| name).join(", ");
            let text = format!(
                "--pattern is {:?}; allowed: {names}, random; for an RLE file use --file",
                self.pattern
            );
            return Err(Failure::Usage(text));
        };
        let (pattern, rule) = pattern::read(text).expect("what is built in has no fault");
        Ok((Start::Pattern(pattern), rule))
    }

    fn field(&self) -> Result<Field, Failure> {
        let (start, own) = self.start()?;
        let refused =
            |text: &String| Failure::Usage(format!("--rule is {text:?}; allowed: {}", crate::rule::ALLOWED));
        let rule = self.rule.as_ref().map(|text| text.parse().map_err(|_| refused(text))).transpose()?;
        let (rows, columns) = (self.rows as usize, self.columns as usize);
        if !columns.is_multiple_of(WORD) {
            return Err(Failure::Usage(format!("--columns is {columns}; allowed: a multiple of {WORD}")));
        }
        if rows * columns > CELLS_MAX {
            let text = format!(
                "--rows is {rows} and --columns {columns}; allowed: at most {CELLS_MAX} cells in total"
            );
            return Err(Failure::Usage(text));
        }
        if let Start::Pattern(Pattern { columns: wide, rows: high, .. }) = &start
            && (*wide as usize > columns || *high as usize > rows)
        {
            let text = format!(
                "--rows is {rows} and --columns {columns}; allowed: at least {high} and {wide}, the size \
                 of the pattern"
            );
            return Err(Failure::Usage(text));
        }
        Ok(Field { columns, rows, rule: rule.or(own).unwrap_or(Rule::LIFE), start })
    }

    /// Returns the generations to draw; that of a PNG comes last.
    fn drawn(&self) -> Result<Vec<u64>, Failure> {
        let mut drawn = Vec::new();
        if self.gif.is_some() {
            let every = self.gif_every.unwrap_or(self.generations.div_ceil(FRAMES).max(1));
            let frames = self.generations / every + 1;
            let bytes = frames.saturating_mul(u64::from(self.rows) * u64::from(self.columns) / 8);
            if frames > FRAMES_MAX || bytes > CELLS_MAX as u64 {
                let text = format!(
                    "--gif-every is {every}; allowed: at most {FRAMES_MAX} pictures of 1 GiB in total"
                );
                return Err(Failure::Usage(text));
            }
            drawn.extend((0..frames).map(|frame| frame * every));
        }
        if self.png.is_some() {
            drawn.push(self.generations);
        }
        Ok(drawn)
    }
}

/// Returns the rows of the place with `rank` of `size`.
fn rows_of(rows: usize, rank: usize, size: usize) -> Range<usize> {
    rank * rows / size..(rank + 1) * rows / size
}

/// Runs all steps of one strip by calling `step`.
async fn run_strip(
    mut strip: Strip,
    generations: u64,
    drawn: &[u64],
    mut step: impl AsyncFnMut(u64, &mut Strip) -> isles::Result<()>,
) -> isles::Result<StripRecord> {
    let mut record = StripRecord::default();
    for generation in 0..=generations {
        record.sums.push(strip.sums());
        for _ in drawn.iter().filter(|drawn| **drawn == generation) {
            let packed = strip.packed();
            record.packed_each = packed.len();
            record.packed.extend(packed);
        }
        if generation < generations {
            step(generation, &mut strip).await?;
        }
    }
    Ok(record)
}

/// One place's share of a run.
async fn run_place(
    field: &Field,
    generations: u64,
    drawn: &[u64],
    links: &Links,
    meter: &isles_app::frame::RunMeter,
) -> isles::Result<StripRecord> {
    let strip = Strip::new(field, rows_of(field.rows, links.team().rank(), links.team().size()));
    let inner = strip.rows().saturating_sub(2);
    let (inner, edges) = (strip.work(inner), strip.work(strip.rows() - inner));
    run_strip(strip, generations, drawn, async |step, strip| {
        let started = Instant::now();
        links
            .step(step, strip, |rows| {
                rows.advance();
                work(inner);
            })
            .await?;
        work(edges);
        meter.add_done(started);
        Ok(())
    })
    .await
}

/// Runs the same generations sequentially, without places.
fn sequential(field: &Field, generations: u64) -> Vec<Sums> {
    let mut strip = Strip::new(field, 0..field.rows);
    let mut sums = vec![strip.sums()];
    for _ in 0..generations {
        let (first, last) = (strip.row(1).to_vec(), strip.row(field.rows).to_vec());
        strip.row_mut(0).copy_from_slice(&last);
        strip.row_mut(field.rows + 1).copy_from_slice(&first);
        strip.split().2.advance();
        strip.finish();
        sums.push(strip.sums());
    }
    sums
}

impl Application for Automaton {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The generations are the same at any number of places and with any exchange of edges.",
        ..ApplicationInfo::new("automaton", env!("CARGO_PKG_DESCRIPTION"), "steps")
    };
    type Input = AutomatonInput;
    type Found = AutomatonFound;

    fn run_name(&self) -> String {
        format!("automaton-{}", self.file.as_ref().map_or(self.pattern.as_str(), |_| "file"))
    }

    fn reads(&self) -> Vec<Claim> {
        self.file.iter().map(|path| Claim::read(path, "the pattern")).collect()
    }

    fn check_machine(&self, _: Machine) -> Result<(), Failure> {
        self.drawn().map(drop)
    }

    fn open(&self, places: u32) -> Result<AutomatonInput, Failure> {
        let field = self.field()?;
        if (places as usize) > field.rows {
            let text = format!("--rows is {}; allowed: at least {places}, one for each place", field.rows);
            return Err(Failure::Usage(text));
        }
        Ok(AutomatonInput {
            pattern: self.file.clone().unwrap_or_else(|| self.pattern.clone()),
            rule: field.rule,
            rows: field.rows,
            columns: field.columns,
            generations: self.generations,
            exchange: self.exchange,
            drawn: self.drawn()?,
            field,
        })
    }

    fn heading(&self, input: &AutomatonInput) -> String {
        let AutomatonInput { pattern, rule, rows, columns, exchange, .. } = input;
        let steps = count(self.generations, "step", "steps");
        format!("{pattern} on {rows} × {columns} cells, {rule}, {steps}, {}", exchange.name())
    }

    async fn compute(
        input: AutomatonInput,
        distributor: WorkDistributor,
    ) -> isles::Result<(AutomatonFound, WorkDone)> {
        let AutomatonInput { generations, exchange, field, drawn, .. } = input;
        let team = exchange.team()?;
        let meter = distributor.meter(Some(generations * team.size() as u64)).await?;
        let records = PlaceLocal::new(StripRecord::default).await?;
        let links = Links::new(&team, exchange, field.columns).await?;
        let started = now();
        finish(async {
            for rank in 0..team.size() {
                spawn_at!(team.place_of(rank), {
                    let record = run_place(&field, generations, &drawn, &links, &meter).await?;
                    *records.lock() = record;
                });
            }
        })
        .await?;
        let done = meter.done(started).await?;
        let record = records.reduce(StripRecord::merge).await?;
        Ok((AutomatonFound::new(record, field), done))
    }
}

impl RunResult for Automaton {
    fn text(&self, found: &AutomatonFound) -> String {
        let AutomatonFound { generation, population, hash, .. } = found;
        format!("generation  {generation}\npopulation  {population}\nhash        {hash}")
    }

    fn speed(&self, found: &AutomatonFound, seconds: f64) -> String {
        let cells = found.field.rows as f64 * found.field.columns as f64 * found.generation as f64;
        format!("{:.0} million cells a second", cells / seconds / 1e6)
    }

    fn verify(&self, found: &AutomatonFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        if !is_thorough {
            return Ok(None);
        }
        let sums = sequential(&found.field, found.generation);
        let generations = sums.len();
        let text = format!("all {generations} generations are those of one processor");
        Ok(Some(Verification { holds: sums == found.record.sums, text }))
    }

    fn write_csv(&self, found: &AutomatonFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "generation,population,hash")?;
        let rows = found.populations.iter().zip(&found.hashes).enumerate();
        rows.into_iter()
            .try_for_each(|(number, (population, hash))| writeln!(out, "{number},{population},{hash}"))
    }

    fn pictures(&self) -> Vec<(&'static str, &str)> {
        let png = self.png.as_ref().map(|path| ("--png", path.as_str()));
        png.into_iter().chain(self.gif.as_ref().map(|path| ("--gif", path.as_str()))).collect()
    }

    fn write_picture(&self, flag: &str, found: &AutomatonFound, out: &mut dyn Write) -> io::Result<()> {
        let (columns, rows) = (found.field.columns, found.field.rows);
        let frames = found.record.packed.chunks(found.record.packed_each.max(1));
        let mut frames: Vec<Cells<'_>> = frames.map(|packed| Cells { columns, rows, packed }).collect();
        if flag == "--png" {
            return frames.last().map_or(Ok(()), |cells| picture::write_png(cells, out));
        }
        if self.png.is_some() {
            frames.pop();
        }
        picture::write_gif(&frames, out)
    }
}
