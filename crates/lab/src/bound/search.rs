//! The worst case found on the model: runs with cores that disturb, and a hill-climbing search over their accesses.
//!
//! Each core that does not participate repeats a few accesses with pauses between them. The search begins with random
//! accesses, or with accesses by all these cores to one buffer, whichever is worse. It changes one access at a time and
//! keeps each change that does not make the program faster. It is seeded, so its result is the same on every host.

use isles_chip::bare::rcce::{LibraryCosts, Participant};
use isles_chip::bare::ticket_lock::TicketLock;
use isles_chip::bare::{BareChip, BareCore, LINE_BYTES};
use isles_chip::bound::{Others, StaticProgram};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use isles_chip::{Chip, Preset};
use std::cell::Cell;
use std::rc::Rc;

/// Accesses that a disturbing core repeats.
const ACCESSES: usize = 3;

/// The longest pause before an access, in cycles.
const PAUSE_MAX: u64 = 256;

/// First line of a buffer that holds no flag of any program.
const FREE_LINES: u32 = 2 * 48;

/// The program that runs on the model.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A program; its time is that of the last participant.
    Program(&'a StaticProgram),
    /// Repeated reads of a line of another core's buffer; its time is that of the longest read.
    Read {
        /// Core that reads.
        core: u32,
        /// Core whose buffer is read.
        of: u32,
    },
    /// A ticket lock among the first cores; its time is the longest wait.
    Lock {
        /// Number of cores that acquire it.
        participants: u32,
        /// Cycles for which each holds it.
        hold: u64,
    },
}

impl Subject<'_> {
    /// Returns `true` if `core` participates.
    fn has(&self, core: u32) -> bool {
        match *self {
            Subject::Program(program) => core < program.participants(),
            Subject::Read { core: reader, .. } => core == reader,
            Subject::Lock { participants, .. } => core < participants,
        }
    }

    /// Returns the disturbances to start with, each by all other cores at once: repeated accesses to the buffer of the
    /// first or the last core.
    fn constant_disturbances(&self) -> impl Iterator<Item = Disturbance> + use<> {
        let last = match *self {
            Subject::Program(program) => program.participants() - 1,
            Subject::Read { of, .. } => of,
            Subject::Lock { participants, .. } => participants - 1,
        };
        [0, last]
            .into_iter()
            .flat_map(|of| [false, true].map(|is_write| Disturbance { pause: 0, is_write, of }))
    }
}

/// The model on which a subject runs.
pub struct BareRuns<'a> {
    pub chip: &'a Chip,
    pub preset: &'a Preset,
    pub library: LibraryCosts,
    pub others: Others,
    /// Lines of private memory that each participant has read before.
    pub warm_lines: u64,
}

/// One access of a disturbing core.
#[derive(Clone, Copy, Debug)]
struct Disturbance {
    pause: u64,
    is_write: bool,
    of: u32,
}

/// Pseudo-random numbers (xorshift).
pub struct Xorshift(u64);

impl Xorshift {
    pub fn new(seed: u64) -> Xorshift {
        Xorshift(seed | 1)
    }

    /// Returns the next number, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

impl BareRuns<'_> {
    /// Returns the longest time of the subject in `runs` runs; `None` if the model cannot run it.
    pub fn worst(&self, subject: Subject<'_>, runs: u32, seed: u64) -> Option<Picoseconds> {
        let cores = self.chip.topology().cores();
        let disturbing: Vec<u32> = match self.others {
            Others::Idle => Vec::new(),
            Others::Anything => (0..cores).filter(|core| !subject.has(*core)).collect(),
        };
        let mut random = Xorshift::new(seed);
        let draw = |random: &mut Xorshift| Disturbance {
            pause: random.below(PAUSE_MAX),
            is_write: random.below(2) == 0,
            of: random.below(u64::from(cores)) as u32,
        };
        let mut plan: Vec<Vec<Disturbance>> =
            disturbing.iter().map(|_| (0..ACCESSES).map(|_| draw(&mut random)).collect()).collect();
        let mut worst = self.run(subject, &disturbing, &plan)?;
        for hammer in subject.constant_disturbances().filter(|_| !disturbing.is_empty()) {
            let hammering = vec![vec![hammer; ACCESSES]; disturbing.len()];
            let took = self.run(subject, &disturbing, &hammering)?;
            if took > worst {
                (plan, worst) = (hammering, took);
            }
        }
        // Without disturbing cores, all runs are the same.
        for _ in 1..if disturbing.is_empty() { 1 } else { runs } {
            let at = random.below(disturbing.len() as u64) as usize;
            let which = random.below(ACCESSES as u64) as usize;
            let before = plan[at][which];
            plan[at][which] = draw(&mut random);
            match self.run(subject, &disturbing, &plan)? {
                took if took >= worst => worst = took,
                _ => plan[at][which] = before,
            }
        }
        Some(worst)
    }

