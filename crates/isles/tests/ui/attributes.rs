//! Functions to which `#[isles::main]` and `#[isles::test]` belong.

#[isles::test]
fn not_async() {}

#[isles::test]
async fn parameters(x: u8) {}

#[isles::test]
async fn generic<T>() {}

#[isles::test(places = 0)]
async fn no_places() {}

#[isles::test(machines = [cloud])]
async fn unknown_machine() {}

#[isles::test(machines = [])]
async fn no_machine() {}

#[isles::test(seeds = 3)]
async fn unknown_argument() {}

#[isles::main]
async fn other() {}

mod with_arguments {
    #[isles::main(places = 3)]
    async fn main() {}
}

mod with_parameters {
    #[isles::main]
    async fn main(arguments: Vec<String>) {}
}

#[isles::main]
fn main() {}
