//! The pattern to bound: a case read from the command line, its bound, and its longest time on the model.

use super::automaton::Automaton;
use super::search::{BareRuns, Subject};
use super::{BoundArguments, BoundTarget, LibraryName, LockName, OtherCores, Shares};
use isles_app::Failure;
use isles_app::runs::refusal;
use isles_chip::bare::rcce::LibraryCosts;
use isles_chip::bound::mutex::MutexBounds;
use isles_chip::bound::pattern::{CONTROL_LOOP, PatternSize};
use isles_chip::bound::{
    AccessBounds, Constants, DataIn, Interference, LinkOrder, NoBound, Others, Platform, ProgramBounds,
    StaticProgram, Terms,
};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use isles_chip::{Chip, Preset};

/// A pattern of one size on one chip.
#[derive(Clone)]
pub struct BoundCase<'a> {
    pub chip: &'a Chip,
    pub preset: &'a Preset,
    pub constants: Constants,
    pub target: BoundTarget,
    pub size: PatternSize,
    pub library: LibraryCosts,
    pub others: Others,
}

/// The bound of a case.
pub struct Bound {
    pub terms: Terms,
    /// Memory level that is assumed to hold private lines.
    pub data: DataIn,
}

impl<'a> BoundCase<'a> {
    /// Reads the case that the arguments describe.
    ///
    /// # Errors
    /// A value is not allowed; the error states the allowed values.
    pub fn read(arguments: &BoundArguments, chip: &'a Chip) -> Result<BoundCase<'a>, Failure> {
        let presets = || chip.presets().iter().map(Preset::name).collect::<Vec<_>>().join(", ");
        let preset = match &arguments.preset {
            None => chip.default_preset(),
            Some(name) => chip.preset(name).ok_or_else(|| refusal("--preset", name, &presets()))?,
        };
        let cores = chip.topology().cores();
        let is_loop = arguments.target == BoundTarget::ControlLoop;
        let participants = arguments.places.unwrap_or(if is_loop { CONTROL_LOOP } else { cores });
        let least = if matches!(arguments.target, BoundTarget::Read | BoundTarget::Message) { 2 } else { 1 };
        if !(least..=cores).contains(&participants) {
            let allowed = format!("{least} to {cores}, the cores of {}", chip.name());
            return Err(refusal("--places", &participants.to_string(), &allowed));
        }
        if arguments.target == BoundTarget::Automaton && arguments.size < u64::from(participants) {
            let allowed = format!("{participants} cells or more, one for each core");
            return Err(refusal("--size", &arguments.size.to_string(), &allowed));
        }
        if is_loop && participants != CONTROL_LOOP {
            return Err(refusal("--places", &participants.to_string(), "4, the parts of a control loop"));
        }
        if arguments.lock == Some(LockName::TestAndSet) {
            let reason = "tickets: a core that spins on a test-and-set register may lose each round, so no bound \
                 exists";
            return Err(refusal("--lock", "test-and-set", reason));
        }
        if arguments.shares == Some(Shares::OnDemand) {
            let reason = "fixed: otherwise the distribution depends on time, and no bound exists";
            return Err(refusal("--shares", "on-demand", reason));
        }
        let size = PatternSize {
            participants,
            bytes: arguments.size as usize,
            work: arguments.work,
            items: arguments.items,
        };
        let library = match arguments.library {
            LibraryName::Rcce => LibraryCosts::RCCE,
            LibraryName::Ircce => LibraryCosts::IRCCE,
        };
        let others = match arguments.others {
            OtherCores::Idle => Others::Idle,
            OtherCores::Anything => Others::Anything,
        };
        let constants = if arguments.errors { Constants::WorstCase } else { Constants::AsWritten };
        Ok(BoundCase { chip, preset, constants, target: arguments.target, size, library, others })
    }

    /// Returns the same case with another number of participants.
    pub(crate) fn of_participants(&self, participants: u32) -> BoundCase<'a> {
        BoundCase { size: PatternSize { participants, ..self.size }, ..self.clone() }
    }

