//! The names of places in panics, debuggers and the system's list of processes.

use isles::prelude::*;

/// Returns the name of the calling thread.
fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Returns the name of the calling process, as `ps -e` shows it.
fn process_name() -> String {
    std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned()
}

#[isles::test(machines = [threads, processes])]
async fn the_thread_of_a_place_has_its_name() -> isles::Result<()> {
    for place in places().skip(1) {
        assert_eq!(at!(place, thread_name()).await?, place.to_string());
    }
    Ok(())
}

#[isles::test(machines = [processes])]
async fn the_process_of_a_place_has_its_name() -> isles::Result<()> {
    for place in places().skip(1) {
        assert_eq!(at!(place, process_name()).await?, place.to_string());
    }
    Ok(())
}
