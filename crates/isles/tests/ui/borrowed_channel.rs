//! A channel of what is only borrowed.

use isles::prelude::*;

fn main() {
    let (sender, receiver) = channel::<&str>(1);
    drop((sender, receiver));
}
