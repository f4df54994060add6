//! The macros that print and are kept: `print!` and its like, under the names that they have in the standard library.
//!
//! A prelude cannot offer them, because the compiler refuses a glob that says `println` beside the standard one; a
//! program names them. Invariant: what they print, and where to, is what those of the standard library print.

/// Prints to standard output, as [`std::print!`], and shows it in the view of the place to those who watch the run.
///
/// ```
/// use isles::print;
///
/// print!("a line of place {}\n", 3);
/// ```
///
/// # Panics
/// If standard output cannot be written to.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => {
        $crate::__private::print($crate::__private::format_args!($($text)*))
    };
}

/// Prints a line to standard output, as [`std::println!`], and shows it in the view of the place to those who watch
/// the run.
///
/// A program that imports it by its name has each `println!` of the file shown:
///
/// ```
/// use isles::prelude::*;
/// use isles::println;
///
/// # #[isles::main]
/// # async fn main() -> isles::Result<()> {
/// finish(async {
///     for place in places() {
///         spawn_at!(place, println!("hello from {}", here()));
///     }
/// })
/// .await
/// # }
/// ```
///
/// What is printed in other ways, by libraries for example, is printed and not shown. So is what a thread prints that
/// is no place.
///
/// # Panics
/// If standard output cannot be written to.
#[macro_export]
macro_rules! println {
    () => {
        $crate::print!("\n")
    };
    ($($text:tt)*) => {
        $crate::print!("{}\n", $crate::__private::format_args!($($text)*))
    };
}

/// Prints to standard error, as [`std::eprint!`], and shows it in the view of the place to those who watch the run.
///
/// # Panics
/// If standard error cannot be written to.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => {
        $crate::__private::eprint($crate::__private::format_args!($($text)*))
    };
}

/// Prints a line to standard error, as [`std::eprintln!`], and shows it in the view of the place to those who watch
/// the run; [`println!`](crate::println) has an example.
///
/// # Panics
/// If standard error cannot be written to.
#[macro_export]
macro_rules! eprintln {
    () => {
        $crate::eprint!("\n")
    };
    ($($text:tt)*) => {
        $crate::eprint!("{}\n", $crate::__private::format_args!($($text)*))
    };
}
