//! Seeded worlds: simulated orders, delays and deaths on the loopback, reproducible by their seeds.

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
