//! The exchange of halos: each member gets the elements around its part from their owners.
//!
//! Axes are exchanged one after the other. Halos received along one axis are forwarded along the next, so corners need
//! no messages of their own. A halo wider than the neighbouring parts comes from several members. Both sides derive the
//! messages and their order from the layout alone. Invariant: a member sends another exactly the pieces that the other
//! expects, in the same order.

use super::part::{ArrayPart, Region};
use super::{DistArray, Element};
use crate::Result;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;

/// A contiguous range of a halo along one axis, from one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HaloPiece {
    /// Target position, relative to the first element of the halo.
    to: usize,
    /// Number of the part of the axis that owns them.
    owner: usize,
    /// Source position, relative to the owner's first own element.
    from: usize,
    len: usize,
}

impl<T: Copy + 'static, const N: usize> ArrayPart<T, N> {
    /// Returns the pieces of halo around part `of` of an axis, from the lower end on.
    fn halo_pieces(&self, axis: usize, of: usize) -> Vec<HaloPiece> {
        let (cut, width) = (&self.layout.axes[axis], self.pad()[axis]);
        let (extent, len) = (cut.extent, cut.len(of));
        let mut pieces: Vec<HaloPiece> = Vec::new();
        if len == 0 {
            return pieces;
        }
        let start = cut.global(of, 0) as isize;
        for to in (0..width).chain(width + len..2 * width + len) {
            let index = start + to as isize - width as isize;
            if !self.is_periodic && !(0..extent as isize).contains(&index) {
                continue;
            }
            let (owner, from) = cut.locate(index.rem_euclid(extent as isize) as usize);
            match pieces.last_mut() {
                Some(piece)
                    if piece.owner == owner
                        && piece.from + piece.len == from
                        && piece.to + piece.len == to =>
                {
                    piece.len += 1;
                }
                _ => pieces.push(HaloPiece { to, owner, from, len: 1 }),
            }
        }
        pieces
    }

    /// Returns the region of `len` layers from `start` along `axis`. It includes the halos of earlier axes, which are
    /// already exchanged.
    fn slab(&self, axis: usize, start: usize, len: usize) -> Region {
        let mut region = self.whole();
        for before in 0..axis {
            region.start[before] = 0;
            region.len[before] += 2 * self.pad()[before];
        }
        (region.start[axis], region.len[axis]) = (start, len);
        region
    }

    /// Returns the member that has `part` along `axis` and this member's parts along the other axes.
    fn beside(&self, axis: usize, part: usize) -> usize {
        let mut parts = self.parts();
        parts[axis] = part;
        self.layout.rank_of(parts)
    }

    /// Returns the elements that this member sends along an axis, with the receiving ranks.
    fn halo_sent(&self, axis: usize) -> Vec<(usize, Vec<T>)> {
        let me = self.parts()[axis];
        let mut sent = Vec::new();
        for other in (0..self.layout.axes[axis].parts).filter(|other| *other != me) {
            for piece in self.halo_pieces(axis, other).into_iter().filter(|piece| piece.owner == me) {
                let region = self.slab(axis, self.pad()[axis] + piece.from, piece.len);
                let mut packed = Vec::with_capacity(region.size());
                self.pack(&region, &mut packed);
                sent.push((self.beside(axis, other), packed));
            }
        }
        sent
    }

    /// Copies the pieces of this member's halo that it owns itself; returns the sources and regions of the others.
    fn halo_expected(&mut self, axis: usize) -> Vec<(usize, Region)> {
        let me = self.parts()[axis];
        let mut expected = Vec::new();
        for piece in self.halo_pieces(axis, me) {
            let region = self.slab(axis, piece.to, piece.len);
            if piece.owner == me {
                let mut own = Vec::with_capacity(region.size());
                self.pack(&self.slab(axis, self.pad()[axis] + piece.from, piece.len), &mut own);
                self.unpack(&region, &own);
            } else {
                expected.push((self.beside(axis, piece.owner), region));
            }
        }
        expected
    }
}

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Fills the halo of each member's part; collective. A member waits only for its neighbours.
    ///
    /// # Errors
    /// As [`DistArray`] says.
    ///
    /// # Panics
    /// If a guard of this member's part from `lock` or `read` still exists.
    #[track_caller]
    pub fn exchange(&self) -> impl Future<Output = Result<()>> {
        self.exchange_while(|_| ())
    }

    /// As [`DistArray::exchange`], and calls `compute` while the messages along the first axis with a halo are in
    /// flight, for work that needs no halo. Changes that it makes to elements already sent are not sent.
    ///
    /// # Errors
    /// As [`DistArray`] says.
    ///
    /// # Panics
    /// As for [`DistArray::exchange`].
    #[track_caller]
    pub fn exchange_while(
        &self,
        compute: impl FnOnce(&mut ArrayPart<T, N>),
    ) -> impl Future<Output = Result<()>> {
        let caller = Location::caller();
        async move {
            self.check_free(caller);
            self.team.together(self.exchange_axes(compute)).await
        }
    }

    /// Checks that no guard of this place's part exists when an exchange starts; `caller` is the line that started it.
    fn check_free(&self, caller: &Location<'_>) {
        if let Some((line, is_locked)) = self.parts.held_since() {
            let (verb, taken) = if is_locked { ("lock", "locked") } else { ("read", "read") };
            panic!(
                "the exchange at {caller} needs the part of this place, but it is {taken} since {line}: \
                 drop that guard of `{verb}` before the `await`, with a block around it or with `drop`"
            );
        }
    }

    async fn exchange_axes(&self, compute: impl FnOnce(&mut ArrayPart<T, N>)) -> Result<()> {
        let mut compute = Some(compute);
        for axis in 3 - N..3 {
            let (sent, expected) = {
                let mut part = self.lock();
                if part.pad()[axis] == 0 {
                    continue;
                }
                (part.halo_sent(axis), part.halo_expected(axis))
            };
            let mut received: Vec<Vec<T>> =
                expected.iter().map(|(_, region)| bytemuck::zeroed_vec(region.size())).collect();
            {
                let into = received.iter_mut().map(Vec::as_mut_slice);
                let into = expected.iter().map(|(from, _)| *from).zip(into);
                let sent = sent.iter().map(|(to, packed)| (*to, packed.as_slice()));
                let mut moving = pin!(self.team.exchange_slices(sent, into));
                // The first poll sends all messages that need not wait.
                let begun = poll_fn(|context| Poll::Ready(moving.as_mut().poll(context))).await;
                if let Some(compute) = compute.take() {
                    crate::flush_sends().await;
                    compute(&mut self.lock());
                }
                match begun {
                    Poll::Ready(result) => result?,
                    Poll::Pending => moving.await?,
                }
            }
            let mut part = self.lock();
            for ((_, region), packed) in expected.iter().zip(&received) {
                part.unpack(region, packed);
            }
        }
        if let Some(compute) = compute {
            compute(&mut self.lock());
        }
        Ok(())
    }
}
