//! A type parameter travels with the bounds of serde, and without them it is told which.
use isles::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;

async fn unbounded<T: Display>(place: Place, value: T) -> isles::Result<()> {
    at!(place, println!("{value}")).await
}

async fn given_back<T: Default>(place: Place) -> isles::Result<T> {
    at!(place, T::default()).await
}

async fn bounded<T: Display + isles::CanTravel>(place: Place, value: T) -> isles::Result<T> {
    at!(place, { println!("{value}"); value }).await
}

async fn bounded_by_serde<T: Serialize + DeserializeOwned>(place: Place, value: T) -> isles::Result<T> {
    at!(place, value).await
}

fn main() {}
