//! Schedules of teams whose members are on several hosts, some of them together.
//!
//! A message between hosts takes many times as long as one within a host. So each host has a leader, and only leaders
//! communicate between hosts: data for all goes to each host once. Pure functions of ranks, as all schedules.
//!
//! Source: the cluster-aware collectives of MagPIe (Kielmann et al. 1999), which MPI libraries use on multi-core hosts.

use super::{Shape, Tree};

/// Hosts of the members, as one member sees them.
#[derive(Debug)]
pub struct TeamHosts {
    rank: usize,
    /// Number of each member's host, by rank; hosts are numbered in order of appearance.
    of: Vec<u32>,
    /// The lowest rank on each host.
    leaders: Vec<usize>,
    /// The ranks on the host of this member, itself among them.
    own: Vec<usize>,
}

impl TeamHosts {
    /// Returns the hosts of a team as member `rank` sees them, where `host_of` names the host of each rank. `None` if a
    /// hierarchy is useless: all are on one host, or each is on its own.
    #[inline]
    pub fn new<H: PartialEq>(size: usize, rank: usize, host_of: impl Fn(usize) -> H) -> Option<TeamHosts> {
        let mut names: Vec<H> = Vec::new();
        let (mut of, mut leaders) = (Vec::with_capacity(size), Vec::new());
        for member in 0..size {
            let name = host_of(member);
            let number = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                leaders.push(member);
                names.len() - 1
            });
            of.push(number as u32);
        }
        let own = (0..size).filter(|member| of[*member] == of[rank]).collect();
        (1 < leaders.len() && leaders.len() < size).then_some(TeamHosts { rank, of, leaders, own })
    }

    /// Returns the lowest rank on each host, in the order of the hosts.
    #[inline]
    pub fn leaders(&self) -> &[usize] {
        &self.leaders
    }

    /// Returns the leader of the own host, and the other members there.
    #[inline]
    pub fn own(&self) -> (usize, &[usize]) {
        (self.own[0], &self.own[1..])
    }

    /// Returns the number of the own host.
    #[inline]
    pub fn own_host(&self) -> usize {
        self.of[self.rank] as usize
    }

    /// Returns the number of members on the own host.
    #[inline]
    pub fn own_size(&self) -> usize {
        self.own.len()
    }

    /// Returns the parent and the children of this member in a tree from `root` to all. `leaders` is the shape of the
    /// tree of the leaders, in which `root` leads its host; `members` that of the tree within each host.
    pub fn tree(&self, root: usize, leaders: Shape, members: Shape) -> HierarchicalTree {
        let root_host = self.of[root] as usize;
        let leader_of = |host: usize| if host == root_host { root } else { self.leaders[host] };
        let (mut parent, mut children) = (None, Vec::new());
        let own_leader = leader_of(self.own_host());
        if self.rank == own_leader {
            let tree = Tree::new(leaders, self.own_host(), root_host, self.leaders.len());
            parent = tree.parent().map(leader_of);
            // Those on other hosts first, because theirs takes longer.
            children.extend(tree.children().map(leader_of));
        }
        let index_of = |rank: usize| self.own.iter().position(|member| *member == rank);
        let (Some(index), Some(first)) = (index_of(self.rank), index_of(own_leader)) else {
            unreachable!("a member and its leader are on the host of both")
        };
        let tree = Tree::new(members, index, first, self.own.len());
        parent = parent.or(tree.parent().map(|index| self.own[index]));
        children.extend(tree.children().map(|index| self.own[index]));
        HierarchicalTree { parent, children }
    }
}

/// The parent and the children of one member in a tree that goes to each host once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchicalTree {
    /// Member from which it receives; `None` for the root.
    pub parent: Option<usize>,
    /// Members to which it sends, in this order.
    pub children: Vec<usize>,
}

/// The parent and the children of one member in a tree, flat or hierarchical.
pub enum TreeNode {
    /// A [`Tree`], which disregards hosts.
    Flat(Tree),
    /// A tree of leaders, and one within each host.
    Hierarchical(HierarchicalTree),
}

impl TreeNode {
    /// Returns the member from which this one receives; `None` for the root.
    #[inline]
    pub fn parent(&self) -> Option<usize> {
        match self {
            TreeNode::Flat(tree) => tree.parent(),
            TreeNode::Hierarchical(tree) => tree.parent,
        }
    }

    /// Returns the members to which this one sends, in this order.
    #[inline]
    pub fn children(&self) -> impl Iterator<Item = usize> {
        let (plain, by_hosts) = match self {
            TreeNode::Flat(tree) => (Some(tree.children()), &[][..]),
            TreeNode::Hierarchical(tree) => (None, &tree.children[..]),
        };
        plain.into_iter().flatten().chain(by_hosts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHAPES: [Shape; 4] = [Shape::Binomial, Shape::Chain, Shape::Flat, Shape::Fan(2)];

    fn seen_by(hosts: &[u8], rank: usize) -> Option<TeamHosts> {
        TeamHosts::new(hosts.len(), rank, |rank| hosts[rank])
    }

    proptest! {
        /// The tree reaches every member once, parents and children agree, and it goes to each other host once.
        #[test]
        fn a_tree_reaches_all_and_each_other_host_once(
            hosts in prop::collection::vec(0_u8..5, 2..24),
            root in any::<prop::sample::Index>(),
            shapes in (0..SHAPES.len(), 0..SHAPES.len()),
        ) {
            let root = root.index(hosts.len());
            let (shape, within) = (SHAPES[shapes.0], SHAPES[shapes.1]);
            let trees: Option<Vec<HierarchicalTree>> = (0..hosts.len())
                .map(|rank| Some(seen_by(&hosts, rank)?.tree(root, shape, within)))
                .collect();
            let mut kinds = hosts.clone();
            kinds.sort_unstable();
            kinds.dedup();
            prop_assert_eq!(trees.is_some(), kinds.len() > 1 && kinds.len() < hosts.len());
            let Some(trees) = trees else { return Ok(()) };
            let (mut reached, mut crossings) = (vec![root], 0);
            let mut next = 0;
            prop_assert_eq!(trees[root].parent, None);
            while let Some(rank) = reached.get(next).copied() {
                for child in &trees[rank].children {
                    prop_assert_eq!(trees[*child].parent, Some(rank));
                    crossings += usize::from(hosts[*child] != hosts[rank]);
                    reached.push(*child);
                }
                next += 1;
            }
            reached.sort_unstable();
            prop_assert_eq!(reached, (0..hosts.len()).collect::<Vec<usize>>());
            prop_assert_eq!(crossings, kinds.len() - 1);
        }

        /// Leaders are the lowest ranks of their hosts, and all members agree on them.
        #[test]
        fn all_members_have_the_same_leaders(hosts in prop::collection::vec(0_u8..5, 2..24)) {
            let Some(first) = seen_by(&hosts, 0) else { return Ok(()) };
            for rank in 0..hosts.len() {
                let seen = seen_by(&hosts, rank).expect("as for the first");
                prop_assert_eq!(seen.leaders(), first.leaders());
                let (leader, others) = seen.own();
                prop_assert_eq!(leader, seen.leaders()[seen.own_host()]);
                prop_assert_eq!(Some(leader), hosts.iter().position(|host| *host == hosts[rank]));
                prop_assert!(others.iter().all(|other| *other > leader && hosts[*other] == hosts[rank]));
            }
        }
    }
}