    /// Returns the same case with messages of another length.
    pub fn of_bytes(&self, bytes: usize) -> BoundCase<'a> {
        BoundCase { size: PatternSize { bytes, ..self.size }, ..self.clone() }
    }

    /// Returns the steps, if the case is a static program.
    pub fn program(&self) -> Option<StaticProgram> {
        match self.target.pattern() {
            Some(pattern) => Some(pattern.program(self.size, self.line_bytes())),
            None => self.automaton().map(|automaton| automaton.program()),
        }
    }

    fn automaton(&self) -> Option<Automaton> {
        let PatternSize { participants, bytes, work, items } = self.size;
        let automaton = Automaton { participants, cells: bytes, work, rounds: items };
        (self.target == BoundTarget::Automaton).then_some(automaton)
    }

    /// Returns the bytes of private memory that each core uses.
    fn data_bytes(&self) -> usize {
        self.target.pattern().map_or(4 * self.line_bytes(), |pattern| pattern.data_bytes(self.size))
    }

    /// Runs an automaton on the model and returns `true` if its cells are right; `None` if the target has no cells or
    /// the chip has no bare cores.
    pub(crate) fn has_right_cells(&self) -> Option<bool> {
        let (_, is_right) = self.automaton()?.run(self.chip, self.preset, self.library)?;
        Some(is_right)
    }

    fn line_bytes(&self) -> usize {
        self.chip.caches().line.0 as usize
    }

    /// Returns the upper bound of the time of the case.
    ///
    /// # Errors
    /// [`NoBound`] if the case has no bound.
    pub fn bound(&self) -> Result<Bound, NoBound> {
        let Some(program) = self.program() else {
            return Ok(Bound { terms: self.bound_without_program()?, data: DataIn::FirstCache });
        };
        let data = DataIn::of_bytes(self.chip, self.data_bytes());
        let (others, order) = (self.others, LinkOrder::Reserved);
        let bounds = ProgramBounds::new(self.platform(), &program, self.library, others, order, data)?;
        Ok(Bound { terms: bounds.longest(&program)?, data })
    }

    fn platform(&self) -> Platform<'_> {
        Platform { chip: self.chip, preset: self.preset, constants: self.constants }
    }

    fn bound_without_program(&self) -> Result<Terms, NoBound> {
        let (platform, participants) = (self.platform(), self.size.participants);
        if self.target == BoundTarget::Mutex {
            let (library, others) = (self.library, self.others);
            let bounds = MutexBounds::new(platform, participants, library, others, LinkOrder::Reserved)?;
            return Ok(bounds.wait(self.size.work));
        }
        let (reader, owner) = (CoreId(participants - 1), CoreId(0));
        let mut interference = Interference::none(self.chip)?;
        interference.add_read(reader, owner);
        if self.others == Others::Anything {
            let others = (0..self.chip.topology().cores()).map(CoreId).filter(|core| *core != reader);
            others.for_each(|core| interference.add_unrestricted(core));
        }
        let bounds = AccessBounds::new(platform, interference, LinkOrder::Reserved, DataIn::FirstCache)?;
        Ok(bounds.read(reader, owner))
    }

    /// Returns the longest time in `runs` runs of the model with the constants of the file; `None` if the model has no
    /// bare cores for this chip, or if `runs` is 0.
    pub fn seen(&self, runs: u32) -> Option<Picoseconds> {
        if runs == 0 {
            return None;
        }
        let model = BareRuns {
            chip: self.chip,
            preset: self.preset,
            library: self.library,
            others: self.others,
            warm_lines: self.data_bytes().div_ceil(self.line_bytes()) as u64,
        };
        let PatternSize { participants, work, .. } = self.size;
        let program = self.program();
        let subject = match (&program, self.target) {
            (Some(program), _) => Subject::Program(program),
            (None, BoundTarget::Mutex) => Subject::Lock { participants, hold: work },
            (None, _) => Subject::Read { core: participants - 1, of: 0 },
        };
        model.worst(subject, runs, SEED)
    }

    /// Returns the time of all the work on one core, in picoseconds, or `None` if the target has no work.
    pub fn serial(&self) -> Option<Picoseconds> {
        let work = match self.target.pattern().filter(|pattern| pattern.works()) {
            Some(pattern) => pattern.all_work(self.size),
            None if self.target == BoundTarget::Automaton => self.size.work * u64::from(self.size.items),
            None => return None,
        };
        let rate = self.preset.clocks().core;
        let scaled = u128::from(work) * 1_000_000_000_000 * u128::from(rate.divider());
        Some(Picoseconds(scaled.div_ceil(u128::from(rate.hertz())) as u64))
    }
}

/// The seed of the search.
const SEED: u64 = 151_715;
