//! A value that has no serde, or borrows, stays at home.
use isles::prelude::*;

struct Rooted {
    name: String,
    inner: Inner,
}

struct Inner;

impl Rooted {
    async fn whole(&self, place: Place) -> isles::Result<usize> {
        at!(place, self.len()).await
    }

    async fn field(&self, place: Place) -> isles::Result<()> {
        at!(place, f(&self.inner, &self.name)).await
    }

    fn len(&self) -> usize {
        self.name.len()
    }
}

fn f(_: &Inner, _: &str) {}

async fn variables(place: Place, mut list: Vec<Rooted>) -> isles::Result<()> {
    let rooted = Rooted { name: String::new(), inner: Inner };
    at!(place, drop(rooted)).await?;
    spawn_at!(place, drop(&list));
    at!(place, [list] list.len()).await?;
    list.clear();
    at!(place, [first = &list[0]] first.len()).await?;
    Ok(())
}

fn main() {}
