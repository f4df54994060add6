//! Runs the promises of the conformance suite on the ranks of an MPI run, one after the other.
//!
//! `mpirun -n 3 conformance [NAME]...` runs all promises, or the named ones. It leaves out promises about deaths,
//! because a run with MPI ends when a rank dies, and those that need more places than there are ranks. Rank 0 prints
//! the number of kept promises. Before that each rank starts this program with the word `alone`, which must not take
//! itself for a rank; after it all other ranks ask the first one while it is away.

use isles_transport::composite::{CompositeEndpoint, PlaceNumbers};
use isles_transport::conformance::{ALL, Group, Promise, Step};
use isles_transport::{Arrival, Class, Endpoint, EndpointExt, HandlerId, Inbound, PlaceId};
use isles_transport_mpi::{Bell, Library, MpiEndpoint};
use isles_transport_shm::Segment;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Time for which a rank is taken to poll before it sleeps: less than it does, so that there are many rings.
const LOOK: Duration = Duration::from_micros(50);

/// Absence of the first rank: far longer than a message takes, or than another rank may lack a processor.
const ABSENCE: Duration = Duration::from_secs(2);

/// Time limit for the end of the library.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Argument to print only the rank and the number of ranks.
const ALONE: &str = "alone";

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let library = Rc::new(Library::begin().unwrap_or_else(|error| panic!("MPI: {error}")));
    if wanted.first().is_some_and(|word| word == ALONE) {
        println!("{} of {}", library.rank(), library.size());
        return library.end();
    }
    start_alone();
    let (mut kept, mut left_out) = (0, 0);
    for named in ALL.iter().copied().flatten() {
        let (name, promise) = (named.name, (named.promise)());
        let is_wanted = wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
        if !is_wanted || !keeps(named.group) || promise.places > library.size() {
            left_out += 1;
            continue;
        }
        if library.rank() == 0 && !wanted.is_empty() {
            eprintln!("{name}");
        }
        keep(&library, &promise, bell(&library));
        kept += 1;
    }
    if wanted.is_empty() {
        ask_who_was_away(&library);
    }
    if library.rank() == 0 {
        println!(
            "{kept} promises kept by {} ranks, {left_out} left out; {}",
            library.size(),
            Library::version()
        );
    }
    library.end_within(END_LIMIT, 0);
}

/// Returns `true` for groups that are kept: no rank survives another's death, and a message goes to one place.
fn keeps(group: Group) -> bool {
    group.is_required() || group == Group::SharedMemory
}

/// Starts this program as a rank may start any program: it is no rank, and the library works for it.
fn start_alone() {
    let own = std::env::current_exe().expect("the program's file");
    let output = Command::new(own).arg(ALONE).output().expect("a program that starts");
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.trim() == "0 of 1", "{said:?} {complaint} {}", output.status);
}

/// Returns the bell of this rank, which knows those of all.
fn bell(library: &Library) -> Bell {
    let (mut bell, address) = Bell::bind().expect("a socket");
    let addresses = library.gather_all(&address);
    let address = |bytes: Vec<u8>| bytes.try_into().expect("as long as our own");
    bell.set_addresses(addresses.into_iter().map(|bytes| (address(bytes), LOOK)));
    bell
}

/// Lets all other ranks ask the first one while it is away, as a computing place is; it finds all questions at its
/// first look, so that none waits for another absence.
fn ask_who_was_away(library: &Rc<Library>) {
    let endpoint = MpiEndpoint::new(Rc::clone(library), Some(bell(library)));
    if library.rank() == 0 {
        let start = Instant::now();
        while start.elapsed() < ABSENCE {
            std::thread::yield_now();
        }
        let mut questions = Vec::new();
        endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => questions.push(message.source.0),
            Arrival::Died { place, .. } => panic!("{place} is said to be dead"),
        });
        questions.sort_unstable();
        let all: Vec<u32> = (1..library.size()).collect();
        assert_eq!(questions, all, "the ranks whose questions were found at the first look");
    } else {
        let sent = endpoint.send(PlaceId(0), Class::Data, HandlerId(0), 0, &mut |_| Some(0));
        sent.unwrap_or_else(|error| panic!("a question: {error}"));
    }
}

/// Runs the part of this rank in a promise; ranks without a part wait for the others.
fn keep(library: &Rc<Library>, promise: &Promise, bell: Bell) {
    let here = PlaceId(library.rank());
    let far = MpiEndpoint::new(Rc::clone(library), Some(bell));
    if here.0 >= promise.places {
        return;
    }
    let near = Segment::for_places(1, [0; 16]).expect("memory").endpoint(PlaceId(0)).expect("a place");
    let near_numbers = PlaceNumbers::of(promise.places, [(here, PlaceId(0))]);
    let all = (0..promise.places).map(|place| (PlaceId(place), PlaceId(place)));
    let far_numbers = PlaceNumbers::of(promise.places, all);
    let hosts = (0..promise.places).map(PlaceId).collect();
    let endpoint = CompositeEndpoint::new(here, near, near_numbers, far, far_numbers, hosts);
    let mut script = (promise.script)(here);
    loop {
        match script.step(&endpoint) {
            Step::Busy => {}
            Step::Idle => endpoint.wait(None),
            Step::Done => return,
            Step::Leave => return endpoint.leave(),
            Step::Die => unreachable!("promises about deaths are left out"),
        }
    }
}
