//! Exchanges between the places of a query: rows by term owner, rows for all, terms by number, numbers by term.
//!
//! The rest of the executor is the same on one place and on many. A place that evaluates alone has no team and
//! exchanges nothing. Invariant: all members call the same operations in the same order, even if they have nothing to
//! send.

use crate::answer::Solutions;
use crate::query::table::{Table, VariableId};
use crate::store::dictionary::{Dictionary, Numbering, UNBOUND};
use crate::store::term;
use isles::prelude::*;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Terms of all places as known to one place, and its team.
pub struct Peers {
    team: Option<Team>,
    /// `true` if each term is owned by the place determined by its hash.
    is_by_hash: bool,
    numbering: Numbering,
    dictionary: RefCell<Dictionary>,
    /// Bytes that this place has sent to others.
    sent: Cell<u64>,
}

/// Terms of other places, by number; the terms of this place are in its dictionary.
#[derive(Debug, Default)]
pub struct Terms {
    positions: FxHashMap<u32, u32>,
    terms: Vec<Vec<u8>>,
}

impl Peers {
    /// Creates a place that has all terms.
    pub fn alone(dictionary: Dictionary) -> Peers {
        Peers::with(None, dictionary)
    }

    /// Creates a member of `team` that owns no terms yet. `is_by_hash` is `true` if the hash of each term determines
    /// its owner.
    pub fn member(team: Team, is_by_hash: bool) -> Peers {
        Peers { is_by_hash, ..Peers::with(Some(team), Dictionary::default()) }
    }

    fn with(team: Option<Team>, dictionary: Dictionary) -> Peers {
        let team = team.filter(|team| team.size() > 1);
        let numbering = Numbering::new(team.as_ref().map_or(1, Team::size));
        let dictionary = RefCell::new(dictionary);
        Peers { team, is_by_hash: true, numbering, dictionary, sent: Cell::new(0) }
    }

    /// Sets the terms that this place owns.
    pub fn own(&self, dictionary: Dictionary) {
        *self.dictionary.borrow_mut() = dictionary;
    }

    /// Returns a predicate for whether this place owns the term with a number, which must not be [`UNBOUND`].
    pub fn owns(&self) -> impl Fn(u32) -> bool + Copy + use<> {
        let (numbering, here) = (self.numbering, self.rank());
        move |number| numbering.place(number) == here
    }

    /// Returns the number of places.
    pub fn size(&self) -> usize {
        self.team.as_ref().map_or(1, Team::size)
    }

    /// Returns the rank of this place.
    pub fn rank(&self) -> usize {
        self.team.as_ref().map_or(0, Team::rank)
    }

