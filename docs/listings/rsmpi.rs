//! A program with rsmpi and a section of Isles in it: first over all processes, then over each half of them.
use isles::Launch;
use isles::prelude::*;
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};

const BINS: usize = 8;
const COUNT: usize = 1000;
const ROUNDS: usize = 20;

// NEED: Open MPI gives the number of a communicator by a function that rsmpi does not show.
// SOUND: this is its signature; the communicator is a pointer there.
unsafe extern "C" {
    fn MPI_Comm_c2f(communicator: *mut c_void) -> c_int;
}

/// A communicator as the library has it.
trait Handle {
    /// Its number, as `MPI_Comm_c2f` gives it.
    fn number(self) -> c_int;
}

/// Of MPICH, where it is that number.
impl Handle for c_int {
    fn number(self) -> c_int {
        self
    }
}

/// Of Open MPI.
impl<T> Handle for *mut T {
    fn number(self) -> c_int {
        // NEED: as above.
        // SOUND: rsmpi's communicators are live ones.
        unsafe { MPI_Comm_c2f(self.cast()) }
    }
}

thread_local! {
    /// The communicator that this process is in, while a section runs on it.
    static MEMBERS: RefCell<Option<SimpleCommunicator>> = const { RefCell::new(None) };
    static VALUES: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
    static SUMS: Cell<[f64; BINS]> = const { Cell::new([0.0; BINS]) };
}

/// Runs the section over `members`, which come back; whether it has found the values of all of them.
fn section(members: SimpleCommunicator) -> (SimpleCommunicator, bool) {
    let number = members.as_raw().0.number();
    MEMBERS.set(Some(members));
    let ran = Launch::with_communicator(number).and_then(|launch| launch.run(everywhere));
    let members = MEMBERS.take().expect("it was put there");
    let sums = SUMS.get();
    let all = (COUNT * members.size() as usize) as f64;
    let is_good =
        matches!(ran, Ok((Ok(()), _))) && sums.iter().sum::<f64>() == all && sums[0] == sums[BINS - 1];
    (members, is_good)
}

async fn everywhere() -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let bins = own_bins();
                // What was said before leaves now: a call of MPI that waits for others stops this place meanwhile.
                yield_now().await;
                let mut sums = [0.0; BINS];
                MEMBERS.with_borrow(|members| {
                    let members = members.as_ref().expect("a section runs on it");
                    members.all_reduce_into(&bins[..], &mut sums[..], SystemOperation::sum());
                });
                SUMS.set(sums);
            });
        }
    })
    .await
}

/// Returns the number of own values in each bin.
fn own_bins() -> [f64; BINS] {
    let mut bins = [0.0; BINS];
    VALUES.with_borrow(|values| {
        for value in values {
            bins[((value * BINS as f64) as usize).min(BINS - 1)] += 1.0;
        }
    });
    bins
}

fn main() {
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled).expect("MPI begins once");
    VALUES.set((0..COUNT).map(|at| (at as f64 + 0.5) / COUNT as f64).collect());
    let mut world = universe.world();
    let rank = world.rank();
    let mut good = true;
    for _ in 0..ROUNDS {
        let (all, whole) = section(world);
        world = all;
        let half = world.split_by_color(Color::with_value(rank % 2)).expect("each process has a colour");
        let (_, part) = section(half);
        good &= whole && part;
    }
    // MPI is as it was.
    let mut all_good = false;
    world.all_reduce_into(&good, &mut all_good, SystemOperation::logical_and());
    if rank == 0 {
        println!("{} sections: {}", 2 * ROUNDS, if all_good { "good" } else { "bad" });
    }
    // The process ends with an error if MPI is still there: so it goes first.
    drop(universe);
    std::process::exit(i32::from(!all_good));
}
