//! A `select!` with what only that of tokio has, in a body and outside.
use isles::prelude::*;

async fn biased(jobs: Receiver<u64>, ends: Receiver<()>) {
    select! {
        biased;
        job = jobs.recv() => drop(job),
        end = ends.recv() => drop(end),
    }
}

async fn otherwise(jobs: Receiver<u64>) {
    select! {
        Ok(job) = jobs.recv() => drop(job),
        else => println!("closed"),
    }
}

async fn condition(jobs: Receiver<u64>, ends: Receiver<()>, is_open: bool) {
    select! {
        job = jobs.recv(), if is_open => drop(job),
        end = ends.recv() => drop(end),
    }
}

async fn bodies(place: Place, jobs: Receiver<u64>, is_open: bool) {
    spawn_at!(place, select! { biased; job = jobs.recv() => drop(job) });
    spawn_at!(place, {
        isles::select! { job = jobs.recv() => drop(job), else => {} }
    });
    let _ = at!(place, select! { job = jobs.recv(), if is_open => drop(job), default => {} }).await;
}

fn main() {}
