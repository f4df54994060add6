//! A value that can be changed through a reference stays at home: elsewhere a body would change a copy.
use isles::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, LinkedList, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

struct Counts {
    hits: AtomicI32,
    name: String,
}

async fn bodies(place: Place, counts: &Counts, flags: Vec<Cell<bool>>) -> isles::Result<()> {
    let hits = AtomicU64::new(0);
    let list = RefCell::new(vec![1]);
    let mutex = Mutex::new(1);
    at!(place, hits.fetch_add(1, Ordering::Relaxed)).await?;
    spawn_at!(place, list.borrow_mut().push(2));
    at!(place, *mutex.lock().unwrap() += 1).await?;
    at!(place, counts.hits.fetch_add(counts.name.len() as i32, Ordering::Relaxed)).await?;
    at!(place, flags[0].set(true)).await?;
    let named = BTreeMap::from([(1, Cell::new(1))]);
    at!(place, named[&1].set(2)).await?;
    let by_name = HashMap::from([(1, Mutex::new(1))]);
    spawn_at!(place, *by_name[&1].lock().unwrap() += 1);
    let queue = VecDeque::from([RefCell::new(1)]);
    at!(place, *queue[0].borrow_mut() += 1).await?;
    let result = Ok::<_, String>(Cell::new(1));
    at!(place, result.as_ref().unwrap().set(2)).await?;
    let (list, set) = (LinkedList::from([Cell::new(1)]), BTreeSet::from([Cell::new(1)]));
    at!(place, (list.front().unwrap().set(2), set.first().unwrap().get())).await?;
    at!(place, [hits = hits.load(Ordering::Relaxed)] hits + 1).await?;
    Ok(())
}

fn main() {}