    /// Returns the number of bytes that this place has sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Returns the numbering of terms.
    pub fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// Returns the terms that this place owns.
    pub fn dictionary(&self) -> std::cell::Ref<'_, Dictionary> {
        self.dictionary.borrow()
    }

    /// Revokes the numbers assigned by queries, from `len` on.
    pub fn discard_terms(&self, len: usize) {
        self.dictionary.borrow_mut().truncate(len);
    }

    /// Replaces each number by its sum over all places.
    pub async fn sum(&self, numbers: &mut [u64]) -> isles::Result<()> {
        match &self.team {
            Some(team) => team.all_reduce_slice(numbers, |left, right| left + right).await,
            None => Ok(()),
        }
    }

    /// Returns the number of each term, at all places; [`UNBOUND`] for a term that no place has.
    pub async fn find(&self, terms: &[Vec<u8>]) -> isles::Result<Vec<u32>> {
        let number = |term: &Vec<u8>| {
            let index = self.dictionary.borrow().find(term)?;
            self.numbering.number(index as usize, self.rank())
        };
        let mut numbers: Vec<u64> = terms.iter().map(|term| number(term).map_or(0, u64::from)).collect();
        self.sum(&mut numbers).await?; // one of them has it, or none
        Ok(numbers.into_iter().map(|number| number as u32).collect())
    }

    /// Returns the numbers of `terms`, assigning one to each new term; each place passes its own terms.
    pub async fn intern(&self, terms: &[Vec<u8>]) -> isles::Result<Vec<u32>> {
        let places = self.size();
        let mut numbers =
            if self.is_by_hash { vec![UNBOUND; terms.len()] } else { self.find_terms(terms).await? };
        // A new term is owned by the place given by its hash.
        let mut rows: Vec<Vec<u8>> = vec![Vec::new(); places];
        let mut owners = Vec::new();
        for (term, _) in terms.iter().zip(&numbers).filter(|(_, number)| **number == UNBOUND) {
            let owner = term::owner(term::hash(term), places);
            push_term(&mut rows[owner], term);
            owners.push(owner);
        }
        let new = self.intern_rows(rows).await?;
        let mut new: Vec<_> = new.iter().map(|row| row.iter()).collect();
        let missing = numbers.iter_mut().filter(|number| **number == UNBOUND);
        for (number, owner) in missing.zip(owners) {
            *number = new[owner].next().copied().unwrap_or(UNBOUND);
        }
        Ok(numbers)
    }

    /// Returns the numbers of `terms`, owned by any place; [`UNBOUND`] for a term that no place has. Each place passes
    /// its own terms.
    async fn find_terms(&self, terms: &[Vec<u8>]) -> isles::Result<Vec<u32>> {
        let mut own = Vec::new();
        terms.iter().for_each(|term| push_term(&mut own, term));
        let asked = match &self.team {
            Some(team) => {
                self.record_sent(own.len() * (team.size() - 1));
                team.all_gatherv(&own).await?
            }
            None => vec![own],
        };
        let answer = |row: &Vec<u8>| {
            let dictionary = self.dictionary.borrow();
            let number = |term| self.numbering.number(dictionary.find(term)? as usize, self.rank());
            terms_of(row).map(|term| number(term).unwrap_or(UNBOUND)).collect()
        };
        let answers = self.all_to_all(asked.iter().map(answer).collect()).await?;
        // At most one of the places has it.
        Ok((0..terms.len()).map(|at| answers.iter().map(|row| row[at]).max().unwrap_or(UNBOUND)).collect())
    }

    /// Returns the numbers of the terms in `rows`, each term in the row of its owner, in the same order. New terms get
    /// a number.
    pub async fn intern_rows(&self, rows: Vec<Vec<u8>>) -> isles::Result<Vec<Vec<u32>>> {
        let counts: Vec<usize> = rows.iter().map(|row| terms_of(row).count()).collect();
        let asked = self.all_to_all_bytes(rows).await?;
        let given = self.all_to_all(self.interned(&asked)).await?;
        // All places see that one is out of numbers, so all fail.
        if given.iter().zip(counts).any(|(numbers, count)| numbers.len() > count) {
            return Err(isles::Error::message("more than 2^32 terms"));
        }
        Ok(given)
    }

    /// Returns the numbers of the terms in `rows` at this place, assigning new ones; a row with one extra number means
    /// that there are not enough.
    fn interned(&self, rows: &[Vec<u8>]) -> Vec<Vec<u32>> {
        let (here, mut is_full) = (self.rank(), false);
        let mut dictionary = self.dictionary.borrow_mut();
        let mut number = |term: &[u8]| {
            let number = self.numbering.number(dictionary.intern(term) as usize, here);
            is_full |= number.is_none();
            number.unwrap_or(UNBOUND)
        };
        let mut answers: Vec<Vec<u32>> =
            rows.iter().map(|row| terms_of(row).map(&mut number).collect()).collect();
        if is_full {
            answers.iter_mut().for_each(|numbers| numbers.push(UNBOUND));
        }
        answers
    }

    /// Fetches the bytes of the terms with these numbers, some of which may be [`UNBOUND`], so that [`Terms::bytes`]
    /// finds them here.
    pub async fn fetch(&self, numbers: impl Iterator<Item = u32>) -> isles::Result<Terms> {
        let mut fetched = Terms::default();
        let Some(team) = &self.team else { return Ok(fetched) };
        let mut wanted: Vec<Vec<u32>> = vec![Vec::new(); team.size()];
        let mut seen = rustc_hash::FxHashSet::default();
        for number in numbers.filter(|number| *number != UNBOUND) {
            let owner = self.numbering.place(number);
            if owner != self.rank() && seen.insert(number) {
                wanted[owner].push(number);
            }
        }
        let asked = self.all_to_all(wanted.clone()).await?;
        let answers = {
            let dictionary = self.dictionary.borrow();
            let answer = |numbers: &Vec<u32>| {
                let mut row = Vec::new();
                numbers.iter().for_each(|number| {
                    push_term(&mut row, dictionary.bytes(self.numbering.index(*number)));
                });
                row
            };
            asked.iter().map(answer).collect()
        };
        for (numbers, row) in wanted.iter().zip(self.all_to_all_bytes(answers).await?) {
            for (number, bytes) in numbers.iter().zip(terms_of(&row)) {
                fetched.positions.insert(*number, fetched.terms.len() as u32);
                fetched.terms.push(bytes.to_vec());
            }
        }
        Ok(fetched)
    }

    /// Sends each row to the owner of its term in the column of `variable`, in which no row may be unbound.
    pub async fn redistribute(&self, table: Table, variable: VariableId) -> isles::Result<Table> {
        if self.team.is_none() || table.placed_by == Some(variable) {
            return Ok(table);
        }
        let Some(position) = table.position(variable) else { return Ok(table) };
        let (here, column) = (self.rank() as u32, &table.columns[position]);
        let owners = column.iter().map(|number| self.numbering.place(*number) as u32);
        let leaving = (0..).zip(owners).filter(|row| row.1 != here).collect();
        Ok(Table { placed_by: Some(variable), ..self.moved(table, leaving).await? })
    }

    /// Same as [`Peers::redistribute`], for a table of which `leaving` rows leave this place.
    pub async fn redistribute_some(
        &self,
        table: Table,
        variable: VariableId,
        leaving: u64,
    ) -> isles::Result<Table> {
        if self.team.is_some() && leaving == 0 && table.placed_by != Some(variable) {
            let arrived = self.all_to_all(vec![Vec::new(); self.size()]).await?;
            return Ok(Table { placed_by: Some(variable), ..joined(table, &arrived) });
        }
        self.redistribute(table, variable).await
    }

    /// Sends each row to a place determined by the numbers in some columns, so that rows that agree in them meet.
    pub async fn redistribute_by(&self, table: Table, variables: &[VariableId]) -> isles::Result<Table> {
        if self.team.is_none() {
            return Ok(table);
        }
        let columns: Vec<&[u32]> = variables.iter().filter_map(|variable| table.column(*variable)).collect();
        let owner = |row: usize| {
            let mixed = columns.iter().fold(0_u64, |state, column| {
                (state ^ u64::from(column[row])).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            });
            term::owner(mixed ^ (mixed >> 32), self.size()) as u32
        };
        let here = self.rank() as u32;
        let leaving = (0..table.rows as u32).map(|row| (row, owner(row as usize)));
        let leaving = leaving.filter(|row| row.1 != here).collect();
        Ok(Table { placed_by: None, ..self.moved(table, leaving).await? })
    }

    /// Sends the rows in `leaving`, which are ascending, each to its place.
    async fn moved(&self, mut table: Table, leaving: Vec<(u32, u32)>) -> isles::Result<Table> {
        let mut counts = vec![0_u32; self.size()];
        leaving.iter().for_each(|(_, owner)| counts[*owner as usize] += 1);
        // A part for each receiving place: its number of rows, then column after column.
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); self.size()];
        for (part, count) in parts.iter_mut().zip(counts).filter(|(_, count)| *count > 0) {
            part.reserve_exact(1 + count as usize * table.columns.len());
            part.push(count);
        }
        for column in &table.columns {
            leaving.iter().for_each(|(row, owner)| parts[*owner as usize].push(column[*row as usize]));
        }
        table.remove(leaving.iter().map(|(row, _)| *row));
        Ok(joined(table, &self.all_to_all(parts).await?))
    }

    /// Returns all rows of all places, at each of them.
    pub async fn replicate(&self, table: Table) -> isles::Result<Table> {
        let Some(team) = &self.team else { return Ok(table) };
        let own = whole(&table);
        self.record_sent(own.len() * 4 * (team.size() - 1));
        let rows = team.all_gatherv(&own).await?;
        Ok(joined(Table { placed_by: None, ..without_rows(&table) }, &rows))
    }

    /// Returns all rows of all places at the first one; no rows at the others.
    pub async fn gather(&self, table: Table) -> isles::Result<Table> {
        let Some(team) = &self.team else { return Ok(table) };
        let own = whole(&table);
        if team.rank() != 0 {
            self.record_sent(own.len() * 4);
        }
        let rows = team.gatherv(0, &own).await?.unwrap_or_default();
        Ok(joined(Table { placed_by: None, ..without_rows(&table) }, &rows))
    }

    /// Returns the solutions of all places at the first one; `None` at the others.
    pub async fn gather_solutions(&self, own: Solutions) -> isles::Result<Option<Solutions>> {
        let Some(team) = &self.team else { return Ok(Some(own)) };
        // The number of rows, then the columns, then the lengths of terms.
        let mut numbers = vec![own.rows as u32];
        own.columns.iter().for_each(|column| numbers.extend_from_slice(column));
        let (bytes, lengths) = own.terms.parts();
        numbers.extend_from_slice(&lengths);
        if team.rank() != 0 {
            self.record_sent(4 * numbers.len() + bytes.len());
            team.gatherv(0, &numbers).await?;
            team.gatherv(0, bytes).await?;
            return Ok(None);
        }
        let numbers = team.gatherv(0, &[0_u32; 0]).await?.unwrap_or_default();
        let bytes = team.gatherv(0, &[0_u8; 0]).await?.unwrap_or_default();
        let mut all = own;
        for (numbers, bytes) in numbers.iter().zip(&bytes) {
            let Some((rows, numbers)) = numbers.split_first() else { continue };
            let (cells, lengths) = numbers.split_at(*rows as usize * all.columns.len());
            let first = all.terms.append(bytes, lengths);
            for (column, more) in all.columns.iter_mut().zip(cells.chunks((*rows as usize).max(1))) {
                let moved = |number: &u32| if *number == UNBOUND { UNBOUND } else { number + first };
                column.extend(more.iter().map(moved));
            }
            all.rows += *rows as usize;
        }
        Ok(Some(all))
    }

    /// Sends each place its row of numbers, and returns the row received from each.
    pub async fn all_to_all(&self, mut rows: Vec<Vec<u32>>) -> isles::Result<Vec<Vec<u32>>> {
        let Some(team) = &self.team else { return Ok(rows) };
        self.record_rows(&rows);
        let own = std::mem::take(&mut rows[team.rank()]); // which needs no copy
        let mut all = team.all_to_allv(&rows).await?;
        all[team.rank()] = own;
        Ok(all)
    }

    /// Sends each place its row of bytes, and returns the row received from each.
    pub async fn all_to_all_bytes(&self, mut rows: Vec<Vec<u8>>) -> isles::Result<Vec<Vec<u8>>> {
        let Some(team) = &self.team else { return Ok(rows) };
        self.record_rows(&rows);
        let own = std::mem::take(&mut rows[team.rank()]); // which needs no copy
        let mut all = team.all_to_allv(&rows).await?;
        all[team.rank()] = own;
        Ok(all)
    }

    fn record_rows<T>(&self, rows: &[Vec<T>]) {
        let others = rows.iter().enumerate().filter(|(to, _)| *to != self.rank());
        self.record_sent(others.map(|(_, row)| row.len() * size_of::<T>()).sum());
    }

    fn record_sent(&self, bytes: usize) {
        self.sent.set(self.sent.get() + bytes as u64);
    }
}