    fn run(
        &self,
        subject: Subject<'_>,
        disturbing: &[u32],
        plan: &[Vec<Disturbance>],
    ) -> Option<Picoseconds> {
        let bare = BareChip::new(self.chip, self.preset)?;
        let cores = self.chip.topology().cores();
        let taking_part: Vec<u32> = (0..cores).filter(|core| subject.has(*core)).collect();
        let warm = self.warm_lines;
        let warmed = bare.run(taking_part.iter().copied().map(CoreId), |core| async move {
            for line in 0..warm {
                core.load(line).await;
            }
        });
        warmed.ok()?;
        let clock =
            LongestRun { start: bare.now(), left: Cell::new(taking_part.len()), longest: Cell::new(0) };
        let (clock, subject) = (Rc::new(clock), OwnedSubject::of(subject));
        let (shared, library) = (Rc::clone(&clock), self.library);
        let running = taking_part.iter().chain(disturbing).copied().map(CoreId);
        let ended = bare.run(running, move |core| {
            let (clock, subject) = (Rc::clone(&shared), Rc::clone(&subject));
            let at = disturbing.iter().position(|other| *other == core.id().0);
            let plan = at.map(|at| plan[at].clone());
            async move {
                match plan {
                    Some(plan) => disturb(core, plan, &clock).await,
                    None => subject.run(core, library, &clock).await,
                }
            }
        });
        ended.ok()?;
        Some(Picoseconds(clock.longest.get()))
    }
}

/// Longest time of the subject so far, and the number of cores that still run.
struct LongestRun {
    start: Picoseconds,
    left: Cell<usize>,
    longest: Cell<u64>,
}

impl LongestRun {
    fn note(&self, took: Picoseconds) {
        self.longest.set(self.longest.get().max(took.0));
    }
}

/// A subject that the programs of cores can own.
enum OwnedSubject {
    Program(StaticProgram),
    Read { of: u32 },
    Lock { participants: u32, hold: u64 },
}

impl OwnedSubject {
    fn of(subject: Subject<'_>) -> Rc<OwnedSubject> {
        Rc::new(match subject {
            Subject::Program(program) => OwnedSubject::Program(program.clone()),
            Subject::Read { of, .. } => OwnedSubject::Read { of },
            Subject::Lock { participants, hold } => OwnedSubject::Lock { participants, hold },
        })
    }

    async fn run(&self, core: BareCore, library: LibraryCosts, clock: &LongestRun) {
        match self {
            OwnedSubject::Program(program) => {
                let here = Participant { core: core.clone(), participants: program.participants(), library };
                here.run(program).await;
                clock.note(core.now() - clock.start);
            }
            OwnedSubject::Read { of } => {
                for number in 0..50 {
                    core.compute(97 + number).await;
                    let asked = core.now();
                    core.read_line(CoreId(*of), FREE_LINES).await;
                    clock.note(core.now() - asked);
                }
            }
            OwnedSubject::Lock { participants, hold } => {
                let here = Participant { core: core.clone(), participants: *participants, library };
                let lock = TicketLock::new(&here);
                for _ in 0..2 {
                    let asked = core.now();
                    lock.lock().await;
                    clock.note(core.now() - asked);
                    core.compute(*hold).await;
                    lock.unlock().await;
                }
            }
        }
        clock.left.set(clock.left.get() - 1);
    }
}

async fn disturb(core: BareCore, plan: Vec<Disturbance>, clock: &LongestRun) {
    for access in plan.iter().cycle() {
        if clock.left.get() == 0 {
            return;
        }
        core.compute(access.pause).await;
        match access.is_write {
            true => core.write_line(CoreId(access.of), FREE_LINES, [1; LINE_BYTES]).await,
            false => _ = core.read_line(CoreId(access.of), FREE_LINES).await,
        }
    }
}
