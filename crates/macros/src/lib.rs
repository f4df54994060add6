//! `at!`, `everywhere!`, `spawn_at!`, `select!`, `#[isles::main]` and `#[isles::test]`.
//!
//! A crate of its own because procedural macros must be one. It rewrites tokens and nothing else: what a
//! capture is, how it is written and what may travel is decided by types, in `isles-runtime`, module
//! `capture`. The code that it makes names
//! `::isles::__private` only.
//!
//! A call goes through `call` (parsing), `usage` with `invocation` and `text` (which variables), `flow` and `ending`
//! (how the body ends), `renaming` (no `self`), `captures` (what travels) and `travel` (the whole).

#![forbid(unsafe_code)]

mod call;
mod captures;
mod ending;
mod entry;
mod flow;
mod invocation;
mod renaming;
mod select;
mod text;
mod travel;
mod usage;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Runs a body at a place and returns its value: `at!(place, body).await?`.
///
/// The call is a future of `Result<V, isles::Error>`, where `V` is the type of the body; nothing happens
/// before it is polled. At `place == here()` the body runs as it stands and nothing is serialised. Elsewhere
/// the variables and field paths that it uses travel, written from references, so the caller keeps them.
///
/// The body sees variables under their own names and with their own types, read-only. It may `.await`, and it
/// may use `?` on any error that is a `std::error::Error`, an `anyhow::Error`, a box of one or a text: it is then the
/// error of the call, and the last expression of the body is the plain value (or `Ok(value)`).
///
/// If the future is dropped before the answer is there, the body is dropped too, at its next `await`; in a detached
/// task it goes on.
///
/// If the place dies before it has answered, the error is `ErrorKind::DeadPlace`. The enclosing finish then ends with
/// that error too, even if the caller has taken it: nobody knows what the body had started under the finish. A
/// call in a finish of its own, `finish(async { at!(place, body).await }).await`, keeps the death to itself.
///
/// The captures are found by spelling: names in small letters that the body does not declare and does not call. A list
/// says it instead: `at!(place, [graph.offsets, &word, n = a.len()] body)`.
#[proc_macro]
pub fn at(input: TokenStream) -> TokenStream {
    let call = parse_macro_input!(input as call::Call);
    finished(travel::at(&call))
}

/// Runs a body at every place and collects the values, in the order of the places: `everywhere!(body).await?`.
///
/// A future of `Result<Vec<V>, isles::Error>`. The body is as for [`at!`], which is what it does at each place, also
/// with a list: `everywhere!([seed] body)`. The calls to the other places are sent before the body runs here, so all
/// run at once (`at!` at the own place runs its body at the first poll). It ends when all have ended; a single error is
/// returned as itself, several as a list with the place of each.
#[proc_macro]
pub fn everywhere(input: TokenStream) -> TokenStream {
    finished(travel::everywhere(input.into()))
}

/// Starts a task at a place and returns at once: `spawn_at!(place, body)`.
///
/// The enclosing `finish` waits for it and collects its error. The body is as for `at!`, but has no value: it
/// ends with `()` or with a `Result` whose error converts into `isles::Error` or into a `Box<dyn std::error::Error>`.
#[proc_macro]
pub fn spawn_at(input: TokenStream) -> TokenStream {
    let call = parse_macro_input!(input as call::Call);
    finished(travel::spawn_at(&call))
}

/// Starts a task at a place that the runtime chooses, and returns at once: `spawn_anywhere!(body)`.
///
/// The runtime counts the running tasks that this place has started this way and chooses the place with the fewest;
/// ties go to the first one after this place. So a loop distributes its tasks over all places, and tasks that start one
/// another go round. A task does not migrate. Its end costs one small message to the place that started it.
///
/// Otherwise as [`spawn_at!`], with an optional list of captures: `spawn_anywhere!([words, &limit] body)`.
#[proc_macro]
pub fn spawn_anywhere(input: TokenStream) -> TokenStream {
    finished(travel::spawn_anywhere(input.into()))
}

/// Waits for several futures and goes on with the first that is ready: `select! { pattern = future => body, .. }`.
///
/// ```ignore
/// select! {
///     job = jobs.recv() => work_on(job?),
///     sent = results.send(result) => sent?,
///     () = sleep(limit) => println!("nothing for {limit:?}"),
///     default => println!("nothing now"),
/// }
/// ```
///
/// Exactly one channel operation completes: only the chosen branch sends its value, and a value that arrives for
/// another branch is the next to be received. A `send` or `recv` must be written as such, not inside another future. If
/// several branches are ready, they are chosen in turn. With `default`, the call waits only for the answers of channels
/// of other places. Futures that are not chosen are dropped. Bodies may use `?`, `return` and `break`. There is no
/// `biased`, no `else` and no condition of a branch, as `tokio::select!` has them.
#[proc_macro]
pub fn select(input: TokenStream) -> TokenStream {
    select::select(&parse_macro_input!(input as select::Select)).into()
}

/// Makes an `async fn main()` the program that place 0 runs; the other places serve.
///
/// The function returns `()` or a `Result` whose error implements `Debug`, as any `main`. An error is printed in one
/// line if it is an `isles::Error`, else as `Debug` writes it, and the exit code is 1.
///
/// `#[isles::main(init = function)]` calls `function()` first in each process of the run: once if the places are
/// threads or modelled, once at each place if they are processes. It is meant for process-wide state: a logger, a panic
/// hook, settings of libraries. It runs outside of any place and must not use Isles.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let function = parse_macro_input!(function as ItemFn);
    finished(entry::main(arguments.into(), &function))
}

/// Runs an `async fn` as a test on several machines, one test each: `name::threads`, `name::processes`,
/// `name::loopback`.
///
/// `#[isles::test(places = 4, machines = [threads, loopback])]` says how many places (4 if not said) and
/// which machines (all three if not said).
///
/// A stalled test reports what it waits for after 10 seconds (`ISLES_STALL`) and fails after a minute
/// (`ISLES_STALL_LIMIT`); on the loopback, which detects that nothing more can happen, it fails at once.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let function = parse_macro_input!(function as ItemFn);
    finished(entry::test(arguments.into(), &function))
}

/// Returns the code, or the error as a `compile_error!`.
fn finished(code: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    code.unwrap_or_else(|error| error.to_compile_error()).into()
}
