//! A task has no value.
use isles::prelude::*;

fn bodies(place: Place, mut list: Vec<u64>) {
    list.push(1);
    spawn_at!(place, list.len());
    spawn_at!(place, { list.first().copied() });
    spawn_at!(place, Err::<(), _>("no error type"));
}

fn main() {}
