//! Places that are processes of this host, each of which runs its code as the guest of a small hypervisor.
//!
//! Processes are started, joined and watched as on the machine `processes`, and messages go through the same shared
//! segment. What differs is the [`PlaceWrapper`] around the tasks of a place: a guest, in ring 3 of a virtual machine.
//! Without the feature `guests` no place is one, and the driver refuses.

use crate::launch::{Launch, Main, pinned_places};
use crate::machine::driver::{Ended, MachineDriver};
use crate::output::Unwritten;
use crate::settings::Environment;
use crate::test::TestBody;
use crate::trace::Collector;
use isles_transport::PlaceId;

/// The variable by which a process learns that its place is a guest, if it is not empty.
pub(crate) const GUEST_VARIABLE: &str = "ISLES_JOIN_GUEST";

/// What runs a program on guests, or says what it lacks for that.
pub(crate) struct Driver;

impl MachineDriver for Driver {
    fn name(&self) -> &'static str {
        "guests"
    }

    fn places(&self, environment: &Environment) -> u32 {
        pinned_places(environment)
    }

    fn is_traced(&self) -> bool {
        true
    }

    fn run(
        &self,
        launch: &Launch,
        collector: Option<Collector>,
        main: Main<'_>,
        _: &mut Vec<Unwritten>,
    ) -> Ended {
        #[cfg(feature = "guests")]
        {
            use isles_transport_shm::processes::Program;
            able()?;
            super::processes::run_program(launch, (&Program::current(), collector), main, PlaceCode::OfGuests)
        }
        #[cfg(not(feature = "guests"))]
        {
            let _ = (launch, collector, main);
            Err(lacking())
        }
    }

    fn run_test(
        &self,
        launch: &Launch,
        name: &'static str,
        body: TestBody<'_>,
    ) -> std::result::Result<(), String> {
        #[cfg(feature = "guests")]
        {
            able().map_err(|error| error.to_string())?;
            let program = crate::test::same_test(name);
            let ended =
                super::processes::run_program(launch, (&program, None), Box::new(body), PlaceCode::OfGuests);
            super::driver::test_outcome(ended)
        }
        #[cfg(not(feature = "guests"))]
        {
            let _ = (launch, name, body);
            Err(lacking().to_string())
        }
    }
}

/// Checks that guests can be made, before anything is started.
#[cfg(feature = "guests")]
fn able() -> std::result::Result<(), crate::launch::LaunchError> {
    isles_hypervisor::check()
        .map_err(|error| crate::launch::LaunchError::Machine(format!("machine guests: {error}")))
}

/// The error of a program that knows no guests.
#[cfg(not(feature = "guests"))]
fn lacking() -> crate::launch::LaunchError {
    let lack = super::driver::lacks_feature("guests", "guests");
    crate::launch::LaunchError::Machine(format!("machine guests: {lack}"))
}

/// Where the tasks of a place run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceCode {
    /// In the process.
    OfProcesses,
    /// In a guest of the process.
    OfGuests,
}

impl PlaceCode {
    /// As the process that started this one has said.
    pub(crate) fn of_this_process() -> PlaceCode {
        match std::env::var_os(GUEST_VARIABLE) {
            Some(value) if !value.is_empty() => PlaceCode::OfGuests,
            _ => PlaceCode::OfProcesses,
        }
    }

    /// Makes the guest of `place`, if it is to be one. It belongs to this thread.
    ///
    /// # Errors
    /// KVM refuses; in words.
    pub(crate) fn wrapper(self, place: PlaceId) -> std::result::Result<PlaceWrapper, String> {
        #[cfg(feature = "guests")]
        {
            let guest =
                (self == PlaceCode::OfGuests).then(|| isles_hypervisor::Guest::new(&place.to_string()));
            Ok(PlaceWrapper { guest: guest.transpose().map_err(|error| error.to_string())? })
        }
        #[cfg(not(feature = "guests"))]
        {
            let _ = place;
            Ok(PlaceWrapper {})
        }
    }
}

/// What runs the tasks of a place: a guest, or nothing.
pub(crate) struct PlaceWrapper {
    #[cfg(feature = "guests")]
    guest: Option<isles_hypervisor::Guest>,
}

impl PlaceWrapper {
    /// Calls `body`, in the guest if there is one. A guest that fails ends the process, as a signal would.
    pub(crate) fn run<R>(&mut self, body: impl FnOnce() -> R) -> R {
        #[cfg(feature = "guests")]
        if let Some(guest) = &mut self.guest {
            return guest.run(|_| body());
        }
        body()
    }
}

#[cfg(all(test, not(feature = "guests")))]
mod tests {
    use super::*;
    use crate::Machine;

    #[test]
    fn guests_are_refused_in_one_line_that_names_the_feature() {
        let launch = Launch::from_environment().unwrap().machine(Machine::Guests).places(2);
        let error = launch.run(async || Ok::<(), isles_runtime::Error>(())).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("machine guests: isles-") && text.contains(" was built without guests; "),
            "{text}"
        );
        assert!(text.ends_with("build it with: cargo build --release --features guests"), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}