impl Terms {
    /// Returns the bytes of the term with this number, if it was fetched or is owned by this place.
    pub fn bytes<'a>(&'a self, number: u32, numbering: Numbering, own: &'a Dictionary) -> &'a [u8] {
        match self.positions.get(&number) {
            Some(position) => &self.terms[*position as usize],
            None => own.bytes(numbering.index(number)),
        }
    }
}

/// Appends a term, preceded by its length.
pub fn push_term(row: &mut Vec<u8>, term: &[u8]) {
    row.extend_from_slice(&u32::try_from(term.len()).unwrap_or(u32::MAX).to_le_bytes());
    row.extend_from_slice(term);
}

/// Returns the terms that [`push_term`] appended.
pub fn terms_of(mut row: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = row.split_first_chunk::<4>()?;
        let (term, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        row = rest;
        Some(term)
    })
}

/// Returns a table with the columns of `table`, and no rows.
fn without_rows(table: &Table) -> Table {
    Table {
        columns: vec![Vec::new(); table.columns.len()],
        rows: 0,
        variables: table.variables.clone(),
        optional: table.optional.clone(),
        placed_by: table.placed_by,
    }
}

/// Returns a table as one part in the form of [`Peers::moved`].
fn whole(table: &Table) -> Vec<u32> {
    let rows = [table.rows as u32];
    std::iter::once(&rows[..]).chain(table.columns.iter().map(Vec::as_slice)).flatten().copied().collect()
}

