//! The worst case of a static program: the bounds of its steps, added up along their dependencies.
//!
//! A participant that waits for a flag continues at the later of two times: two polls after the flag was written (one
//! may just have missed it), or one poll after the start of the wait. Both are monotone in all earlier times, so bounds
//! of the parts give a bound of the whole. The program fixes the order of the steps of two participants, so there are
//! no races.

use super::access::{AccessBounds, DataIn, LinkOrder};
use super::terms::{Term, Terms};
use super::{Interference, NoBound, Platform, ProgramStep, StaticProgram};
use crate::bare::rcce::{LibraryCosts, line_chunks};
use crate::bare::reduce::ADD_LINE_CYCLES;
use crate::topology::CoreId;

/// Behaviour of cores that do not participate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are idle or compute within their caches.
    Idle,
    /// They make arbitrary accesses, one after the other, to any buffer and any memory.
    Anything,
}

/// Upper bounds of static programs on one chip.
#[derive(Clone, Debug)]
pub struct ProgramBounds {
    accesses: AccessBounds,
    library: LibraryCosts,
    participants: u32,
    line_bytes: usize,
    chunk_lines: u32,
}

impl ProgramBounds {
    /// Returns the bounds for one program with the library of its messages.
    ///
    /// # Errors
    /// Why there is no bound on this chip.
    pub fn new(
        platform: Platform<'_>,
        program: &StaticProgram,
        library: LibraryCosts,
        others: Others,
        order: LinkOrder,
        data: DataIn,
    ) -> Result<ProgramBounds, NoBound> {
        let chip = platform.chip;
        let participants = program.participants();
        let line_bytes = chip.caches().line.0 as usize;
        let buffer = chip.buffer().ok_or(NoBound::Missing("buffer"))?.size.0 as usize / line_bytes;
        let most = chip.topology().cores().min((buffer as u32).saturating_sub(1) / 2);
        if !(1..=most).contains(&participants) {
            return Err(NoBound::Participants { participants, most });
        }
        check_partners(program)?;
        let mut interference = Interference::none(chip)?;
        add_program(&mut interference, program, data);
        if others == Others::Anything {
            (participants..chip.topology().cores())
                .for_each(|core| interference.add_unrestricted(CoreId(core)));
        }
        let accesses = AccessBounds::new(platform, interference, order, data)?;
        let chunk_lines = buffer as u32 - 2 * participants;
        Ok(ProgramBounds { accesses, library, participants, line_bytes, chunk_lines })
    }

    /// Returns the bounds of single accesses, under the load of the program and the other cores.
    pub fn accesses(&self) -> &AccessBounds {
        &self.accesses
    }

    /// Returns the latest end of each participant, if all start together.
    ///
    /// # Errors
    /// [`NoBound::Stuck`]: some participants deadlock.
    pub fn ends(&self, program: &StaticProgram) -> Result<Vec<Terms>, NoBound> {
        let count = self.participants as usize;
        let mut run = Evaluation { clocks: vec![Terms::default(); count], next: vec![0; count] };
        while self.advance(program, &mut run) {}
        let step = |at: usize| program.steps[at].get(run.next[at]).map(|step| (at as u32, *step));
        let waiting: Vec<_> = (0..count).filter_map(step).collect();
        if waiting.is_empty() { Ok(run.clocks) } else { Err(NoBound::Stuck { waiting }) }
    }

    /// Returns the latest end of all participants.
    ///
    /// # Errors
    /// As [`ends`](Self::ends).
    pub fn longest(&self, program: &StaticProgram) -> Result<Terms, NoBound> {
        Ok(self.ends(program)?.into_iter().fold(Terms::default(), Terms::longer))
    }

    /// Takes all independent steps, then one that involves others; returns `false` if there is none.
    fn advance(&self, program: &StaticProgram, run: &mut Evaluation) -> bool {
        let mut moved = false;
        for at in 0..self.participants as usize {
            while let Some(&step) = program.steps[at].get(run.next[at]) {
                let taken = match step {
                    ProgramStep::Work { cycles } => self.accesses.work(cycles),
                    ProgramStep::Add { bytes, .. } => self.add(at as u32, bytes),
                    ProgramStep::Send { to, bytes, .. }
                        if self.is_receiving(program, run, at as u32, to, bytes) =>
                    {
                        let (from, to) = (at, to as usize);
                        (run.clocks[from], run.clocks[to]) =
                            self.message(at as u32, to as u32, bytes, run.clocks[from], run.clocks[to]);
                        run.next[to] += 1;
                        Terms::default()
                    }
                    _ => break,
                };
                run.clocks[at] += taken;
                run.next[at] += 1;
                moved = true;
            }
        }
        moved || self.try_barrier(program, run)
    }

    /// Returns `true` if `to` is at the step that receives what `from` sends.
    fn is_receiving(
        &self,
        program: &StaticProgram,
        run: &Evaluation,
        from: u32,
        to: u32,
        bytes: usize,
    ) -> bool {
        let there = program.steps[to as usize].get(run.next[to as usize]);
        let Some(ProgramStep::Receive { from: source, bytes: length, .. }) = there else { return false };
        (*source, *length) == (from, bytes)
    }

    fn try_barrier(&self, program: &StaticProgram, run: &mut Evaluation) -> bool {
        let at = |number: usize| program.steps[number].get(run.next[number]);
        if !(0..self.participants as usize).all(|number| at(number) == Some(&ProgramStep::Barrier)) {
            return false;
        }
        run.clocks = self.barrier(&run.clocks);
        run.next.iter_mut().for_each(|next| *next += 1);
        true
    }

