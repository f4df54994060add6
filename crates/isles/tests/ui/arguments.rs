//! The arguments of `at!` and `spawn_at!`.
use isles::prelude::*;

fn calls(place: Place, x: u64) {
    spawn_at!();
    spawn_at!(place);
    spawn_at!(place,);
    spawn_at!(place, let y = x; drop(y));
    spawn_at!(place, drop(x); drop(x));
    spawn_at!(place, drop(x), drop(x));
    spawn_at!(place, [x + 1] drop(x));
    spawn_at!(place, [&x.y] drop(x));
    spawn_at!(place, [x]);
}

fn main() {}
