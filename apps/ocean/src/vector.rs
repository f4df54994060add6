//! Loops over rows, compiled for several sets of vector instructions; the processor at hand picks one at run time.
//!
//! Programs are built for any processor of their kind, whose vectors are half as long as those of most processors in
//! use. Invariant: all sets give the same bits, because no operations are fused or reordered.

pub use pulp::{Arch, Simd, WithSimd};

/// Defines functions whose bodies are compiled for several sets of vector instructions.
///
/// What a function writes are parameters of their own, before the semicolon, so that the compiler knows that they
/// overlap nothing; what it reads is one parameter behind it.
macro_rules! row_kernels {
    ($($(#[$doc:meta])* fn $name:ident($($written:ident: $w:ty),+; $read:tt: $r:ty) $body:block)+) => {$(
        $(#[$doc])*
        #[inline(never)]
        fn $name($($written: $w,)+ read: $r) {
            struct Kernel<W, R>(W, R);

            impl $crate::vector::WithSimd for Kernel<($($w,)+), $r> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: $crate::vector::Simd>(self, _simd: S) {
                    let Kernel(($($written,)+), read) = self;
                    loop_over($($written,)+ read);
                }
            }

            #[inline(always)]
            fn loop_over($($written: $w,)+ $read: $r) $body

            $crate::vector::Arch::new().dispatch(Kernel(($($written,)+), read));
        }
    )+};
}

pub(crate) use row_kernels;
