//! Bags that break their contract, or panic: on every machine, the error names the function.

use isles::glb::{self, Bag, Balanced, Parameters};
use isles::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// Fault of a bag.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Fault {
    /// `split` returns bags without tasks.
    GivesNothing,
    /// `process` reports more tasks than requested.
    CountsTooMuch,
    Processing,
    Splitting,
    Merging,
    Cloning,
    Ending,
}

/// Tasks that each create two with the next lower number.
#[derive(Debug, Serialize, Deserialize)]
struct Faulty {
    fault: Fault,
    open: Vec<u32>,
}

impl Faulty {
    fn panic_if(&self, fault: Fault) {
        assert!(self.fault != fault, "the bag fails in {fault:?}");
    }
}

impl Clone for Faulty {
    fn clone(&self) -> Faulty {
        self.panic_if(Fault::Cloning);
        Faulty { fault: self.fault, open: self.open.clone() }
    }
}

impl Bag for Faulty {
    type Result = ();

    fn process(&mut self, count: usize) -> usize {
        self.panic_if(Fault::Processing);
        for processed in 0..count {
            let Some(next) = self.open.pop() else {
                return processed + if self.fault == Fault::CountsTooMuch { 7 } else { 0 };
            };
            self.open.extend(std::iter::repeat_n(next.saturating_sub(1), if next > 0 { 2 } else { 0 }));
        }
        count
    }

    fn split(&mut self) -> Option<Faulty> {
        self.panic_if(Fault::Splitting);
        let given = if self.fault == Fault::GivesNothing { 0 } else { self.open.len() / 2 };
        let is_given = given > 0 || self.fault == Fault::GivesNothing;
        is_given.then(|| Faulty { fault: self.fault, open: self.open.drain(..given).collect() })
    }

    fn merge(&mut self, other: Faulty) {
        self.panic_if(Fault::Merging);
        self.open.extend(other.open);
    }

    fn result(self) {
        self.panic_if(Fault::Ending);
    }
}

/// Returns the error of a run, and the line at which the run begins.
async fn error_of(fault: Fault, resilient: bool) -> (Error, u32) {
    let parameters = Parameters { batch: Some(4), resilient, ..Parameters::default() };
    let bag = Faulty { fault, open: vec![9] };
    let (line, run) = (line!(), glb::run_with(parameters, bag));
    let run: Result<Balanced<()>> = run.await;
    (run.expect_err("a bag that is faulty"), line)
}

#[isles::test(places = 4)]
async fn a_bag_that_breaks_its_promise_is_misused_and_the_run_ends() -> Result<()> {
    broken_promises().await
}

#[isles::test(places = 4)]
async fn a_panic_in_any_function_of_a_bag_is_the_error_of_the_run() -> Result<()> {
    panics().await
}

#[cfg(feature = "chip")]
#[test]
fn faults_of_a_bag_on_a_chip_are_errors_too() {
    for main in [|| Box::pin(broken_promises()) as Main, || Box::pin(panics()) as Main] {
        let launch = isles::Launch::from_environment().unwrap().places(4);
        let (result, ..) = launch.run_on_chip(isles::ModelledChip::new("scc").unwrap(), main).unwrap();
        result.unwrap();
    }
}

#[cfg(feature = "chip")]
type Main = std::pin::Pin<Box<dyn Future<Output = Result<()>>>>;

async fn broken_promises() -> Result<()> {
    let broken = [
        (Fault::GivesNothing, "`split` of `model::balance::Faulty` returned a part without tasks"),
        (Fault::CountsTooMuch, "`process` of `model::balance::Faulty` returned"),
    ];
    for (fault, expected) in broken {
        for resilient in [false, true] {
            let (error, line) = error_of(fault, resilient).await;
            assert_eq!(*error.kind(), ErrorKind::Misused, "{error}");
            let (said, caller) = (error.to_string(), format!("{}:{line}:", file!()));
            assert!(said.contains(expected) && said.contains(&caller), "{caller} {said}");
        }
    }
    Ok(())
}

async fn panics() -> Result<()> {
    let faults = [Fault::Processing, Fault::Splitting, Fault::Merging, Fault::Ending, Fault::Cloning];
    for fault in faults {
        for resilient in [false, true] {
            if fault == Fault::Cloning && !resilient {
                continue; // nobody keeps a copy
            }
            let (error, _) = error_of(fault, resilient).await;
            assert_eq!(*error.kind(), ErrorKind::Panicked, "{fault:?}: {error}");
            let said = error.to_string();
            let expected = format!("{}:", file!());
            assert!(said.contains(&expected) && said.contains(&format!("fails in {fault:?}")), "{said}");
            assert!(!said.contains("src/glb/"), "it names a line of ours: {said}");
        }
    }
    Ok(())
}