/// Appends the rows of parts in the form of [`Peers::moved`].
fn joined(mut table: Table, parts: &[Vec<u32>]) -> Table {
    for part in parts {
        let Some((count, cells)) = part.split_first() else { continue };
        let count = *count as usize;
        table.rows += count;
        for (column, more) in table.columns.iter_mut().zip(cells.chunks(count.max(1))) {
            column.extend_from_slice(more);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles::Plan;

    #[test]
    fn all_places_end_if_one_has_no_number_left() {
        for (terms, is_enough) in [(1, true), (200, false)] {
            let (ended, ..) = isles::simulate(3, Plan::calm(1), move || async move {
                let failed = everywhere!([terms] {
                    let mut peers = Peers::member(Team::world(), true);
                    // With this number of places, each can number one term.
                    peers.numbering = Numbering::new(u32::MAX as usize - 3);
                    let own: Vec<Vec<u8>> = if peers.rank() == 0 {
                        (0..terms).map(|term: u32| term.to_le_bytes().to_vec()).collect()
                    } else {
                        Vec::new()
                    };
                    peers.intern(&own).await.is_err()
                })
                .await?;
                assert_eq!(failed, vec![!is_enough; 3]);
                Ok::<_, isles::Error>(())
            });
            ended.unwrap();
        }
    }
}