    /// Returns the bound of a write of a flag.
    fn set_flag(&self, core: CoreId, of: CoreId) -> Terms {
        self.accesses.instructions(self.library.call) + self.accesses.write(core, of)
    }

    /// Returns the latest time at which a core that waits since `since` sees a flag that is written at `written`.
    fn flag_seen_at(&self, core: CoreId, written: Terms, since: Terms) -> Terms {
        let look = self.accesses.look(core, self.library.look);
        let waits = since + self.accesses.instructions(self.library.call) + look;
        (written + look.times(2).all_as(Term::Polling)).longer(waits)
    }

    fn put(&self, core: CoreId, lines: u32) -> Terms {
        let line = self.accesses.load(core)
            + self.accesses.instructions(self.library.line)
            + self.accesses.write(core, core);
        self.accesses.instructions(self.library.call) + line.times(u64::from(lines))
    }

    fn get(&self, core: CoreId, from: CoreId, lines: u32) -> Terms {
        let mut line = self.accesses.read(core, from)
            + self.accesses.instructions(self.library.line)
            + self.accesses.store(core);
        if self.library.prefetches {
            line += self.accesses.load(core);
        }
        self.accesses.instructions(self.library.call) + line.times(u64::from(lines))
    }

    fn tail(&self, bytes: usize) -> Terms {
        let has_tail = !bytes.is_multiple_of(self.line_bytes);
        self.accesses.instructions(if has_tail { self.library.tail } else { 0 })
    }

    /// Returns the ends of a message for sender and receiver, from their starts.
    fn message(
        &self,
        from: u32,
        to: u32,
        bytes: usize,
        mut sender: Terms,
        mut receiver: Terms,
    ) -> (Terms, Terms) {
        let (from, to) = (CoreId(from), CoreId(to));
        for (_, lines) in line_chunks(bytes.div_ceil(self.line_bytes) as u32, self.chunk_lines) {
            sender += self.tail(bytes) + self.put(from, lines) + self.set_flag(from, to);
            receiver = self.flag_seen_at(to, sender, receiver);
            receiver += self.set_flag(to, to) + self.get(to, from, lines) + self.tail(bytes);
            receiver += self.set_flag(to, from);
            sender = self.flag_seen_at(from, receiver, sender) + self.set_flag(from, from);
        }
        (sender, receiver)
    }

    fn add(&self, participant: u32, bytes: usize) -> Terms {
        let core = CoreId(participant);
        let line = self.accesses.load(core).times(2)
            + self.accesses.instructions(ADD_LINE_CYCLES * self.line_bytes as u64 / 32)
            + self.accesses.store(core);
        line.times(bytes.div_ceil(self.line_bytes) as u64)
    }

    /// Returns the times at which the participants leave a barrier, from the times at which they reach it.
    ///
    /// The root's round may just have passed the last participant, so it takes two rounds. Then it writes to one after
    /// the other.
    fn barrier(&self, begin: &[Terms]) -> Vec<Terms> {
        let root = CoreId(0);
        let members = || (1..self.participants).map(CoreId);
        let arrived: Vec<Terms> =
            members().map(|core| begin[core.0 as usize] + self.set_flag(core, core)).collect();
        let look = |core| self.accesses.read(root, core) + self.accesses.instructions(self.library.look);
        let round = members().map(look).fold(Terms::default(), |sum, look| sum + look);
        let last = arrived.iter().copied().fold(Terms::default(), Terms::longer);
        let own = begin[0] + self.accesses.instructions(self.library.call) + round;
        let mut writes = if self.participants > 1 { (last + round.times(2)).longer(own) } else { own };
        let mut ends = Vec::with_capacity(begin.len());
        for (core, arrived) in members().zip(arrived) {
            writes += self.set_flag(root, core);
            ends.push(self.flag_seen_at(core, writes, arrived));
        }
        ends.insert(0, writes);
        ends
    }
}

struct Evaluation {
    clocks: Vec<Terms>,
    /// Next step of each participant.
    next: Vec<usize>,
}

fn check_partners(program: &StaticProgram) -> Result<(), NoBound> {
    for (participant, steps) in (0..).zip(&program.steps) {
        for step in steps {
            let (ProgramStep::Send { to: partner, .. } | ProgramStep::Receive { from: partner, .. }) = *step
            else {
                continue;
            };
            if partner == participant || partner >= program.participants() {
                return Err(NoBound::Partner { participant, partner });
            }
        }
    }
    Ok(())
}

/// Adds all accesses of a program.
fn add_program(interference: &mut Interference, program: &StaticProgram, data: DataIn) {
    for (participant, steps) in (0..).zip(&program.steps) {
        let core = CoreId(participant);
        if data == DataIn::Memory && !steps.is_empty() {
            interference.add_memory(core);
        }
        for step in steps {
            match *step {
                ProgramStep::Work { .. } | ProgramStep::Add { .. } => {}
                ProgramStep::Send { to, .. } => {
                    interference.add_read(core, core);
                    interference.add_write(core, core);
                    interference.add_write(core, CoreId(to));
                }
                ProgramStep::Receive { from, .. } => {
                    interference.add_read(core, core);
                    interference.add_write(core, core);
                    interference.add_read(core, CoreId(from));
                    interference.add_write(core, CoreId(from));
                }
                ProgramStep::Barrier if participant == 0 => {
                    for member in (1..program.participants()).map(CoreId) {
                        interference.add_read(core, member);
                        interference.add_write(core, member);
                    }
                }
                ProgramStep::Barrier => {
                    interference.add_read(core, core);
                    interference.add_write(core, core);
                }
            }
        }
    }
}
