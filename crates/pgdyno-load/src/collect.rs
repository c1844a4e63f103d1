//! The seconds of all threads, put together while the load runs.

use crate::books::{Second, SecondFigures};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// What a thread tells while it runs: a second, or that no more will come.
pub(crate) type Told = (u32, Option<Second>);

/// Puts the threads' seconds together; a second is told once every thread has delivered it or has ended before it, and its
/// figures are kept.
pub(crate) fn collect(
    receiver: &Receiver<Told>,
    threads: u32,
    on_second: &mut dyn FnMut(&Second),
) -> Vec<SecondFigures> {
    let mut told = Vec::new();
    let mut open: BTreeMap<u32, Second> = BTreeMap::new();
    let mut delivered = vec![0_u32; threads as usize];
    let mut ended = vec![false; threads as usize];
    for (thread, second) in receiver {
        let thread = thread as usize;
        match second {
            None => ended[thread] = true,
            Some(second) => {
                delivered[thread] = second.number;
                match open.get_mut(&second.number) {
                    Some(sum) => {
                        sum.books.add(&second.books);
                        sum.clients += second.clients;
                        sum.length_s = sum.length_s.max(second.length_s);
                    }
                    None => {
                        open.insert(second.number, second);
                    }
                }
            }
        }
        while let Some(entry) = open.first_entry() {
            let number = *entry.key();
            if !delivered
                .iter()
                .zip(&ended)
                .all(|(&last, &ended)| ended || last >= number)
            {
                break;
            }
            let second = entry.remove();
            on_second(&second);
            told.push(second.figures());
        }
    }
    told
}
