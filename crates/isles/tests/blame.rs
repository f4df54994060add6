//! Panics of misused functions name the line of the caller, not one of the runtime.

use isles::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Location of the last panic.
static SEEN: Mutex<Option<(String, u32)>> = Mutex::new(None);

/// Runs code that panics, and returns the line that the panic names.
fn blamed<R>(panics: impl FnOnce() -> R) -> (String, u32) {
    let _ = catch_unwind(AssertUnwindSafe(panics));
    SEEN.lock().unwrap().take().expect("it panicked")
}

#[test]
fn a_misuse_is_blamed_on_the_line_that_misuses() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().unwrap();
        *SEEN.lock().unwrap() = Some((location.file().to_owned(), location.line()));
    }));
    let here_line = |line| (file!().to_owned(), line);
    assert_eq!(blamed(|| here()), here_line(line!()));
    assert_eq!(blamed(|| places()), here_line(line!()));
    assert_eq!(blamed(|| isles::place_count()), here_line(line!()));
    assert_eq!(blamed(|| Place::new(0)), here_line(line!()));
    assert_eq!(blamed(|| Team::world()), here_line(line!()));
    assert_eq!(blamed(|| spawn(async {})), here_line(line!()));
    assert_eq!(blamed(|| spawn_at!(Place::new(0).unwrap(), {})), here_line(line!()));
    isles::simulate(1, isles::Plan::calm(0), || async {
        let part = PlaceLocal::new(|| 0).await?;
        let guard = part.lock();
        assert_eq!(blamed(|| part.lock()), (file!().to_owned(), line!()));
        drop(guard);
        let monitor = Monitor::new(0);
        let within = || monitor.atomic(|_| monitor.atomic(|_| ()));
        assert_eq!(blamed(within), (file!().to_owned(), line!() - 1));
        Ok::<_, isles::Error>(())
    })
    .0
    .unwrap();
    let _ = std::panic::take_hook();
}
