//! Guards of several objects at once, in one order, so that tasks that take them cannot wait in a circle.

use super::guard::AnyGuardFuture;
use crate::error::Result;
use std::future::poll_fn;
use std::pin::Pin;

/// Waits for guards of several objects; all tasks acquire them in one order, whatever order they are listed in.
///
/// ```ignore
/// let (graph, mut parts) = acquire_all((graph.read(), parts.write())).await?;
/// ```
///
/// # Errors
/// As [`Shared::read`](crate::Shared::read), of the first that fails; then none is held.
pub fn acquire_all<G: AcquireAll>(guards: G) -> impl Future<Output = Result<G::Guards>> {
    guards.acquire()
}

/// Tuples of waits for guards, for [`acquire_all`].
pub trait AcquireAll {
    /// The guards.
    type Guards;

    /// Waits for all of them.
    #[doc(hidden)]
    fn acquire(self) -> impl Future<Output = Result<Self::Guards>>;
}

macro_rules! acquire_all {
    ($( $future:ident $guard:ident $value:ident $index:tt ),+) => {
        impl<$( $future, $guard ),+> AcquireAll for ($( $future, )+)
        where
            $( $future: AnyGuardFuture<Output = Result<$guard>>, )+
        {
            type Guards = ($( $guard, )+);

            async fn acquire(self) -> Result<Self::Guards> {
                let mut waits = self;
                $( let mut $value = None; )+
                let mut order = [$( (waits.$index.rank(), $index) ),+];
                order.sort_unstable();
                for (_, index) in order {
                    match index {
                        $( $index => {
                            let wait = &mut waits.$index;
                            $value = Some(poll_fn(|context| Pin::new(&mut *wait).poll(context)).await?);
                        } )+
                        _ => {}
                    }
                }
                match ($( $value, )+) {
                    ($( Some($value), )+) => Ok(($( $value, )+)),
                    _ => unreachable!("each index is in the order once"),
                }
            }
        }
    };
}

acquire_all!(A GA a 0, B GB b 1);
acquire_all!(A GA a 0, B GB b 1, C GC c 2);
acquire_all!(A GA a 0, B GB b 1, C GC c 2, D GD d 3);
acquire_all!(A GA a 0, B GB b 1, C GC c 2, D GD d 3, E GE e 4);
acquire_all!(A GA a 0, B GB b 1, C GC c 2, D GD d 3, E GE e 4, F GF f 5);
