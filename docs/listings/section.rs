//! A section of Isles in an MPI program: `section.c` calls it with a communicator and with memory of its own.
use isles::Launch;
use isles::prelude::*;
use std::cell::Cell;
use std::ptr::null;

const BINS: usize = 8;

// NEED: the rest of the program is C.
// SOUND: this is the signature in `section.c`.
unsafe extern "C" {
    /// Adds `values` up over the processes, by a call of MPI; each has the sums then.
    fn add_up(values: *mut f64, count: i32);
}

thread_local! {
    /// The values of this process, as C has handed them over.
    static VALUES: Cell<(*const f64, usize)> = const { Cell::new((null(), 0)) };
    static SUMS: Cell<[f64; BINS]> = const { Cell::new([0.0; BINS]) };
}

/// Counts by size the values between 0 and 1 that the processes of `communicator` have; 0 if all went well.
///
/// # Safety
/// There are `count` values, and room for `BINS` counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn histogram(communicator: i32, values: *const f64, count: i32, bins: *mut f64) -> i32 {
    VALUES.set((values, count as usize));
    let ran = Launch::with_communicator(communicator).and_then(|launch| launch.run(everywhere));
    let sums = SUMS.get();
    // NEED: the result goes into memory of C.
    // SOUND: as above.
    unsafe { bins.copy_from_nonoverlapping(sums.as_ptr(), BINS) };
    match ran {
        Ok((Ok(()), _)) => 0,
        Ok((Err(error), _)) => fail(&error),
        Err(error) => fail(&error),
    }
}

fn fail(error: &dyn std::fmt::Display) -> i32 {
    eprintln!("error: {error}");
    1
}

async fn everywhere() -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let mut bins = own_bins();
                // What was said before leaves now: a call of MPI that waits for others stops this place meanwhile.
                yield_now().await;
                // NEED: the call is one of C.
                // SOUND: the array has as many elements.
                unsafe { add_up(bins.as_mut_ptr(), BINS as i32) };
                SUMS.set(bins);
            });
        }
    })
    .await
}

/// Returns the number of own values in each bin.
fn own_bins() -> [f64; BINS] {
    let (values, count) = VALUES.get();
    // NEED: the values are in memory of C.
    // SOUND: they stay until the section is over, as above.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    let mut bins = [0.0; BINS];
    for value in values {
        bins[((value * BINS as f64) as usize).min(BINS - 1)] += 1.0;
    }
    bins
}
