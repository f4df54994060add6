//! The channels between islands: a line for migrants, and a tree for the reduction that detects the end.
//!
//! All channels are unbuffered: a send ends when its value has been received. Each is created at the place of its
//! receiver. Invariant: an ended island has received all its messages, so nothing is in flight at the end and no island
//! waits for an ended one.

use super::evolution::Individual;
use isles::prelude::*;
use isles::{Place, channel_at};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One end of a pair of channels between two islands.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Link<T: Serialize + DeserializeOwned + 'static> {
    to: Sender<T>,
    from: Receiver<T>,
}

impl<T: Serialize + DeserializeOwned + 'static> Link<T> {
    /// Creates both ends, for islands at these places.
    async fn pair(one: Place, other: Place) -> isles::Result<(Link<T>, Link<T>)> {
        let (to_one, at_one) = channel_at(one, 0).await?;
        let (to_other, at_other) = channel_at(other, 0).await?;
        Ok((Link { to: to_other, from: at_one }, Link { to: to_one, from: at_other }))
    }
}

/// Links of an island to others.
#[derive(Serialize, Deserialize)]
pub struct Links {
    is_odd: bool,
    left: Option<Link<Vec<Individual>>>,
    right: Option<Link<Vec<Individual>>>,
    parent: Option<Link<bool>>,
    children: Vec<Link<bool>>,
}

impl Links {
    /// Creates the links of islands at these places, in the order of the islands.
    ///
    /// # Errors
    /// A place has died.
    pub async fn connect(island_places: &[Place]) -> isles::Result<Vec<Links>> {
        let unconnected = |number| Links {
            is_odd: number % 2 == 1,
            left: None,
            right: None,
            parent: None,
            children: Vec::new(),
        };
        let mut all: Vec<Links> = (0..island_places.len()).map(unconnected).collect();
        for number in 1..island_places.len() {
            let (right, left) = Link::pair(island_places[number - 1], island_places[number]).await?;
            (all[number - 1].right, all[number].left) = (Some(right), Some(left));
            let parent = (number - 1) / 2;
            let (child, above) = Link::pair(island_places[parent], island_places[number]).await?;
            all[parent].children.push(child);
            all[number].parent = Some(above);
        }
        Ok(all)
    }

    /// Returns `true` if any island has found the text; `has_found` says so for this one. A reduction goes up a binary
    /// tree, and its result down again. All islands get the same answer for the same exchange.
    ///
    /// # Errors
    /// The place of an island has died.
    pub async fn any_found(&self, has_found: bool) -> isles::Result<bool> {
        let mut found = has_found;
        for child in &self.children {
            found |= child.from.recv().await?;
        }
        if let Some(parent) = &self.parent {
            parent.to.send(found).await?;
            found = parent.from.recv().await?;
        }
        for child in &self.children {
            child.to.send(found).await?;
        }
        Ok(found)
    }

    /// Sends `emigrants` to both neighbours; returns the immigrants from the left and from the right.
    ///
    /// Odd islands send first and even ones receive first; even ones begin with the right neighbour. So each of the
    /// four steps pairs neighbours that do nothing else: no island waits for a waiting one, and no delay propagates
    /// along the line.
    ///
    /// # Errors
    /// The place of a neighbour has died.
    pub async fn exchange(&self, emigrants: Vec<Individual>) -> isles::Result<[Vec<Individual>; 2]> {
        let (first, second) = if self.is_odd { (&self.left, &self.right) } else { (&self.right, &self.left) };
        let mut received = [Vec::new(), Vec::new()];
        for is_sending in [self.is_odd, !self.is_odd] {
            for (side, link) in [first, second].into_iter().enumerate() {
                let Some(link) = link else { continue };
                match is_sending {
                    true => link.to.send(emigrants.clone()).await?,
                    false => received[side] = link.from.recv().await?,
                }
            }
        }
        if !self.is_odd {
            received.reverse();
        }
        Ok(received)
    }
}
