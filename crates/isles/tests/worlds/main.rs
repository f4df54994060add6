//! Seeded worlds: invented orders, delays and deaths on the loopback, each of which a seed repeats.

mod aggregation;
mod arrays;
mod channels;
mod given_up;
mod hosts;
mod hubs;
mod messages;
mod seeds;
mod shared;
mod simulation;
mod windows;
