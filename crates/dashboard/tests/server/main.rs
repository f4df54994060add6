//! The server by raw sockets: who is refused, what is bounded, what is answered, and what a run notices of it.

mod bounds;
mod guard;
mod interface;
mod scene;
