//! A place is told by its name, to people who look at panics, debuggers and the system's list of processes.

use isles::prelude::*;

/// The name of the thread that calls.
fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// The name of the process that calls, as `ps -e` shows it.
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
