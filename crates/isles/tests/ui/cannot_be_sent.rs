//! Values that cannot go over a channel.

use isles::prelude::*;
use std::rc::Rc;

struct Plain(u64);

fn generic<T>() {
    channel::<T>(1);
}

fn main() {
    channel::<Rc<u8>>(1);
    channel::<Plain>(1);
    channel::<&'static u64>(1);
    generic::<u8>();
    let _ = Plain(1).0;
}
