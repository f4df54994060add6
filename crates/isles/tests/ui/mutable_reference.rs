//! A `&mut` reference stays at home; what it leads to may be copied by name.
use isles::prelude::*;

fn bodies(place: Place, changed: &mut u64) {
    spawn_at!(place, assert!(*changed > 1));
    spawn_at!(place, [now = *changed] assert!(now > 1));
}

fn main() {}
