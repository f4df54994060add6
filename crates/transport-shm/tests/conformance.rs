//! The promises of every transport, kept by this one: places as threads of one process.

use isles_transport::conformance::{EndpointSetup, Threads};
use isles_transport::{Endpoint, PlaceId};
use isles_transport_shm::{Geometry, Segment};

/// One fresh segment a run; dropping an endpoint is the death of its place.
fn setups(geometry: Geometry) -> Vec<EndpointSetup> {
    let segment = Segment::create(geometry, [0; 16]).expect("memory for a segment");
    let setup = |place: PlaceId| {
        let segment = segment.clone();
        EndpointSetup {
            open: Box::new(move || Box::new(segment.endpoint(place).expect("each place attaches once"))),
            kill: Box::new(drop::<Box<dyn Endpoint>>),
        }
    };
    (0..geometry.places).map(PlaceId).map(setup).collect()
}

/// Returns the smallest rings and arenas there can be: everything is full all the time.
fn tight(places: u32) -> Geometry {
    Geometry { places, control_bytes: 4096, data_bytes: 4096, arena_bytes: 2 << 20 }
}

isles_transport::conformance!(
    usual_sizes,
    Threads::new(|places| setups(Geometry::for_places(places))),
    keeps shared_memory deaths
);

isles_transport::conformance!(smallest_sizes, Threads::new(|places| setups(tight(places))), keeps shared_memory deaths);
