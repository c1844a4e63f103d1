//! The order of trials in a block: random, except for what is expensive to change.

use super::{Plan, Treatment, data_of};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

impl Plan {
    /// Numbers of the treatments that are tested, in random order for this block (1-based): the
    /// same for the same seed, whatever has run before. Treatments that share a server and its data
    /// stay together, in random order among themselves, and such groups follow one another in
    /// random order: moving between them costs more than a trial, and they are not compared with
    /// one another as finely as what shares them.
    pub fn order_of_block(&self, block: u32) -> Vec<usize> {
        self.order_of_round(block, 0)
    }

    /// The place of a treatment among the trials of a block, from 1.
    pub(crate) fn position_in_block(&self, block: u32, number: usize) -> u32 {
        let order = self.order_of_block(block);
        let before = order
            .iter()
            .position(|other| *other == number)
            .unwrap_or_default();
        u32::try_from(before + 1).unwrap_or(u32::MAX)
    }

    /// The order in which the treatments of a switchback take their turns of this number (from 0)
    /// in a block.
    pub(crate) fn order_of_round(&self, block: u32, round: u32) -> Vec<usize> {
        let of_block = self.seed ^ (u64::from(block) << 32);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(of_block ^ (u64::from(round) << 54));
        let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for i in self.tested() {
            groups.entry(group_of(&self.treatments[i])).or_default().push(i);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        shuffle(&mut groups, &mut random);
        for group in &mut groups {
            shuffle(group, &mut random);
        }
        groups.concat()
    }
}

/// What stays together: the server variant, and data that is kept from one trial to the next.
fn group_of(treatment: &Treatment) -> impl Ord + use<> {
    (treatment.variant(), data_of(treatment))
}

/// Fisher-Yates. The bias of the remainder is below 2^-50 for any number of treatments.
fn shuffle<T>(items: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for i in (1..items.len()).rev() {
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of i + 1")]
        let j = (random.next_u64() % (i as u64 + 1)) as usize;
        items.swap(i, j);
    }
}
