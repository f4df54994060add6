//! Counts of groups over places: rows that agree in the keys meet at one place, which counts them.
//!
//! It knows no triples. Invariant: a group is at one place when it is counted, so no solution counts twice.

use super::algebra::Counted;
use super::execute::PlaceEvaluator;
use super::join;
use super::table::{Table, VariableId};
use super::trace::QueryFault;
use crate::store::dictionary::UNBOUND;
use crate::store::term;
use oxrdf::Literal;

impl PlaceEvaluator<'_> {
    /// Returns a row for each group of rows that agree in `keys`, with its counts.
    pub(super) async fn count(
        &self,
        table: Table,
        keys: &[VariableId],
        counts: &[(VariableId, Counted)],
    ) -> Result<Table, QueryFault> {
        let mut own = if keys.is_empty() {
            self.count_all(&table, counts).await?
        } else {
            let together = self.peers.redistribute_by(table, keys).await?;
            let (mut groups, numbers) = counted(&together, keys, counts);
            for (column, (variable, _)) in numbers.iter().zip(counts) {
                groups.variables.push(*variable);
                groups.columns.push(self.integers(column).await?);
            }
            groups
        };
        own.placed_by = None;
        self.recorded("count", None, own).await
    }

    /// Returns one row at the first place: the counts of all rows of all places.
    async fn count_all(&self, table: &Table, counts: &[(VariableId, Counted)]) -> Result<Table, QueryFault> {
        let is_first = self.peers.rank() == 0;
        let mut all = if is_first { Table::unit() } else { Table::empty(Vec::new()) };
        for (variable, counted) in counts {
            let mut sum = [match counted {
                Counted::Rows => table.rows as u64,
                Counted::Bound(variable) => bound(table, *variable).count() as u64,
                Counted::Distinct(variable) => {
                    let values: Vec<u32> = bound(table, *variable).collect();
                    let values =
                        Table { rows: values.len(), columns: vec![values], ..Table::empty(vec![*variable]) };
                    let together = self.peers.redistribute_by(join::distinct(&values), &[*variable]).await?;
                    join::distinct(&together).rows as u64
                }
            }];
            self.peers.sum(&mut sum).await?;
            let column = self.integers(if is_first { &sum } else { &[] }).await?;
            all.variables.push(*variable);
            all.columns.push(column);
        }
        Ok(all)
    }

    /// Returns the numbers of integers as terms.
    async fn integers(&self, values: &[u64]) -> Result<Vec<u32>, QueryFault> {
        let term = |value: &u64| Some(term::encoded(Literal::from(*value).as_ref().into()));
        self.numbered(values.iter().map(term).collect()).await
    }
}

/// Returns the values of a variable in the rows that bind it.
fn bound(table: &Table, variable: VariableId) -> impl Iterator<Item = u32> + '_ {
    table.column(variable).unwrap_or_default().iter().copied().filter(|number| *number != UNBOUND)
}

/// Returns the keys of each group of this place, and the values of each count, by group.
fn counted(table: &Table, keys: &[VariableId], counts: &[(VariableId, Counted)]) -> (Table, Vec<Vec<u64>>) {
    let groups = join::groups(table, keys);
    let firsts = groups.firsts;
    let values = |counted: &Counted| {
        let mut counts = vec![0; firsts.len()];
        match counted {
            Counted::Rows => groups.of_row.iter().for_each(|group| counts[*group as usize] += 1),
            Counted::Bound(variable) => {
                let column = table.column(*variable).unwrap_or_default();
                let bound = column.iter().zip(&groups.of_row).filter(|(number, _)| **number != UNBOUND);
                bound.for_each(|(_, group)| counts[*group as usize] += 1);
            }
            Counted::Distinct(variable) => {
                let column = table.column(*variable).unwrap_or_default().to_vec();
                let pairs = Table {
                    rows: column.len(),
                    columns: vec![groups.of_row.clone(), column],
                    ..Table::empty(vec![0, 1])
                };
                let pairs = join::distinct(&pairs);
                let bound = pairs.columns[0].iter().zip(&pairs.columns[1]);
                bound
                    .filter(|(_, number)| **number != UNBOUND)
                    .for_each(|(group, _)| counts[*group as usize] += 1);
            }
        }
        counts
    };
    let numbers = counts.iter().map(|(_, counted)| values(counted)).collect();
    (table.pick(&firsts).project(keys), numbers)
}
