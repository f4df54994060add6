//! A cellular automaton on bare cores, whose deadline is known before it runs: rule 110 on a ring of cells.
//!
//! Each core has a block of cells. A round is an exchange of border cells with both neighbours, then the work. The
//! steps form a static program and are bounded like any other; here they also move real cells, which are compared with
//! those of a run without cores.

use isles_chip::bare::rcce::{LibraryCosts, Participant};
use isles_chip::bare::{BareChip, BareCore};
use isles_chip::bound::{ProgramStep, StaticProgram};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use isles_chip::{Chip, Preset};
use std::cell::RefCell;
use std::rc::Rc;

/// New cell for each combination of the three old ones, as bits (Wolfram's number).
const RULE: u8 = 110;

/// Lines of private memory: the borders of the core's own block, and those of the neighbours.
const OWN_LEFT: u64 = 0;
const OWN_RIGHT: u64 = 1;
const FROM_LEFT: u64 = 2;
const FROM_RIGHT: u64 = 3;

/// The size of an automaton.
#[derive(Clone, Copy, Debug)]
pub struct Automaton {
    /// Number of cores.
    pub participants: u32,
    /// Total number of cells.
    pub cells: usize,
    /// Cycles of work in a round, over all cores.
    pub work: u64,
    /// Number of rounds.
    pub rounds: u32,
}

impl Automaton {
    /// Returns the steps of all cores.
    pub fn program(&self) -> StaticProgram {
        let count = self.participants;
        let mut program = StaticProgram::new(count);
        for _ in 0..self.rounds {
            // In a ring with an odd number of cores, the pair of its ends comes last, so that the cores do not wait in
            // a circle.
            let pairs = (0..count).map(|left| (left, (left + 1) % count)).filter(|_| count > 1);
            let phase = |left: u32| if left + 1 == count && count % 2 == 1 { 2 } else { left % 2 };
            for now in 0..3 {
                for (left, right) in pairs.clone().filter(|(left, _)| phase(*left) == now) {
                    program.push_message(left, right, 1, OWN_RIGHT, FROM_LEFT);
                    program.push_message(right, left, 1, OWN_LEFT, FROM_RIGHT);
                }
            }
            for at in 0..count {
                let part = (u64::from(at) + 1) * self.work / u64::from(count)
                    - u64::from(at) * self.work / u64::from(count);
                program.push(at, ProgramStep::Work { cycles: part });
            }
        }
        program
    }

    /// Returns the initial cells; one in seven is set.
    fn first_cells(&self) -> Vec<u8> {
        (0..self.cells).map(|at| u8::from(at % 7 == 0)).collect()
    }

    /// Returns the range of the cells of one core.
    fn block(&self, core: u32) -> std::ops::Range<usize> {
        let edge = |core: u32| core as usize * self.cells / self.participants as usize;
        edge(core)..edge(core + 1)
    }

    /// Runs the automaton on the model. Returns the time taken, and whether the cells equal those of a run without
    /// cores; `None` if the model has no bare cores for the chip.
    pub fn run(&self, chip: &Chip, preset: &Preset, library: LibraryCosts) -> Option<(Picoseconds, bool)> {
        let bare = BareChip::new(chip, preset)?;
        let cores = (0..self.participants).map(CoreId);
        let warmed = bare.run(cores.clone(), |core| async move {
            for line in [OWN_LEFT, OWN_RIGHT, FROM_LEFT, FROM_RIGHT] {
                core.load(line).await;
            }
        });
        warmed.ok()?;
        let cells = Rc::new(RefCell::new(self.first_cells()));
        let (shared, program, automaton) = (Rc::clone(&cells), Rc::new(self.program()), *self);
        let took = bare.run(cores, move |core| {
            let (cells, program) = (Rc::clone(&shared), Rc::clone(&program));
            async move {
                let here = Participant { core, participants: automaton.participants, library };
                automaton.play(&here, &program, &cells).await;
            }
        });
        let mut expected = self.first_cells();
        (0..self.rounds)
            .for_each(|_| expected = next_cells(&expected, expected[expected.len() - 1], expected[0]));
        Some((took.ok()?, *cells.borrow() == expected))
    }

    /// Runs the part of one core. All cells are in one list; a core accesses only those of its block.
    async fn play(&self, here: &Participant, program: &StaticProgram, cells: &RefCell<Vec<u8>>) {
        let (block, core) = (self.block(here.rank()), &here.core);
        let mut own = cells.borrow()[block.clone()].to_vec();
        show_borders(core, &own);
        let mut barriers = 0;
        for step in &program.steps[here.rank() as usize] {
            here.take(*step, &mut barriers).await;
            if matches!(step, ProgramStep::Work { .. }) {
                let border = |line: u64, alone: u8| match self.participants {
                    1 => alone,
                    _ => core.memory(line, 1)[0],
                };
                let (left, right) = (border(FROM_LEFT, own[own.len() - 1]), border(FROM_RIGHT, own[0]));
                own = next_cells(&own, left, right);
                show_borders(core, &own);
            }
        }
        cells.borrow_mut()[block].copy_from_slice(&own);
    }
}

/// Writes the border cells to the lines that messages are sent from.
fn show_borders(core: &BareCore, own: &[u8]) {
    core.set_memory(OWN_LEFT, &own[..1]);
    core.set_memory(OWN_RIGHT, &own[own.len() - 1..]);
}

/// Returns the cells of the next round; `left` and `right` are the neighbours of `cells`.
fn next_cells(cells: &[u8], left: u8, right: u8) -> Vec<u8> {
    let at = |index: usize| match index {
        0 => left,
        index if index > cells.len() => right,
        index => cells[index - 1],
    };
    (1..=cells.len()).map(|index| RULE >> (at(index - 1) * 4 + at(index) * 2 + at(index + 1)) & 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_chip::bound::{Constants, DataIn, LinkOrder, Others, Platform, ProgramBounds};

    #[test]
    fn it_has_the_cells_of_a_run_without_cores_and_meets_its_bound_on_any_number_of_cores() {
        let chip = Chip::find("scc").unwrap();
        for participants in [1, 2, 3, 8, 11, 48] {
            let automaton = Automaton { participants, cells: 500, work: 20_000, rounds: 6 };
            let program = automaton.program();
            let preset = chip.default_preset();
            let platform = Platform { chip: &chip, preset, constants: Constants::AsWritten };
            let (others, order, data) = (Others::Idle, LinkOrder::Reserved, DataIn::FirstCache);
            let bounds = ProgramBounds::new(platform, &program, LibraryCosts::RCCE, others, order, data);
            let bounds = bounds.unwrap();
            let bound = bounds.longest(&program).unwrap().total();
            let (took, is_right) = automaton.run(&chip, preset, LibraryCosts::RCCE).unwrap();
            assert!(is_right && took <= bound, "{participants} cores: {took} of {bound}");
        }
    }
}
