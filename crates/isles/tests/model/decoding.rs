//! A large slice is decoded into the receiver's memory, without an intermediate vector.

use isles::Result;
use isles::prelude::*;

const WORDS: usize = (4 << 20) / size_of::<u64>();

#[isles::test(places = 2)]
async fn a_slice_is_copied_once_into_the_buffer_of_its_receiver() -> Result<()> {
    let buffer = PlaceLocal::new(|| vec![0_u64; WORDS]).await?;
    let all: Vec<u64> = (0..2 * WORDS as u64).collect();
    let there = here().next();
    let before = at!(there, buffer.lock().as_ptr() as usize).await?;
    for half in all.chunks_exact(WORDS) {
        let (address, same) = at!(there, {
            let mut buffer = buffer.lock();
            // The decoded bytes are a slice of the block that the sender wrote, not of the heap.
            buffer.copy_from_slice(half);
            (buffer.as_ptr() as usize, buffer[..] == *half)
        })
        .await?;
        assert_eq!((address, same), (before, true));
    }
    Ok(())
}
